//! The frame of the benchmarks: their options, rounds of ways in shuffled order, and the files of their results.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use treering_measure::turns;

use crate::table::Table;
use crate::workspace;

/// A benchmark, as the command line knows it.
pub(crate) struct Benchmark {
    pub(crate) name: &'static str,
    /// The package that is built with optimisation and measured.
    pub(crate) package: &'static str,
    /// Options besides `--quick` and `--rounds N`; one with a second word takes a value.
    pub(crate) options: &'static [&'static str],
    /// The words that choose its parts; `None` if it takes any.
    pub(crate) parts: Option<&'static [&'static str]>,
    pub(crate) run: fn(&Bench) -> Result<Report, String>,
}

/// One run of a benchmark.
#[derive(Debug)]
pub(crate) struct Bench {
    /// Few and short runs, to see that the benchmark works; its numbers mean little.
    pub(crate) quick: bool,
    rounds: Option<usize>,
    options: Vec<(String, Option<String>)>,
    /// The parts to run; all when empty.
    pub(crate) parts: Vec<String>,
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
    /// An object: the results for programs to read.
    pub(crate) data: Value,
    /// Further files, by name.
    pub(crate) files: Vec<(&'static str, String)>,
    /// Errors of parts that could not be measured.
    pub(crate) failures: Vec<String>,
    pub(crate) then: Option<Then>,
}

impl Benchmark {
    /// Builds the package, runs the benchmark, prints its page and writes its files.
    pub(crate) fn execute(&self, words: &[&str]) -> Result<(), String> {
        let bench = self.parse(words)?;
        build(self.package)?;
        make_folder(&bench.directory)?;
        let mut page = heading(self.name, bench.quick);
        let mut report = (self.run)(&bench)?;
        report.tables.iter().for_each(|table| page += &format!("\n{table}"));
        page += &format!("\nload {} at the end\n", machine()["load"].as_str().unwrap_or("unknown"));
        print!("{page}");
        (report.data["machine"], report.data["quick"]) = (machine(), json!(bench.quick));
        write(&bench.directory, &format!("{}.md", self.name), &page)?;
        write(&bench.directory, &format!("{}.json", self.name), &format!("{:#}\n", report.data))?;
        for (name, text) in &report.files {
            write(&bench.directory, name, text)?;
        }
        report.then.map_or(Ok(()), |then| then(&page))?;
        if report.failures.is_empty() { Ok(()) } else { Err(report.failures.join("\n")) }
    }

    fn parse(&self, words: &[&str]) -> Result<Bench, String> {
        let target = workspace::target_directory();
        let mut bench = Bench {
            quick: false,
            rounds: None,
            options: Vec::new(),
            parts: Vec::new(),
            directory: target.join(format!("bench-{}", self.name)),
            treering: target.join("release/treering"),
        };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            let (option, value) =
                word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
            match (option, value) {
                ("--quick", None) => bench.quick = true,
                ("--rounds", value) => {
                    let rounds = value.or_else(|| words.next()).and_then(|rounds| rounds.parse().ok());
                    let rounds = rounds.filter(|&rounds| rounds > 0);
                    bench.rounds = Some(rounds.ok_or("--rounds needs a number of rounds")?);
                }
                _ if self.options.contains(&word) => bench.options.push((word.to_owned(), None)),
                _ if self.takes_value(option) => {
                    let value = value.or_else(|| words.next()).ok_or(format!("{option} needs a value"))?;
                    bench.options.push((option.to_owned(), Some(value.to_owned())));
                }
                _ if word.starts_with('-') => {
                    let known = [&["--quick", "--rounds N"], self.options].concat().join(", ");
                    return Err(format!("unknown option {word}; there are {known}"));
                }
                _ if self.parts.is_none_or(|parts| parts.contains(&word)) => {
                    bench.parts.push(word.to_owned());
                }
                _ => {
                    let known = self.parts.unwrap_or_default().join(", ");
                    return Err(format!("unknown part {word} of bench {}; there are: {known}", self.name));
                }
            }
        }
        Ok(bench)
    }

    fn takes_value(&self, option: &str) -> bool {
        self.options.iter().any(|known| known.split_once(' ').is_some_and(|(name, _)| name == option))
    }
}

impl Bench {
    /// The number of rounds: the chosen one, or that of a full or a quick run.
    pub(crate) fn rounds(&self, full: usize, quick: usize) -> usize {
        self.rounds.unwrap_or(if self.quick { quick } else { full })
    }

    /// Whether an option was given.
    pub(crate) fn has(&self, option: &str) -> bool {
        self.options.iter().any(|(given, _)| given == option)
    }

    /// The value that was given for an option.
    pub(crate) fn value(&self, option: &str) -> Option<&str> {
        self.options.iter().rfind(|(given, _)| given == option)?.1.as_deref()
    }

    /// Whether a part is to be run.
    pub(crate) fn wants(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|wanted| wanted == part)
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

/// Builds a package with optimisation.
fn build(package: &str) -> Result<(), String> {
    let status = workspace::cargo().args(["build", "--release", "--quiet", "--package", package]).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("cargo build ended with {status}")),
        Err(error) => Err(format!("cannot run cargo: {error}")),
    }
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

    const NOTHING: Benchmark = Benchmark {
        name: "nothing",
        package: "treering",
        options: &["--docs", "--sources FOLDER"],
        parts: Some(&["one", "two"]),
        run: |_| Ok(Report::default()),
    };

    #[test]
    fn options_and_parts_are_read() {
        let bench = NOTHING.parse(&["--quick", "--docs", "two"]).expect("they are known");
        assert!(bench.quick && bench.has("--docs") && bench.wants("two") && !bench.wants("one"));
        assert_eq!((bench.rounds(9, 2), NOTHING.parse(&[]).expect("nothing").rounds(9, 2)), (2, 9));
        assert!(NOTHING.parse(&[]).is_ok_and(|bench| bench.wants("one") && !bench.has("--docs")));
        for words in [&["--rounds=3"][..], &["--rounds", "3", "--quick"]] {
            assert!(NOTHING.parse(words).is_ok_and(|bench| bench.rounds(9, 2) == 3), "{words:?}");
        }
        for words in [&["--sources=a/b"][..], &["--sources", "a/b", "one"]] {
            assert!(
                NOTHING.parse(words).is_ok_and(|bench| bench.value("--sources") == Some("a/b")),
                "{words:?}"
            );
        }
        for words in [&["--rounds"][..], &["--rounds", "0"], &["--rounds=x"], &["three"], &["--sources"]] {
            assert!(NOTHING.parse(words).is_err(), "{words:?}");
        }
        assert!(NOTHING.parse(&["--fast"]).is_err_and(|error| error.contains("--quick, --rounds N, --docs")));
        assert!(Benchmark { parts: None, ..NOTHING }.parse(&["any"]).is_ok());
    }

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
