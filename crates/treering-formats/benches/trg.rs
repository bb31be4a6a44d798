//! How long a profile of a million nodes takes to write and read as `.trg`, and its size.
//!
//! `cargo bench -p treering-formats --bench trg` prints the minimum and the median of several
//! rounds.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints and may panic")]

use std::time::{Duration, Instant};

use treering_formats::trg;
use treering_testing::synthetic::{Shape, synthetic};

const ROUNDS: usize = 9;

fn main() {
    // `cargo test --benches` runs this as well; a small profile shows that it works.
    let shape =
        if std::env::args().any(|argument| argument == "--bench") { Shape::MILLION } else { Shape::SMALL };
    let profile = synthetic(&shape);
    let mut file = Vec::new();
    trg::write(&profile, &mut file).unwrap();
    println!("{} nodes, {} metrics: {:.2} MB", shape.nodes, shape.metrics, file.len() as f64 / 1e6);
    measure("write", || {
        let mut written = Vec::with_capacity(file.len());
        trg::write(&profile, &mut written).unwrap();
    });
    measure("read", || drop(trg::read(&file).unwrap()));
    let mut appender = trg::Appender::new(std::io::sink()).unwrap();
    appender.append(&profile).unwrap();
    measure("append nothing", || appender.append(&profile).unwrap());
}

fn measure(what: &str, mut work: impl FnMut()) {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!("{what:15} min {:7.1} ms   median {:7.1} ms", ms(times[0]), ms(times[ROUNDS / 2]));
}
