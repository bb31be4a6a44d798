//! The frame of the benchmarks: rounds of ways in shuffled order, and the files of their results.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use treering_measure::turns;

use crate::measure::succeed;
use crate::table::Table;
use crate::workspace;

/// How much is measured.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Effort {
    /// Few and short runs, to see that the benchmark works; its numbers mean little
    #[arg(long, global = true)]
    quick: bool,
    /// How often each way takes its turn
    #[arg(long, global = true, value_name = "N")]
    rounds: Option<NonZeroUsize>,
}

/// One run of a benchmark.
#[derive(Debug)]
pub(crate) struct Bench {
    /// Few and short runs, to see that the benchmark works; its numbers mean little.
    pub(crate) quick: bool,
    rounds: Option<NonZeroUsize>,
    /// The folder of results and recordings.
    pub(crate) directory: PathBuf,
    /// The treering that is measured, built with optimisation.
    pub(crate) treering: PathBuf,
}

/// A last step, with the page that was written.
type Then = fn(&str) -> Result<(), String>;

/// The results of a benchmark.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) tables: Vec<Table>,
    /// The single measurements behind the tables.
    pub(crate) samples: Value,
    /// Further files, by name.
    pub(crate) files: Vec<(&'static str, String)>,
    /// Errors of parts that could not be measured.
    pub(crate) failures: Vec<String>,
    pub(crate) then: Option<Then>,
}

/// Builds the package that is measured, runs a benchmark of it, prints its page and writes its files.
pub(crate) fn execute(
    name: &str,
    package: &str,
    effort: Effort,
    run: &dyn Fn(&Bench) -> Result<Report, String>,
) -> Result<(), String> {
    let target = workspace::target_directory();
    let bench = Bench {
        quick: effort.quick,
        rounds: effort.rounds,
        directory: target.join(format!("bench-{name}")),
        treering: target.join("release/treering"),
    };
    succeed(workspace::cargo().args(["build", "--release", "--quiet", "--package", package]))?;
    make_folder(&bench.directory)?;
    let mut page = heading(name, bench.quick);
    let report = run(&bench)?;
    report.tables.iter().for_each(|table| page += &format!("\n{table}"));
    page += &format!("\nload {} at the end\n", machine()["load"].as_str().unwrap_or("unknown"));
    print!("{page}");
    let tables: Vec<Value> = report.tables.iter().map(Table::json).collect();
    let data =
        json!({"machine": machine(), "quick": bench.quick, "tables": tables, "samples": report.samples});
    write(&bench.directory, &format!("{name}.md"), &page)?;
    write(&bench.directory, &format!("{name}.json"), &format!("{data:#}\n"))?;
    for (name, text) in &report.files {
        write(&bench.directory, name, text)?;
    }
    report.then.map_or(Ok(()), |then| then(&page))?;
    if report.failures.is_empty() { Ok(()) } else { Err(report.failures.join("\n")) }
}

impl Bench {
    /// A command in the folder of results. `treering` is the one that is measured.
    pub(crate) fn command(&self, words: &str) -> Command {
        let mut words = words.split_whitespace();
        let mut command = match words.next().unwrap_or_default() {
            "treering" => Command::new(&self.treering),
            program => Command::new(program),
        };
        command.args(words).current_dir(&self.directory);
        command
    }

    /// The number of rounds: the chosen one, or that of a full or a quick run.
    pub(crate) fn rounds(&self, full: usize, quick: usize) -> usize {
        self.rounds.map_or(if self.quick { quick } else { full }, NonZeroUsize::get)
    }
}

/// Runs every way once in each round, in an order that is drawn for each round, because the machine is rarely idle and
/// drifts. The results by way.
pub(crate) fn interleaved<T>(
    ways: usize,
    rounds: usize,
    mut once: impl FnMut(usize) -> Result<T, String>,
) -> Result<Vec<Vec<T>>, String> {
    let mut results: Vec<Vec<T>> = (0..ways).map(|_| Vec::new()).collect();
    for turn in turns(ways, rounds, 0x7265_696e) {
        results[turn.version].push(once(turn.version)?);
    }
    Ok(results)
}

/// The first lines of a page: the benchmark and the machine.
fn heading(name: &str, quick: bool) -> String {
    let quick = if quick { " (quick: few short runs, which prove little)" } else { "" };
    let machine = machine();
    let field = |name: &str| machine[name].as_str().unwrap_or("unknown").to_owned();
    format!(
        "# cargo xtask bench {name}{quick}\n\n{}, {} processors, Linux {}, load {} at the start\n",
        field("cpu"),
        machine["cpus"],
        field("kernel"),
        field("load")
    )
}

/// The machine, on which the numbers depend.
fn machine() -> Value {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("");
    json!({
        "cpu": cpu.trim_start_matches(['\t', ':', ' ']),
        "cpus": std::thread::available_parallelism().map_or(0, usize::from),
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
        "load": read("/proc/loadavg").split(' ').next().unwrap_or_default(),
    })
}

/// Makes a folder unless it is there.
pub(crate) fn make_folder(path: &Path) -> Result<(), String> {
    std::fs::create_dir_all(path).map_err(|error| format!("cannot make {}: {error}", path.display()))
}

/// Writes a file of results, and says so.
fn write(directory: &Path, name: &str, text: &str) -> Result<(), String> {
    let path = directory.join(name);
    std::fs::write(&path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    eprintln!("wrote {}", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_runs_once_in_each_round() {
        let mut order = Vec::new();
        let results = interleaved(3, 4, |way| {
            order.push(way);
            Ok(order.len())
        });
        assert!(results.is_ok_and(|results| results.iter().all(|of_way| of_way.len() == 4)));
        for round in order.chunks(3) {
            assert!((0..3).all(|way| round.contains(&way)), "{order:?}");
        }
        assert!(interleaved(1, 1, |_| Err::<(), _>("it fails".to_owned())).is_err());
    }
}
