//! `cargo xtask bench record`: the cost of recording and the quality of recordings, beside other tools.

use crate::frame::{Bench, Report};
use crate::table::Table;
use crate::{large, overhead, stacks, truth};

/// The parts by name, in the order they are run.
pub(super) type Measurement = fn(&Bench) -> Result<Table, String>;
pub(super) const PARTS: [(&str, Measurement); 5] = [
    ("overhead", overhead::measure),
    ("stacks", stacks::measure),
    ("aliasing", truth::of_a_program_in_step),
    ("lives", truth::of_short_lives),
    ("large", large::measure),
];

/// `wanted`: the names of parts; all parts when it is empty.
pub(super) fn run(bench: &Bench, wanted: &[String]) -> Result<Report, String> {
    let mut report = Report::default();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|part| part == name);
    for (name, measure) in PARTS.into_iter().filter(|(name, _)| is_wanted(name)) {
        eprintln!("measuring {name}");
        match measure(bench) {
            Ok(table) => report.tables.push(table),
            Err(error) => report.failures.push(format!("{name}: {error}")),
        }
    }
    Ok(report)
}
