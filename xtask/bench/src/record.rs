//! `cargo xtask bench record`: the cost of recording and the quality of recordings, beside other tools.

use serde_json::{Value, json};

use crate::frame::{Bench, Benchmark, Report};
use crate::table::Table;
use crate::{large, overhead, stacks, symbols, truth};

/// A part of the benchmark: its table for people, its data for programs.
pub(super) struct Part {
    pub(super) table: Table,
    pub(super) data: Value,
}

/// The parts by name, in the order they are run.
type Measurement = fn(&Bench) -> Result<Part, String>;
const PARTS: [(&str, Measurement); 6] = [
    ("overhead", overhead::measure),
    ("stacks", stacks::measure),
    ("aliasing", truth::of_a_program_in_step),
    ("lives", truth::of_short_lives),
    ("symbols", symbols::measure),
    ("large", large::measure),
];

pub(super) const BENCHMARK: Benchmark = Benchmark {
    name: "record",
    package: "treering",
    options: &[],
    parts: Some(&["overhead", "stacks", "aliasing", "lives", "symbols", "large"]),
    run,
};

fn run(bench: &Bench) -> Result<Report, String> {
    let mut report = Report { data: json!({"parts": {}}), ..Report::default() };
    for (name, measure) in PARTS.into_iter().filter(|(name, _)| bench.wants(name)) {
        eprintln!("measuring {name}");
        match measure(bench) {
            Ok(part) => {
                report.tables.push(part.table);
                report.data["parts"][name] = part.data;
            }
            Err(error) => report.failures.push(format!("{name}: {error}")),
        }
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_can_be_chosen() {
        assert_eq!(BENCHMARK.parts, Some(&PARTS.map(|(name, _)| name)[..]));
    }
}
