//! How long a profile of a million nodes takes to write, to read, and to report.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::json;
use treering_formats::trg;
use treering_profile::Profile;
use treering_testing::synthetic::{Shape, synthetic};

use super::measure::{children_seconds, succeed};
use super::statistics::Spread;
use super::table::Table;
use super::{Options, Part};

/// The views, as options of `report`.
const VIEWS: [&str; 4] = ["--flat", "--callgraph", "--tree", "--callers"];

/// Writes, reads and reports a synthetic profile.
pub(super) fn measure(options: &Options) -> Result<Part, String> {
    let (shape, rounds) = if options.quick { (Shape::SMALL, 2) } else { (Shape::MILLION, 9) };
    let profile = synthetic(&shape);
    let file = options.directory.join("large.trg");
    let mut table = Table::new(
        &format!("A synthetic profile of {} nodes and {} metrics", shape.nodes, shape.metrics),
        &["what", "wall time, s: median (middle half)", "least"],
    );
    let mut data = Vec::new();
    let mut add = |what: &str, times: Vec<f64>| {
        let spread = Spread::of(&times)?;
        let least = times.iter().copied().fold(f64::MAX, f64::min);
        let text = format!("{:.3} ({:.3}-{:.3})", spread.median, spread.low, spread.high);
        table.row(vec![what.to_owned(), text, format!("{least:.3}")]);
        data.push(json!({"what": what, "median_s": spread.median, "least_s": least}));
        Some(())
    };
    add("write", repeat(rounds, || write(&profile, &file))?);
    let bytes = std::fs::read(&file).map_err(|error| error.to_string())?;
    add("read", repeat(rounds, || trg::read(&bytes).map(drop).map_err(|error| error.to_string()))?);
    for view in VIEWS {
        let report = || succeed(Command::new(&options.treering).arg("report").arg(view).arg(&file)).map(drop);
        let before = children_seconds();
        add(&format!("report {view}"), repeat(rounds, report)?);
        eprintln!("  {view}: {:.2} s of processor time each", (children_seconds() - before) / rounds as f64);
    }
    table.note(format!(
        "The file has {:.1} MB. Reports include starting the program and reading the file.",
        { bytes.len() as f64 / 1e6 }
    ));
    Ok(Part { table, data: json!({"bytes": bytes.len(), "times": data}) })
}

/// Writes a profile as a `.trg` file.
pub(super) fn write(profile: &Profile, file: &Path) -> Result<(), String> {
    let write = || -> Result<(), Box<dyn std::error::Error>> {
        let mut output = BufWriter::with_capacity(1 << 20, File::create(file)?);
        trg::write(profile, &mut output)?;
        Ok(output.flush()?)
    };
    write().map_err(|error| format!("cannot write {}: {error}", file.display()))
}

/// The seconds that each round took.
fn repeat(rounds: usize, mut work: impl FnMut() -> Result<(), String>) -> Result<Vec<f64>, String> {
    (0..rounds)
        .map(|_| {
            let start = Instant::now();
            work().map(|()| start.elapsed().as_secs_f64())
        })
        .collect()
}
