//! How long a profile of a million nodes takes to write and read as `.trg`, and its size.
//!
//! `cargo bench -p treering-formats --bench trg` prints the minimum and the median of several
//! rounds; beside them the least time that the calling thread was on a CPU.
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
    let mut times = Vec::new();
    let mut cpu_times = Vec::new();
    for _ in 0..ROUNDS {
        let (start, cpu_start) = (Instant::now(), cpu_time());
        work();
        times.push(start.elapsed());
        cpu_times.extend(cpu_time().zip(cpu_start).map(|(end, start)| end - start));
    }
    times.sort();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let cpu =
        cpu_times.into_iter().min().map_or(String::new(), |cpu| format!("   min on CPU {:7.1} ms", ms(cpu)));
    println!("{what:15} min {:7.1} ms   median {:7.1} ms{cpu}", ms(times[0]), ms(times[ROUNDS / 2]));
}

/// How long this thread ran so far, where the system says; on a busy machine that is worth more
/// than the time on the wall. Helper threads are not in it.
fn cpu_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?))
}
