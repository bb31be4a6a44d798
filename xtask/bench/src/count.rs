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

use treering_testing::programs::installed;

use crate::frame::{Bench, Report};
use crate::grid::Grid;
use crate::measure::{cpu_seconds, text_of};

/// A way to run a program.
#[derive(Clone, Debug)]
struct Way {
    name: &'static str,
    /// The words before the program.
    before: Vec<OsString>,
    /// Whether the only code that is known of the program is that of a smaller input.
    after_smaller: bool,
}

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
    let ways = ways(bench, ours_only)?;
    for program in &programs {
        // If it fails, so it will in the first round.
        let _ = seconds(&ways[1].before, &program.words, &cache);
    }
    let rounds = bench.rounds(5, 1);
    let grid = Grid::measure(
        programs.iter().map(|program| program.name.to_owned()).collect(),
        ways.iter().map(|way| way.name.to_owned()).collect(),
        |program| if programs[program].in_mean { rounds } else { rounds * SHORT },
        |program, way| {
            let (program, way) = (&programs[program], &ways[way]);
            if !way.after_smaller {
                return seconds(&way.before, &program.words, &cache);
            }
            let _ = std::fs::remove_dir_all(&smaller);
            seconds(&way.before, &program.smaller, &smaller)?;
            seconds(&way.before, &program.words, &smaller)
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

/// The ways that there are, the program alone first, and `count` second.
fn ways(bench: &Bench, ours_only: bool) -> Result<Vec<Way>, String> {
    let output = bench.directory.join("count.trg");
    let count = |more: &[&str]| {
        let mut words: Vec<OsString> = vec![bench.treering.clone().into(), "count".into()];
        words.extend(more.iter().map(OsString::from));
        words.extend(["-o".into(), output.clone().into(), "--".into()]);
        words
    };
    // Treerings of earlier days lack some of the options.
    let help = text_of(Command::new(&bench.treering).args(["count", "--help"]))?;
    let valgrind = |options: &[&str]| {
        let program = installed("valgrind").filter(|_| !ours_only)?;
        Some(
            [program.into_os_string(), "-q".into()]
                .into_iter()
                .chain(options.iter().map(OsString::from))
                .collect(),
        )
    };
    let file = format!("--callgrind-out-file={}", bench.directory.join("callgrind.out").display());
    let all = [
        ("native", Some(Vec::new())),
        ("count", Some(count(&[]))),
        ("count after a smaller input", Some(count(&[]))),
        ("count --no-cache", help.contains("--no-cache").then(|| count(&["--no-cache"]))),
        ("count --tree", help.contains("--tree").then(|| count(&["--tree"]))),
        ("valgrind --tool=none", valgrind(&["--tool=none"])),
        ("callgrind", valgrind(&["--tool=callgrind", &file])),
    ];
    let mut ways = Vec::new();
    for (name, before) in all {
        match before {
            Some(before) => ways.push(Way { name, before, after_smaller: name.ends_with("smaller input") }),
            None => eprintln!("skipped: {name}"),
        }
    }
    Ok(ways)
}

/// The processor time of one run with all its descendants.
fn seconds(before: &[OsString], words: &[OsString], cache: &Path) -> Result<f64, String> {
    let words: Vec<&OsString> = before.iter().chain(words).collect();
    cpu_seconds(Command::new(words[0]).args(&words[1..]).env("XDG_CACHE_HOME", cache))
}
