//! How long symbolising takes on a program with much debug information.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::frame::Bench;
use crate::measure::text_of;
use crate::record::Part;
use crate::table::Table;
use crate::{large_binary, workspace};

/// Resolves random addresses of the large program, three times over.
pub(super) fn measure(bench: &Bench) -> Result<Part, String> {
    let program = large_binary::build(&bench.directory)?;
    let debug_bytes = debug_information(&program)?;
    let addresses = if bench.quick { 300 } else { 3000 };
    let text = run_example(&program, addresses)?;
    let time = |label| seconds(&text, label).ok_or_else(|| format!("no time in: {text}"));
    let (with, without) = (time("with inlined functions: ")?, time("without inlined functions: ")?);
    let title = "Symbolising random addresses, each as one sample, of a program with much debug information";
    let mut table =
        Table::new(title, &["debug information, MB", "addresses", "with inlined frames, s", "without, s"]);
    let megabytes = format!("{:.0}", debug_bytes as f64 / 1e6);
    table.row(vec![megabytes, addresses.to_string(), format!("{with:.2}"), format!("{without:.2}")]);
    table.note("Fastest of three, wall time; the file was in the page cache.");
    let data = json!({
        "debug_bytes": debug_bytes, "addresses": addresses, "with_inlines_s": with, "without_inlines_s": without,
    });
    Ok(Part { table, data })
}

fn run_example(program: &Path, addresses: usize) -> Result<String, String> {
    let mut example = workspace::cargo();
    example.args([
        "run",
        "--release",
        "--quiet",
        "--package",
        "treering-symbols",
        "--example",
        "symbolise_speed",
    ]);
    text_of(example.arg("--").arg(program).arg(addresses.to_string()))
}

/// The number of seconds after `label`.
fn seconds(text: &str, label: &str) -> Option<f64> {
    text.lines().find_map(|line| line.trim_start().strip_prefix(label)?.split(' ').next()?.parse().ok())
}

/// The size of all debug sections, as `size` states it.
fn debug_information(program: &Path) -> Result<u64, String> {
    let sizes = text_of(Command::new("size").arg("-A").arg(program))?;
    let debug = sizes.lines().filter(|line| line.starts_with(".debug"));
    Ok(debug.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_by_their_labels() {
        let text = "with inlined functions: 0.125 s, 9 addresses/s\nwithout inlined functions: 0.5 s, 1\n";
        assert_eq!(seconds(text, "with inlined functions: "), Some(0.125));
        assert_eq!(seconds(text, "without inlined functions: "), Some(0.5));
        assert_eq!(seconds(text, "other: "), None);
    }
}
