//! `cargo xtask bench count`: the cost of exact counting, side by side with Valgrind.
//!
//! Every round runs each program in all ways in random order. The table compares the processor time
//! of a command with all its descendants, tracers included. The least of all rounds is the cost of a way
//! when nothing disturbs it; the median says how far that is from the usual. Before the first round
//! each program is counted once, so that its code is known; `--no-cache` shows the cost of its first count. The known
//! code may also be that of a smaller input: then each count of the usual one comes after one of the smaller one.

mod program;

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::frame::{Bench, Report};
use crate::grid::Grid;
use crate::measure::cpu_seconds;

/// The ways by name, with the words before the program.
const WAYS: [(&str, &str); 7] = [
    ("native", ""),
    ("count", "treering count -o count.trg --"),
    (AFTER_SMALLER, "treering count -o count.trg --"),
    ("count --no-cache", "treering count --no-cache -o count.trg --"),
    ("count --tree", "treering count --tree -o count.trg --"),
    ("valgrind --tool=none", "valgrind -q --tool=none"),
    ("callgrind", "valgrind -q --tool=callgrind --callgrind-out-file=callgrind.out"),
];

/// The way in which the only code that is known of the program is that of a smaller input.
const AFTER_SMALLER: &str = "count after a smaller input";

/// Programs that only start run as many times more rounds: their runs are so short that a disturbance weighs much.
const SHORT: usize = 10;

/// `wanted`: parts of the names of programs; all programs when it is empty.
pub(super) fn run(bench: &Bench, ours_only: bool, wanted: &[String]) -> Result<Report, String> {
    let (cache, smaller) = (bench.directory.join("cache"), bench.directory.join("smaller"));
    let _ = std::fs::remove_dir_all(&cache);
    let size = if bench.quick { 0.1 } else { 1.0 };
    let programs = program::all(&bench.directory, size, |name| {
        wanted.is_empty() || wanted.iter().any(|part| name.contains(part))
    })?;
    let ways: Vec<(&str, &str)> =
        WAYS.into_iter().filter(|(_, words)| !(ours_only && words.starts_with("valgrind"))).collect();
    for program in &programs {
        // If it fails, so it will in the first round.
        let _ = seconds(bench, WAYS[1].1, &program.words, &cache);
    }
    let rounds = bench.rounds(5, 1);
    let grid = Grid::measure(
        programs.iter().map(|program| program.name.to_owned()).collect(),
        ways.iter().map(|(name, _)| (*name).to_owned()).collect(),
        |program| if programs[program].in_mean { rounds } else { rounds * SHORT },
        |program, way| {
            let (program, (name, before)) = (&programs[program], ways[way]);
            if name != AFTER_SMALLER {
                return seconds(bench, before, &program.words, &cache);
            }
            let _ = std::fs::remove_dir_all(&smaller);
            seconds(bench, before, &program.smaller, &smaller)?;
            seconds(bench, before, &program.words, &smaller)
        },
    )?;
    let title = "Counting, processor time as a multiple of the program's own";
    let mut table = grid.table(title, "program", |program| !programs[program].in_mean);
    table.note(
        "Tracers count as descendants. Programs that only start are run ten times as often. The means are of the \
         twelve others. `count` is of programs that were counted once before, `after a smaller input` of those that \
         were counted with a hundredth of the input, `--no-cache` of others.",
    );
    Ok(Report { tables: vec![table], samples: grid.samples(), ..Report::default() })
}

/// The processor time of one run with all its descendants.
fn seconds(bench: &Bench, before: &str, words: &[OsString], cache: &Path) -> Result<f64, String> {
    let (mut command, arguments) = match before {
        "" => (Command::new(&words[0]), &words[1..]),
        before => (bench.command(before), words),
    };
    cpu_seconds(command.args(arguments).env("XDG_CACHE_HOME", cache))
}
