//! A program with one set of parameters in one version: what is measured in turns with others.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use treering_archive::{Id, Machine, Manifest, Measured, Moment, Named, Unit, Version, Word, metric};
use treering_formats::trg;
use treering_measure::{Ended, Launch, Sample};
use treering_profile::Profile;
use treering_report::grouped;

use super::import::{OWN, is_reserved, results};
use super::parameters::Values;
use crate::ending::signal_name;

/// The measurements that a user may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Instructions and calls, counted exactly in a run of its own.
    pub instructions: bool,
    /// Processor time and wall time of every round.
    pub time: bool,
    /// The peak of memory of every round.
    pub memory: bool,
}

/// A program that is to be run.
#[derive(Clone, Debug)]
pub struct Job {
    pub program: String,
    pub version: Version,
    pub values: Values,
    pub words: Vec<OsString>,
    pub directory: Option<PathBuf>,
    pub input: Option<Id>,
    pub timeout: Option<Duration>,
    pub measure: Measure,
    /// Whether every version must print the same.
    pub same: bool,
    /// Whether it describes itself as a benchmark, so that it is an error if it does not.
    pub cbs: bool,
}

/// The measurements of a job.
#[derive(Debug, Default)]
pub struct Record {
    pub started: Moment,
    pub samples: Vec<Sample>,
    /// The results that the program stated in each round.
    pub results: Vec<Vec<Named>>,
    /// The parameters that it stated.
    pub stated: Vec<(String, String)>,
    /// The profile that the program wrote in the first round.
    pub own: Option<Vec<u8>>,
    /// The profile of the run in which it was counted, and the instructions.
    pub counted: Option<(Vec<u8>, u64)>,
    /// The instructions of a second such run: as many, if the program does the same each time.
    pub counted_again: Option<u64>,
    /// Why it is not measured any more.
    pub failed: Option<String>,
}

/// The maker of a profile that was counted.
pub const COUNTED: &str = "treering count --tree";

impl Job {
    /// How it is named to the user: `lua n=4000 gc400`.
    pub fn name(&self) -> String {
        let values = self.values.iter().map(|(name, value)| format!("{name}={value}"));
        let version = Some(self.version.name.clone()).filter(|name| !name.is_empty());
        std::iter::once(self.program.clone()).chain(values).chain(version).collect::<Vec<_>>().join(" ")
    }

    /// The command, which writes its own profiles, if it does, into a folder.
    pub fn launch(&self, profiles: &Path, stop: &Arc<AtomicBool>) -> Launch {
        Launch {
            words: self.words.clone(),
            environment: Some(environment("TREERING_OUTPUT", profiles.join("%p.trg").into_os_string())),
            directory: self.directory.clone(),
            timeout: self.timeout,
            stop: Some(Arc::clone(stop)),
            ..Launch::default()
        }
    }

    /// The command that counts it into a file.
    pub fn launch_count(&self, output: &Path, stop: &Arc<AtomicBool>) -> std::io::Result<Launch> {
        /// Counting takes that many times as long as the program at most.
        const SLOWER: u32 = 20;
        let options = ["count", "--tree", "--fixed", "--quiet", "--output"].map(OsString::from);
        let mut words = vec![std::env::current_exe()?.into_os_string()];
        words.extend(options);
        words.extend([output.as_os_str().to_owned(), "--".into()]);
        words.extend(self.words.iter().cloned());
        Ok(Launch {
            words,
            // The instructions of the program, without those of measuring itself.
            environment: Some(environment("TREERING", "off".into())),
            directory: self.directory.clone(),
            timeout: self.timeout.map(|timeout| timeout * SLOWER),
            stop: Some(Arc::clone(stop)),
            ..Launch::default()
        })
    }
}

/// The environment of this process with one variable more.
fn environment(name: &str, value: OsString) -> Vec<(OsString, OsString)> {
    let others = std::env::vars_os().filter(|(other, _)| other.as_os_str() != name);
    others.chain(std::iter::once((name.into(), value))).collect()
}

impl Record {
    /// Adds a round, with the profile that the program wrote in it.
    pub fn add(&mut self, sample: Sample, profile: Option<(Vec<u8>, Profile)>, round: usize, rounds: usize) {
        if !sample.ended.is_success() {
            let last =
                sample.last_error.as_ref().map_or(String::new(), |line| format!("; its last line: {line}"));
            self.failed =
                Some(format!("failed in round {round} of {rounds} with {}{last}", ended(sample.ended)));
            return;
        }
        if let Some((bytes, profile)) = profile {
            self.results.push(results(&profile));
            if self.own.is_none() {
                let benchmark = profile.metadata.benchmark;
                self.stated = benchmark.map_or(Vec::new(), |benchmark| benchmark.parameters);
                self.own = Some(bytes);
            }
        }
        self.samples.push(sample);
    }

    /// Whether the program described itself.
    pub fn is_described(&self) -> bool {
        self.results.iter().any(|results| !results.is_empty()) || !self.stated.is_empty()
    }

