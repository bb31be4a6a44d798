//! The sampling profilers that are compared.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use treering_testing::programs::{EXITS_WITH, Workload, installed};

use crate::frame::Bench;
use crate::measure::{children_seconds, cpu_seconds, succeed};

/// A sampling profiler at about 1 kHz with stacks unwound by DWARF.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    pub(super) kind: &'static Kind,
    program: PathBuf,
}

/// A profiler and its options.
#[derive(Debug)]
pub(super) struct Kind {
    /// The name in tables, and that of the program.
    pub(super) name: &'static str,
    /// The file that it writes.
    file: &'static str,
    /// The options to record, before the file.
    record: &'static [&'static str],
    names: Names,
}

/// How a recording gets its names.
#[derive(Debug)]
enum Names {
    /// It has them.
    AtOnce,
    /// By another command, whose words stand before the file.
    Later(&'static [&'static str]),
    /// When it is recorded with these options.
    Recorded(&'static [&'static str]),
}

const KINDS: [Kind; 3] = [
    Kind {
        name: "treering",
        file: "recording.trg",
        record: &["record", "-F", "1000", "-o"],
        names: Names::AtOnce,
    },
    Kind {
        name: "perf",
        file: "perf.data",
        record: &["record", "--quiet", "-F", "999", "--call-graph", "dwarf,8192", "-o"],
        names: Names::Later(&["report", "--stdio", "-i"]),
    },
    Kind {
        name: "samply",
        file: "samply.json.gz",
        record: &["record", "--save-only", "--rate", "1000", "-o"],
        names: Names::Recorded(&[
            "record",
            "--save-only",
            "--unstable-presymbolicate",
            "--rate",
            "1000",
            "-o",
        ]),
    },
];

/// The processor time of one run, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// The workload alone.
    pub(super) target: f64,
    /// The sampler itself, and whatever else the command started.
    pub(super) own: f64,
    /// The sampler itself in a run that ends with a profile with names.
    pub(super) own_with_names: f64,
}

impl Sampler {
    /// The profilers that run here, and for each of the others a sentence why it does not.
    pub(super) fn find(bench: &Bench) -> (Vec<Self>, Vec<String>) {
        let (mut found, mut absent) = (Vec::new(), Vec::new());
        for kind in &KINDS {
            let ours = (kind.name == "treering").then(|| bench.treering.clone());
            let Some(program) = ours.or_else(|| installed(kind.name)) else {
                absent.push(format!("{} is not installed, so it is not in the table.", kind.name));
                continue;
            };
            let sampler = Self { kind, program };
            match sampler.try_out(bench) {
                Err(error) if kind.name != "treering" => {
                    absent.push(format!("{} does not run here: {error}", kind.name));
                }
                _ => found.push(sampler),
            }
        }
        (found, absent)
    }

    /// Records a program that ends at once.
    fn try_out(&self, bench: &Bench) -> Result<(), String> {
        let program = EXITS_WITH.build().map_err(|error| error.to_string())?;
        let words = [program.into(), "0".into(), "20".into()];
        succeed(&mut self.recording(&self.file(&bench.directory), &words)).map(drop)
    }

    /// The file that it writes.
    pub(super) fn file(&self, directory: &Path) -> PathBuf {
        directory.join(self.kind.file)
    }

    /// One of the profiler's commands.
    pub(super) fn command(&self, words: &[&str], file: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).arg(file);
        command
    }

    /// The command that records `words` into `file`.
    pub(super) fn recording(&self, file: &Path, words: &[OsString]) -> Command {
        let mut command = self.command(self.kind.record, file);
        command.arg("--").args(words);
        command
    }

    /// Runs the workload under the sampler, then again or with another command for names where it needs that.
    pub(super) fn run(&self, workload: &Workload, directory: &Path) -> Result<Cost, String> {
        let file = self.file(directory);
        let launched = launched(workload, directory)?;
        let (target, own) = cost(&mut self.recording(&file, &launched), directory)?;
        let own_with_names = match self.kind.names {
            Names::AtOnce => own,
            Names::Later(words) => own + cpu_seconds(&mut self.command(words, &file))?,
            Names::Recorded(words) => {
                cost(self.command(words, &file).arg("--").args(&launched), directory)?.1
            }
        };
        Ok(Cost { target, own, own_with_names })
    }
}

/// Runs the workload without a sampler.
pub(super) fn run_alone(workload: &Workload, directory: &Path) -> Result<Cost, String> {
    let launched = launched(workload, directory)?;
    let (target, _) = cost(Command::new(&launched[0]).args(&launched[1..]), directory)?;
    Ok(Cost { target, own: 0.0, own_with_names: 0.0 })
}

/// The words that run the workload and write down its processor time.
fn launched(workload: &Workload, directory: &Path) -> Result<Vec<OsString>, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut words = vec![own.into_os_string(), "launch".into(), directory.join("launched.txt").into()];
    words.push(workload.program.clone().into());
    words.extend(workload.arguments.iter().cloned());
    Ok(words)
}

/// The processor time of a launched workload, and that of the rest of the command.
fn cost(command: &mut Command, directory: &Path) -> Result<(f64, f64), String> {
    let before = children_seconds();
    succeed(command)?;
    let total = children_seconds() - before;
    let target = std::fs::read_to_string(directory.join("launched.txt"));
    let target = target.map_err(|error| format!("no launch time: {error}"))?;
    let target: f64 = target.trim().parse().map_err(|_| format!("not a time: {target}"))?;
    Ok((target, total - target))
}
