//! The sampling profilers that are compared.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use treering_testing::programs::{EXITS_WITH, Workload};

use crate::frame::Bench;
use crate::measure::{children_seconds, cpu_seconds, succeed};

/// A sampling profiler at about 1 kHz with stacks unwound by DWARF.
#[derive(Debug)]
pub(super) struct Sampler {
    /// The name in tables, and that of the program.
    pub(super) name: &'static str,
    /// The file that it writes.
    file: &'static str,
    /// The words to record, before the file.
    record: &'static str,
    names: Names,
}

/// How a recording gets its names.
#[derive(Debug)]
enum Names {
    /// It has them.
    AtOnce,
    /// By another command, whose words stand before the file.
    Later(&'static str),
    /// When it is recorded with these words.
    Recorded(&'static str),
}

const SAMPLERS: [Sampler; 3] = [
    Sampler {
        name: "treering",
        file: "recording.trg",
        record: "treering record -F 1000 -o",
        names: Names::AtOnce,
    },
    Sampler {
        name: "perf",
        file: "perf.data",
        record: "perf record --quiet -F 999 --call-graph dwarf,8192 -o",
        names: Names::Later("perf report --stdio -i"),
    },
    Sampler {
        name: "samply",
        file: "samply.json.gz",
        record: "samply record --save-only --rate 1000 -o",
        names: Names::Recorded("samply record --save-only --unstable-presymbolicate --rate 1000 -o"),
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
        for sampler in SAMPLERS {
            match sampler.try_out(bench) {
                Err(error) if sampler.name != "treering" => {
                    absent.push(format!("{} does not run here: {error}", sampler.name));
                }
                _ => found.push(sampler),
            }
        }
        (found, absent)
    }

    /// Records a program that ends at once.
    fn try_out(&self, bench: &Bench) -> Result<(), String> {
        let program = EXITS_WITH.build().map_err(|error| error.to_string())?;
        self.record(bench, &[program.into(), "0".into(), "20".into()]).map(drop)
    }

    /// Records `words`; returns the file.
    pub(super) fn record(&self, bench: &Bench, words: &[OsString]) -> Result<PathBuf, String> {
        succeed(bench.command(self.record).args([self.file, "--"]).args(words))?;
        Ok(bench.directory.join(self.file))
    }

    /// Runs the workload under the sampler, then again or with another command for names where it needs that.
    pub(super) fn run(&self, bench: &Bench, workload: &Workload) -> Result<Cost, String> {
        let launched = launched(workload, &bench.directory)?;
        let record =
            |words| cost(bench.command(words).args([self.file, "--"]).args(&launched), &bench.directory);
        let (target, own) = record(self.record)?;
        let own_with_names = match self.names {
            Names::AtOnce => own,
            Names::Later(words) => own + cpu_seconds(bench.command(words).arg(self.file))?,
            Names::Recorded(words) => record(words)?.1,
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
