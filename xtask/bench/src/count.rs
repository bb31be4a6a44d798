//! `cargo xtask bench count`: what exact counting costs, side by side with Valgrind.
//!
//! Every round runs each program in all ways in random order. What is compared is the processor time
//! of a command with all its descendants, tracers included. The least of all rounds is what a way
//! costs when nothing disturbs it; the median says how far that is from the usual. Before the first round
//! each program is counted once, so that its code is known; `--no-cache` is what its first count costs. What is known
//! may also be of a smaller input: then each count of the usual one comes after one of the smaller one.

mod program;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use treering_testing::programs::installed;

use super::measure::{children_seconds, succeed};
use super::statistics::Spread;
use super::table::Table;
use super::{heading, machine, write};
use crate::workspace;
use program::Counted;

/// A way to run a program.
#[derive(Clone, Debug)]
struct Way {
    name: &'static str,
    /// What comes before the program; nothing when the way is missing.
    before: Option<Vec<OsString>>,
    /// Whether all that is known of the program is a count of a smaller input.
    after_smaller: bool,
}

/// What was asked for.
struct Options {
    quick: bool,
    rounds: usize,
    /// Parts of the names of programs; all when empty.
    wanted: Vec<String>,
    /// Whether to leave Valgrind out, which takes nearly all of the time.
    ours_only: bool,
    directory: PathBuf,
}

impl Options {
    /// Where counts keep what they know of programs.
    fn cache(&self) -> PathBuf {
        self.directory.join("cache")
    }
}

/// How many times more rounds are made of programs that only start: their runs are so short that a disturbance weighs
/// much.
const SHORT: usize = 10;

/// Seconds by way, one for each round.
type Times = Vec<Vec<f64>>;

/// Runs `bench count`.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    measure(&Options::parse(words)?)
}

impl Options {
    fn parse(words: &[&str]) -> Result<Self, String> {
        let directory = workspace::target_directory().join("bench-count");
        let mut options = Self { quick: false, rounds: 5, wanted: Vec::new(), ours_only: false, directory };
        for word in words {
            match word.strip_prefix("--rounds=") {
                Some(rounds) => {
                    let number = rounds.parse().ok().filter(|&number| number > 0);
                    options.rounds = number.ok_or_else(|| format!("not a number of rounds: {rounds}"))?;
                }
                None if *word == "--quick" => (options.quick, options.rounds) = (true, 1),
                None if *word == "--ours-only" => options.ours_only = true,
                None if word.starts_with('-') => {
                    return Err(format!("unknown option {word}; there are --quick, --rounds=N, --ours-only"));
                }
                None => options.wanted.push((*word).to_owned()),
            }
        }
        Ok(options)
    }
}

fn measure(options: &Options) -> Result<(), String> {
    super::build("treering")?;
    std::fs::create_dir_all(&options.directory)
        .map_err(|error| format!("cannot make {}: {error}", options.directory.display()))?;
    let _ = std::fs::remove_dir_all(options.cache());
    let wanted: Vec<&str> = options.wanted.iter().map(String::as_str).collect();
    let programs = program::all(&options.directory, if options.quick { 0.1 } else { 1.0 }, &wanted)?;
    let ways = ways(options);
    let mut results = Vec::new();
    for program in &programs {
        eprintln!("measuring {}", program.name);
        results.push(times(program, &ways, options)?);
    }
    let page = format!("{}\n{}", heading("count", options.quick), table(&programs, &ways, &results));
    print!("{page}");
    let data = json!({
        "machine": machine(), "quick": options.quick, "programs": data(&programs, &ways, &results),
    });
    write(&options.directory, "count.md", &page)?;
    write(&options.directory, "count.json", &format!("{data:#}\n"))
}