    /// Whether anything was measured.
    pub fn is_worth_keeping(&self) -> bool {
        self.failed.is_none() && (!self.samples.is_empty() || self.counted.is_some())
    }

    /// The manifest of what was measured.
    pub fn manifest(&self, job: &Job, machine: &Machine, session: &str) -> Manifest {
        let mut samples = std::collections::BTreeMap::new();
        let mut add = |name: &str, unit: Unit, values: Vec<f64>| {
            if !values.is_empty() {
                samples.insert(name.to_owned(), Measured { unit, values });
            }
        };
        let of = |value: &dyn Fn(&Sample) -> f64| self.samples.iter().map(value).collect::<Vec<f64>>();
        if job.measure.time {
            add(metric::CPU, Unit::Ns, of(&|sample| sample.cpu().as_nanos() as f64));
            add(metric::WALL, Unit::Ns, of(&|sample| sample.wall.as_nanos() as f64));
        }
        if job.measure.memory {
            add(metric::MEMORY, Unit::Bytes, of(&|sample| sample.peak_bytes as f64));
        }
        let counts = self.counts();
        add(metric::INSTRUCTIONS, Unit::Count, counts.iter().map(|&count| count as f64).collect());
        for (name, values) in self.numeric_results() {
            add(&name, Unit::Count, values);
        }
        let mut parameters: Values = self.stated.iter().cloned().collect();
        parameters.extend(job.values.clone());
        let outputs: std::collections::BTreeSet<_> =
            self.samples.iter().map(|sample| sample.output.digest).collect();
        let output = outputs.first().filter(|_| outputs.len() == 1);
        Manifest {
            program: job.program.clone(),
            command: job.words.iter().map(Word::from).collect(),
            directory: job.directory.clone().or_else(|| std::env::current_dir().ok()).map(Word::from),
            parameters,
            results: self.results.first().cloned().unwrap_or_default(),
            version: job.version.clone(),
            machine: machine.clone(),
            started: self.started,
            session: session.to_owned(),
            clock: "processor time of the process and its children as the kernel states it; monotonic clock"
                .to_owned(),
            samples,
            input: job.input.clone(),
            output: output.map(|digest| digest.iter().map(|byte| format!("{byte:02x}")).collect()),
            notes: self.notes(),
            written_by: format!("treering {}", env!("CARGO_PKG_VERSION")),
            ..Manifest::default()
        }
    }

    /// The instructions of each run that was counted.
    fn counts(&self) -> Vec<u64> {
        let first = self.counted.iter().map(|(_, instructions)| *instructions);
        first.chain(self.counted_again).collect()
    }

    /// How its runs differed from each other, other than in time and memory.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.samples.windows(2).any(|pair| pair[0].output.digest != pair[1].output.digest) {
            notes.push("its output differed from round to round".to_owned());
        }
        if let [first, again] = self.counts()[..]
            && first != again
        {
            let (first, again) = (grouped(first), grouped(again));
            notes.push(format!("two runs of it were counted, with {first} and {again} instructions"));
        }
        notes
    }

    /// Its profiles, and what made them.
    pub fn profiles(&self) -> Vec<(&[u8], &'static str)> {
        let counted = self.counted.iter().map(|(bytes, _)| (bytes.as_slice(), COUNTED));
        counted.chain(self.own.iter().map(|bytes| (bytes.as_slice(), OWN))).collect()
    }

    /// Results that are numbers in every round.
    fn numeric_results(&self) -> Vec<(String, Vec<f64>)> {
        let Some(first) = self.results.first() else { return Vec::new() };
        let number = |results: &Vec<Named>, name: &str| {
            let value = results.iter().find(|one| one.name == name)?.value.trim().parse::<f64>().ok()?;
            value.is_finite().then_some(value)
        };
        let names = first.iter().map(|one| one.name.clone()).filter(|name| !is_reserved(name));
        let numeric = names.filter_map(|name| {
            let values: Option<Vec<f64>> =
                self.results.iter().map(|results| number(results, &name)).collect();
            values.filter(|values| values.len() == self.samples.len()).map(|values| (name, values))
        });
        numeric.collect()
    }
}

/// `status 1` or `SIGSEGV`.
pub fn ended(how: Ended) -> String {
    match how {
        Ended::Exited(status) => format!("status {status}"),
        Ended::Killed(signal) => signal_name(signal),
    }
}

/// The profile that a program has written into a folder, which is empty afterwards: that of the program itself, if it has
/// described itself, or else the first one.
pub fn take_profile(folder: &Path) -> Option<(Vec<u8>, Profile)> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut found: Vec<(Vec<u8>, Profile)> = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|ending| ending == "trg")) {
        let bytes = std::fs::read(path).ok();
        found.extend(bytes.and_then(|bytes| {
            let profile = trg::read(&bytes).ok()?.0;
            Some((bytes, profile))
        }));
    }
    paths.iter().for_each(|path| drop(std::fs::remove_file(path)));
    let described = found.iter().position(|(_, profile)| profile.metadata.benchmark.is_some());
    (!found.is_empty()).then(|| found.swap_remove(described.unwrap_or(0)))
}
