//! `cargo xtask bench record`: what recording costs and how good it is, side by side with other tools;
//! `bench count`: what exact counting costs; `bench profilers`: how long one program takes under each kind of profiler;
//! `bench view`: how quickly pages show large profiles; `bench compare`: how often comparisons are right.
//!
//! Runs of all tools are interleaved in random order, because the machine is rarely idle and
//! drifts; what is compared is processor time, never wall time, of runs in the same round.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command that speaks to developers")]

mod aliasing;
mod attached;
mod compare;
mod count;
mod gprof;
mod large;
mod large_binary;
mod launch;
mod lives;
mod measure;
mod octave;
mod overhead;
mod plot;
mod profilers;
mod prolog;
mod recorded;
mod sampler;
mod stacks;
mod statistics;
mod symbols;
mod table;
mod view;
mod workspace;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Map, Value, json};

use table::Table;

/// What was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Few and short runs, to see that the benchmark works; its numbers mean little.
    quick: bool,
    /// The parts to run; all when empty.
    parts: Vec<String>,
    /// Where results and recordings are written.
    directory: PathBuf,
    /// The treering that is measured, built with optimisation.
    treering: PathBuf,
}

/// A part of the benchmark: its table for people, its data for programs.
struct Part {
    table: Table,
    data: Value,
}

/// The parts by name, in the order they are run.
type Measurement = fn(&Options) -> Result<Part, String>;
const PARTS: &[(&str, Measurement)] = &[
    ("overhead", overhead::measure),
    ("stacks", stacks::measure),
    ("aliasing", aliasing::measure),
    ("lives", lives::measure),
    ("symbols", symbols::measure),
    ("large", large::measure),
];

/// A benchmark with its name. Each takes the words after its name.
type Benchmark = (&'static str, fn(&[&str]) -> Result<(), String>);
const BENCHMARKS: [Benchmark; 8] = [
    ("record", record),
    ("count", count::run),
    ("compare", compare::run),
    ("profilers", profilers::run),
    ("gprof", gprof::run),
    ("octave", octave::run),
    ("view", view::run),
    ("prolog", prolog::run),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        // Benchmarks start programs with these two.
        ["launch", program @ ..] => return launch::launch(program),
        ["repeat", program @ ..] => return launch::repeat(program),
        [name, options @ ..] => match BENCHMARKS.iter().find(|(known, _)| known == name) {
            Some((_, run)) => run(options),
            None => Err(unknown(name)),
        },
        [] => Err(unknown("")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.lines().for_each(|line| eprintln!("error: {line}"));
            ExitCode::FAILURE
        }
    }
}

fn unknown(name: &str) -> String {
    format!("unknown benchmark {name:?}; there are {}", BENCHMARKS.map(|(known, _)| known).join(", "))
}

/// Whether a benchmark that has no other option is to be quick.
fn is_quick(words: &[&str]) -> Result<bool, String> {
    match words {
        [] => Ok(false),
        ["--quick"] => Ok(true),
        _ => Err(format!("unknown option {}; there is --quick", words.join(" "))),
    }
}

/// Runs `bench record` with its arguments. The error names what went wrong in parts that could not be measured, a line
/// for each.
fn record(words: &[&str]) -> Result<(), String> {
    let failures = Options::parse(words).and_then(|options| measure(&options))?;
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

impl Options {
    fn parse(words: &[&str]) -> Result<Self, String> {
        let (flags, parts): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
        if let Some(flag) = flags.iter().find(|flag| **flag != "--quick") {
            return Err(format!("unknown option {flag}; there is --quick"));
        }
        let known = |part: &&str| PARTS.iter().any(|(name, _)| name == part);
        if let Some(part) = parts.iter().find(|part| !known(part)) {
            let names: Vec<_> = PARTS.iter().map(|(name, _)| *name).collect();
            return Err(format!("unknown part {part}; there are {}", names.join(", ")));
        }
        let target = workspace::target_directory();
        Ok(Self {
            quick: !flags.is_empty(),
            parts: parts.iter().map(|&part| part.to_owned()).collect(),
            directory: target.join("bench-record"),
            treering: target.join("release/treering"),
        })
    }
}

/// Builds treering, runs the parts, prints their tables and writes both files. Returns what went
/// wrong in parts that could not be measured.
fn measure(options: &Options) -> Result<Vec<String>, String> {
    build("treering")?;
    std::fs::create_dir_all(&options.directory)
        .map_err(|error| format!("cannot make {}: {error}", options.directory.display()))?;
    let (mut page, mut data, mut failures) = (heading("record", options.quick), Map::new(), Vec::new());
    for (name, part) in PARTS {
        if !options.parts.is_empty() && !options.parts.iter().any(|wanted| wanted == name) {
            continue;
        }
        eprintln!("measuring {name}");
        match part(options) {
            Ok(part) => {
                page += &format!("\n{}", part.table);
                data.insert((*name).to_owned(), part.data);
            }
            Err(error) => failures.push(format!("{name}: {error}")),
        }
    }
    print!("{page}");
    let data = json!({"machine": machine(), "quick": options.quick, "parts": data});
    write(&options.directory, "record.md", &page)?;
    write(&options.directory, "record.json", &format!("{data:#}\n"))?;
    Ok(failures)
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

fn heading(name: &str, quick: bool) -> String {
    let quick = if quick { " (quick: few short runs, which prove little)" } else { "" };
    let lines = machine();
    let field = |name: &str| lines[name].as_str().unwrap_or("unknown").to_owned();
    format!(
        "# cargo xtask bench {name}{quick}\n\n{}, {} processors, Linux {}, load {} at the start\n",
        field("cpu"),
        lines["cpus"],
        field("kernel"),
        field("load")
    )
}

/// What the numbers depend on.
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

fn write(directory: &Path, name: &str, text: &str) -> Result<(), String> {
    let path = directory.join(name);
    std::fs::write(&path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    eprintln!("wrote {}", path.display());
    Ok(())
}
