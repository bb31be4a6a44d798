//! `treering bench run`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use treering_archive::{Archive, Id};
use treering_report::plural;

use super::amount::amount;
use super::columns::print;
use super::job::{Job, Measure, Record};
use super::list;
use super::measuring::{Stop, keep, measure};
use super::parameters::{Parameter, Template, check_used, combinations};
use super::place::{Place, failure};
use super::suite::{self, Suite};
use super::version::version_of;
use crate::arguments::seconds;
use crate::ending::ended_by;
use crate::failure::{Failure, Outcome};
use crate::terminal;

/// Run a program over parameters, in shuffled rounds, and keep what was measured
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Values are words and ranges: 1000,2000 or 250..8000*2 (doubling) or 1..10 or 10..100+10. \
Several parameters cross. Programs with CBS's macros, or linked with Treering's runtime, \
are kept with their own parameters, results and profile.

Examples:
  treering bench run -p size=250..8000*2 -- ./solve {size}
  treering bench run -p size=1000,2000 -p algo=list,map --exact -- ./solve {size} {algo}
  treering bench run --suite bench.toml          what `make bench` was
  treering bench run --suite bench.toml lua      one program of it

Exit status: 0, or 2 if a program failed; the others are kept.")]
pub struct Run {
    /// A parameter and its values; its name in braces is where it stands in the command
    #[arg(short, long = "parameter", value_name = "NAME=VALUES")]
    parameters: Vec<Parameter>,
    /// Run everything N times, each round in another order [default: 15]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rounds: Option<u32>,
    /// Count instructions and calls too, in two runs of their own, and keep the profile of the first
    #[arg(long)]
    exact: bool,
    /// Measure these: instructions, time, memory [default: time,memory]
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["suite", "exact"])]
    measure: Vec<String>,
    /// End a run that takes longer; its program has failed
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// The program's name in lists [default: the words of the command without parameters]
    #[arg(long, value_name = "NAME", conflicts_with = "suite", value_parser = NonEmptyStringValueParser::new())]
    name: Option<String>,
    /// The version's name in lists [default: the commit]
    #[arg(long, value_name = "NAME", conflicts_with = "suite")]
    version_name: Option<String>,
    /// Run the programs of a file; see docs/bench.md
    #[arg(long, value_name = "FILE", conflicts_with = "parameters")]
    suite: Option<PathBuf>,
    /// Print JSON of the runs that were kept
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
    /// The program and its arguments; with --suite, names of its programs
    #[arg(trailing_var_arg = true, required_unless_present = "suite", value_name = "PROGRAM ARGS")]
    command: Vec<OsString>,
}

/// How often everything is run if the user does not say.
const ROUNDS: usize = 15;

impl Run {
    /// Does it.
    pub fn run(self) -> Outcome {
        let stop = Stop::at_signals()?;
        let mut archive = self.place.open()?;
        // An archive that cannot be written is found before the measuring, which may take hours.
        archive.new_input().map_err(failure)?;
        let (jobs, rounds, _built) = match &self.suite {
            None => (self.jobs()?, ROUNDS, None),
            Some(path) => {
                let suite = Suite::read(path)?;
                let asked =
                    suite::Asked { programs: &self.command, exact: self.exact, timeout: self.timeout };
                let (jobs, built) = suite.jobs(&asked, &mut archive, &stop)?;
                (jobs, suite.rounds().unwrap_or(ROUNDS), Some(built))
            }
        };
        let rounds = self.rounds.map_or(rounds, |rounds| rounds as usize);
        let mut records = measure(&jobs, rounds, &stop)?;
        check_outputs(&jobs, &mut records);
        check_described(&jobs, &mut records);
        let kept = keep(&mut archive, &jobs, &records)?;
        self.print(&mut archive, &kept)?;
        warn(&jobs, &records);
        let failed = tell_failures(&jobs, &records);
        match stop.signal() {
            Some(signal) => {
                let done = records.iter().map(|record| record.samples.len()).min().unwrap_or(0);
                tell!("interrupted after {}; what was measured is kept", plural(done as u64, "whole round"));
                Ok(ExitCode::from(ended_by(signal)))
            }
            None if failed => Ok(ExitCode::from(2)),
            None => Ok(ExitCode::SUCCESS),
        }
    }