/// The ways, the program alone first.
fn ways(options: &Options) -> Vec<Way> {
    let treering = workspace::target_directory().join("release/treering");
    let output = options.directory.join("count.trg");
    let count = |more: &[&str]| {
        let mut words: Vec<OsString> = vec![treering.clone().into(), "count".into()];
        words.extend(more.iter().map(OsString::from));
        words.extend(["-o".into(), output.clone().into(), "--".into()]);
        words
    };
    let help = Command::new(&treering).args(["count", "--help"]).output();
    let help = help.ok().filter(|output| output.status.success());
    let help = help.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let has = |option: &str| help.as_ref().is_some_and(|help| help.contains(option));
    let valgrind = |tool: &str| {
        let file = format!("--callgrind-out-file={}", options.directory.join("callgrind.out").display());
        let mut words = vec![installed("valgrind")?.into_os_string(), tool.into(), "-q".into()];
        words.extend((tool == "--tool=callgrind").then(|| file.into()));
        Some(words)
    };
    let way = |name, before| Way { name, before, after_smaller: false };
    let mut ways = vec![
        way("native", Some(Vec::new())),
        way("count", help.is_some().then(|| count(&[]))),
        Way { after_smaller: true, ..way("count after a smaller input", help.is_some().then(|| count(&[]))) },
        way("count --no-cache", has("--no-cache").then(|| count(&["--no-cache"]))),
        way("count --tree", has("--tree").then(|| count(&["--tree"]))),
    ];
    if !options.ours_only {
        ways.push(way("valgrind --tool=none", valgrind("--tool=none")));
        ways.push(way("callgrind", valgrind("--tool=callgrind")));
    }
    for way in ways.iter().filter(|way| way.before.is_none()) {
        eprintln!("skipped: {} is missing", way.name);
    }
    ways
}

/// Runs a program in all ways, in another order in every round.
fn times(program: &Counted, ways: &[Way], options: &Options) -> Result<Times, String> {
    let cache = options.cache();
    if let Some(before) = ways.iter().find(|way| way.name == "count").and_then(|way| way.before.as_ref()) {
        // If it fails, so it will below.
        let _ = seconds(before, &program.words, &cache);
    }
    let mut times: Times = vec![Vec::new(); ways.len()];
    let mut random = fastrand::Rng::with_seed(0x7265_696e);
    let mut failed = vec![false; ways.len()];
    let rounds = if program.in_mean { options.rounds } else { options.rounds * SHORT };
    for _ in 0..rounds {
        let mut order: Vec<usize> = (0..ways.len()).collect();
        random.shuffle(&mut order);
        for at in order {
            let Some(before) = ways[at].before.as_ref().filter(|_| !failed[at]) else { continue };
            let measured = match ways[at].after_smaller {
                true => seconds_after_smaller(before, program, &options.directory.join("smaller")),
                false => seconds(before, &program.words, &cache),
            };
            match measured {
                Ok(seconds) => times[at].push(seconds),
                Err(error) if at == 0 => return Err(error),
                Err(error) => {
                    eprintln!("error: {} under {}: {error}", program.name, ways[at].name);
                    failed[at] = true;
                    times[at].clear();
                }
            }
        }
    }
    Ok(times)
}

/// The same of a program of which only a run of a smaller input is known.
fn seconds_after_smaller(before: &[OsString], program: &Counted, cache: &Path) -> Result<f64, String> {
    let _ = std::fs::remove_dir_all(cache);
    seconds(before, &program.smaller, cache)?;
    seconds(before, &program.words, cache)
}

/// The processor time of one run with all its descendants.
fn seconds(before: &[OsString], words: &[OsString], cache: &Path) -> Result<f64, String> {
    let words: Vec<&OsString> = before.iter().chain(words).collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env("XDG_CACHE_HOME", cache);
    let start = children_seconds();
    succeed(&mut command)?;
    Ok(children_seconds() - start)
}

/// The least, and the median.
fn summary(times: &[f64]) -> Option<(f64, f64)> {
    let least = times.iter().copied().min_by(f64::total_cmp)?;
    Some((least, Spread::of(times)?.median))
}

fn table(programs: &[Counted], ways: &[Way], results: &[Times]) -> Table {
    let mut header = vec!["program", "native s"];
    header.extend(ways.iter().skip(1).map(|way| way.name));
    let mut table = Table::new("Counting, processor time as a multiple of the program's own", &header);
    for (program, times) in programs.iter().zip(results) {
        let Some(native) = summary(&times[0]) else { continue };
        let mut row = vec![program.name.to_owned(), format!("{:.3}", native.0)];
        row.extend(times.iter().skip(1).map(|times| cell(times, native, program)));
        table.row(row);
    }
    table.row(mean_row(programs, ways, results));
    table.note(
        "The least of all rounds over the native least, in parentheses the median over the native median. \
         All descendants count, tracers included. What only starts is run ten times as often. The means are geometric, of the twelve programs. \
         `count` is of programs that were counted once before, \
         `after a smaller input` of those that were counted with a hundredth of the input, `--no-cache` of others.",
    );
    table
}

