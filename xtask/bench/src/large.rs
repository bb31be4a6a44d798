//! How long a profile of a million nodes takes to read, to write, and to report.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use treering_formats::trg;
use treering_profile::Profile;
use treering_testing::synthetic::{Shape, synthetic};

use crate::frame::{Bench, interleaved};
use crate::measure::cpu_seconds;
use crate::statistics::Spread;
use crate::table::Table;

/// The commands, before the name of the profile.
const COMMANDS: [&str; 12] = [
    "merge -o again.trg",
    "report --flat",
    "report --flat --focus 1 --hide 7",
    "report --callgraph",
    "report --callgraph --collapse-cycles",
    "report --callgraph --min 0 --json",
    "report --tree",
    "report --tree --min 0.01",
    "report --tree --min 0 --json",
    "report --callers",
    "report --callers --min 0.01",
    "report --threads",
];

/// Reads, writes and reports a synthetic profile.
pub(super) fn measure(bench: &Bench) -> Result<Table, String> {
    let shape = if bench.quick { Shape::SMALL } else { Shape::MILLION };
    let file = bench.directory.join("large.trg");
    write(&synthetic(&shape), &file)?;
    let times = interleaved(COMMANDS.len(), bench.rounds(9, 2), |way| {
        cpu_seconds(bench.command(&format!("treering {}", COMMANDS[way])).arg(&file))
    })?;
    let title = format!("A synthetic profile of {} nodes and {} metrics", shape.nodes, shape.metrics);
    let mut table = Table::new(&title, &["command", "processor time, s: median (middle half)", "least"]);
    for (command, times) in COMMANDS.iter().zip(times) {
        let times = Spread::of(&times).ok_or("no rounds")?;
        table.row(vec![format!("`{command}`"), format!("{times:.3}"), format!("{:.3}", times.least)]);
    }
    let bytes = std::fs::metadata(&file).map_err(|error| error.to_string())?.len();
    table.note(format!(
        "The file has {:.1} MB. Each command starts the program and reads the file.",
        bytes as f64 / 1e6
    ));
    Ok(table)
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