    /// A job for each combination of parameters.
    fn jobs(&self) -> Result<Vec<Job>, Failure> {
        let names: Vec<&str> = self.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
        let braces = "write {{ and }} for braces that are no parameter's";
        let template =
            Template::new(&self.command, &names).map_err(|error| Failure::new(error).hint(braces))?;
        check_used(&self.parameters, |name| template.has(name)).map_err(Failure::new)?;
        let all = combinations(&self.parameters).map_err(Failure::new)?;
        let version = version_of(std::path::Path::new("."), self.version_name.as_deref());
        let measure = self.measure()?;
        let job = |values: super::parameters::Values| Job {
            program: self.name.clone().unwrap_or_else(|| template.name()),
            version: version.clone(),
            words: template.fill(|name| values.get(name).cloned().unwrap_or_default().into()),
            values,
            directory: None,
            input: None,
            timeout: self.timeout,
            measure,
            same: false,
            cbs: false,
        };
        Ok(all.into_iter().map(job).collect())
    }

    fn measure(&self) -> Result<Measure, Failure> {
        if self.measure.is_empty() {
            return Ok(Measure { instructions: self.exact, time: true, memory: true });
        }
        suite::measure(&self.measure).map_err(Failure::new)
    }

    fn print(&self, archive: &mut Archive, kept: &[Id]) -> Result<(), Failure> {
        let mut summaries = archive.summaries(None).map_err(failure)?;
        summaries.retain(|summary| kept.contains(&summary.run));
        // In the order in which they were asked for.
        summaries.sort_by_key(|summary| kept.iter().position(|id| *id == summary.run));
        if self.json {
            let text = serde_json::json!({ "runs": summaries });
            return terminal::print(&format!("{text:#}\n"));
        }
        if summaries.is_empty() {
            return Ok(());
        }
        print(&list::text(&summaries, summaries.len()))
    }
}

/// Versions that must print the same, and do not, are not compared: they have failed.
fn check_outputs(jobs: &[Job], records: &mut [Record]) {
    for first in 0..jobs.len() {
        for second in first + 1..jobs.len() {
            let (of, other) = (&jobs[first], &jobs[second]);
            if !of.same || (&of.program, &of.values) != (&other.program, &other.values) {
                continue;
            }
            let output = |at: usize| {
                records[at].samples.first().map(|sample: &treering_measure::Sample| sample.output)
            };
            let (Some(base), Some(head)) = (output(first), output(second)) else { continue };
            if base.digest != head.digest {
                let why = format!(
                    "does other work than {}: their outputs differ, {} against {} bytes; same = \"none\" allows that",
                    of.version.name, head.bytes, base.bytes
                );
                records[second].failed.get_or_insert(why);
            }
        }
    }
}

/// A program that should describe itself, and does not, was not linked with the runtime.
fn check_described(jobs: &[Job], records: &mut [Record]) {
    for (job, record) in jobs.iter().zip(records) {
        if job.cbs && !record.samples.is_empty() && !record.is_described() {
            let why =
                "has no parameters and results: link it with -ltreering, and set no TREERING=off".to_owned();
            record.failed.get_or_insert(why);
        }
    }
}

/// Runs that are over at once measure the start of a process, and those of programs that do other work each time tell
/// less of it.
fn warn(jobs: &[Job], records: &[Record]) {
    for (job, record) in jobs.iter().zip(records).filter(|(_, record)| record.is_worth_keeping()) {
        record.notes().iter().for_each(|note| tell!("warning: {}: {note}", job.name()));
    }
    const SHORT: Duration = Duration::from_millis(2);
    let median = |record: &Record| {
        let times: Vec<f64> = record.samples.iter().map(|sample| sample.cpu().as_nanos() as f64).collect();
        treering_archive::median(&times)
    };
    let is_short = |record: &&Record| median(record).is_some_and(|median| median < SHORT.as_nanos() as f64);
    let short = jobs.iter().zip(records).filter(|(job, record)| job.measure.time && is_short(record)).count();
    if short > 0 {
        let limit = amount(SHORT.as_nanos() as f64, treering_archive::Unit::Ns);
        tell!(
            "warning: {} took less than {limit} a round, which is mostly the start of a process",
            plural(short as u64, "run")
        );
    }
}

fn tell_failures(jobs: &[Job], records: &[Record]) -> bool {
    let mut failed = false;
    for (job, record) in jobs.iter().zip(records) {
        if let Some(why) = &record.failed {
            failed = true;
            tell!("error: {}: {why}; nothing of it is kept", job.name());
        }
    }
    failed
}