/// Multiples for programs that work; seconds for those that only start.
fn cell(times: &[f64], native: (f64, f64), program: &Counted) -> String {
    match summary(times) {
        Some((least, median)) if program.in_mean => {
            format!("{:.2} ({:.2})", least / native.0, median / native.1)
        }
        Some((least, median)) => format!("{least:.3} s ({median:.3} s)"),
        None => "missing".to_owned(),
    }
}

fn mean_row(programs: &[Counted], ways: &[Way], results: &[Times]) -> Vec<String> {
    let mut row = vec!["geometric mean".to_owned(), String::new()];
    for way in 1..ways.len() {
        let ratios = programs.iter().zip(results).filter(|(program, _)| program.in_mean);
        let ratios = ratios.map(|(_, times)| Some(summary(&times[way])?.0 / summary(&times[0])?.0));
        row.push(
            ratios
                .collect::<Option<Vec<f64>>>()
                .as_deref()
                .and_then(geometric_mean)
                .map_or_else(|| "missing".to_owned(), |mean| format!("{mean:.2}")),
        );
    }
    row
}

fn geometric_mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (sum / values.len() as f64).exp())
}

fn data(programs: &[Counted], ways: &[Way], results: &[Times]) -> Value {
    let one = |(program, times): (&Counted, &Times)| {
        let command: Vec<_> = program.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let seconds: serde_json::Map<_, _> =
            ways.iter().zip(times).map(|(way, times)| (way.name.to_owned(), json!(times))).collect();
        json!({ "name": program.name, "command": command, "seconds": seconds })
    };
    programs.iter().zip(results).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_geometric_and_missing_runs_are_said() {
        assert_eq!(geometric_mean(&[]), None);
        assert!((geometric_mean(&[1.0, 4.0]).unwrap_or(0.0) - 2.0).abs() < 1e-12);
        let program = |name, in_mean| Counted { name, words: Vec::new(), smaller: Vec::new(), in_mean };
        let programs = [program("a", true), program("b", true), program("start", false)];
        let way = |name| Way { name, before: None, after_smaller: false };
        let ways = [way("native"), way("count"), way("callgrind")];
        let results = [
            vec![vec![2.0, 1.0, 3.0], vec![4.0, 2.0, 6.0], vec![]],
            vec![vec![1.0], vec![8.0], vec![30.0]],
            vec![vec![0.01], vec![0.02], vec![0.5]],
        ];
        let text = table(&programs, &ways, &results).to_string();
        assert!(text.contains("| a | 1.000 | 2.00 (2.00) | missing |"), "{text}");
        assert!(text.contains("| start | 0.010 | 0.020 s (0.020 s) | 0.500 s (0.500 s) |"), "{text}");
        assert!(text.contains("| geometric mean |  | 4.00 | missing |"), "{text}");
    }

    #[test]
    fn programs_are_chosen_by_parts_of_their_names() {
        let options = Options::parse(&["--rounds=3", "fib", "gzip"]).expect("they are options");
        assert_eq!((options.rounds, options.wanted.len()), (3, 2));
        assert!(Options::parse(&["--rounds=0"]).is_err());
        assert!(Options::parse(&["--fast"]).is_err());
    }

    #[test]
    fn processor_time_of_all_descendants_is_counted() {
        let shell = |script: &str| ["/bin/sh", "-c", script].map(OsString::from);
        let cache = std::env::temp_dir();
        let idle = seconds(&[], &shell("sleep 0.05"), &cache).expect("sh runs");
        let busy = seconds(&[], &shell("(i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done)"), &cache)
            .expect("sh runs");
        assert!(busy > idle, "{busy} {idle}");
        assert!(seconds(&[], &shell("exit 3"), &cache).is_err());
    }
}
