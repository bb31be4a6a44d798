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

use crate::frame::{Bench, interleaved};
use crate::measure::{children_seconds, succeed};
use crate::record::Part;
use crate::statistics::Spread;
use crate::table::Table;

/// The views, as options of `report`.
const VIEWS: [&str; 4] = ["--flat", "--callgraph", "--tree", "--callers"];

/// Writes, reads and reports a synthetic profile.
pub(super) fn measure(bench: &Bench) -> Result<Part, String> {
    let shape = if bench.quick { Shape::SMALL } else { Shape::MILLION };
    let profile = synthetic(&shape);
    let file = bench.directory.join("large.trg");
    write(&profile, &file)?;
    let bytes = std::fs::read(&file).map_err(|error| error.to_string())?;
    let once = |way: usize| match way {
        0 => write(&profile, &file),
        1 => trg::read(&bytes).map(drop).map_err(|error| error.to_string()),
        _ => succeed(Command::new(&bench.treering).arg("report").arg(VIEWS[way - 2]).arg(&file)).map(drop),
    };
    let times = interleaved(2 + VIEWS.len(), bench.rounds(9, 2), |way| {
        let (start, before) = (Instant::now(), children_seconds());
        once(way).map(|()| (start.elapsed().as_secs_f64(), children_seconds() - before))
    })?;
    let mut table = Table::new(
        &format!("A synthetic profile of {} nodes and {} metrics", shape.nodes, shape.metrics),
        &["what", "wall time, s: median (middle half)", "least", "processor time of reports, s: median"],
    );
    let mut data = Vec::new();
    let names = ["write".to_owned(), "read".to_owned()].into_iter();
    for (name, times) in names.chain(VIEWS.map(|view| format!("report {view}"))).zip(times) {
        let (wall, cpu): (Vec<f64>, Vec<f64>) = times.into_iter().unzip();
        let (wall, cpu) = (Spread::of(&wall).ok_or("no rounds")?, Spread::of(&cpu).ok_or("no rounds")?);
        data.push(json!({"what": name, "median_s": wall.median, "least_s": wall.least}));
        let cpu = if name.starts_with("report") { format!("{:.3}", cpu.median) } else { String::new() };
        table.row(vec![name, format!("{wall:.3}"), format!("{:.3}", wall.least), cpu]);
    }
    table.note(format!(
        "The file has {:.1} MB. Reports include starting the program and reading the file.",
        bytes.len() as f64 / 1e6
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
