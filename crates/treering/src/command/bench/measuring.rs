//! Runs jobs in turns, round by round in shuffled order, and keeps what was measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use treering_archive::{Archive, Id, Machine, Moment};
use treering_formats::trg;
use treering_measure::{LaunchError, run, turns};
use treering_temporary::Folder;

use super::job::{Job, Record, ended, take_profile};
use super::place::failure;
use crate::failure::{Context as _, Failure};

/// Signals that end the measuring; what was measured is kept.
#[derive(Debug, Default)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    signal: Arc<AtomicI32>,
}

impl Stop {
    /// From now on, these signals stop what is measured. A second one ends this process.
    pub fn at_signals() -> Result<Self, Failure> {
        let stop = Self::default();
        let heeded =
            [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !treering_proc::is_ignored(signal));
        let mut signals = Signals::new(heeded).context("cannot wait for signals")?;
        let (flag, first) = (Arc::clone(&stop.flag), Arc::clone(&stop.signal));
        std::thread::spawn(move || {
            for signal in signals.forever() {
                if first.swap(signal, Ordering::Relaxed) != 0 {
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                }
                flag.store(true, Ordering::Relaxed);
            }
        });
        Ok(stop)
    }

    /// The signal, if one has come.
    pub fn signal(&self) -> Option<i32> {
        Some(self.signal.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
    }

    /// The flag that stops launched programs.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.flag
    }

    fn has_come(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }
}

/// More runs are a mistake of the user.
const MOST_RUNS: usize = 10_000_000;

/// A program that does the same in each run counts the same twice.
const TIMES_COUNTED: usize = 2;

/// Measures all jobs: first what is counted, then so many rounds.
pub fn measure(jobs: &[Job], rounds: usize, stop: &Stop) -> Result<Vec<Record>, Failure> {
    if jobs.len().checked_mul(rounds).is_none_or(|runs| runs > MOST_RUNS) {
        return Err(Failure::new(format_args!("these are more than {MOST_RUNS} runs")));
    }
    let folder = Folder::create("bench").context("cannot make a folder for profiles")?;
    let mut records: Vec<Record> =
        jobs.iter().map(|_| Record { started: Moment::now(), ..Record::default() }).collect();
    let counted = jobs.iter().filter(|job| job.measure.instructions).count();
    let timed: Vec<usize> =
        (0..jobs.len()).filter(|&at| jobs[at].measure.time || jobs[at].measure.memory).collect();
    let progress = Progress::of(TIMES_COUNTED * counted + timed.len() * rounds);
    for (job, record) in jobs.iter().zip(&mut records).filter(|(job, _)| job.measure.instructions) {
        if stop.has_come() {
            break;
        }
        record.started = Moment::now();
        for _ in 0..TIMES_COUNTED {
            progress.on(&format!("{} · counting", job.name()));
            if record.failed.is_none() && !stop.has_come() {
                count(job, record, &folder, stop)?;
            }
        }
    }
    let seed = Moment::now().0;
    for turn in turns(timed.len(), rounds, seed) {
        let at = timed[turn.version];
        let (job, record) = (&jobs[at], &mut records[at]);
        if stop.has_come() {
            break;
        }
        let round = record.samples.len() + 1;
        progress.on(&format!("{} · round {round} of {rounds}", job.name()));
        if record.failed.is_some() {
            continue;
        }
        if round == 1 && record.counted.is_none() {
            record.started = Moment::now();
        }
        match run(&job.launch(folder.path(), stop.flag())) {
            Ok(sample) => record.add(sample, take_profile(folder.path()), round, rounds),
            Err(LaunchError::Stopped) => break,
            Err(error) => record.failed = Some(format!("round {round} of {rounds}: {error}")),
        }
    }
    drop(progress);
    Ok(records)
}

/// Counts a job's instructions and calls.
fn count(job: &Job, record: &mut Record, folder: &Folder, stop: &Stop) -> Result<(), Failure> {
    let path = folder.path().join("counted.trg");
    let launch = job.launch_count(&path, stop.flag()).context("cannot find this program")?;
    let failed = match run(&launch) {
        Ok(sample) if sample.ended.is_success() => read_counted(&path, record).err(),
        Ok(sample) => {
            let last = sample.last_error.map_or(String::new(), |line| format!("; its last line: {line}"));
            Some(format!("failed with {} while it was counted{last}", ended(sample.ended)))
        }
        Err(LaunchError::Stopped) => None,
        Err(error) => Some(format!("not counted: {error}")),
    };
    record.failed = failed;
    let _ = std::fs::remove_file(path);
    Ok(())
}

fn read_counted(path: &std::path::Path, record: &mut Record) -> Result<(), String> {
    let bytes = std::fs::read(path).map_err(|error| format!("its counts cannot be read: {error}"))?;
    let (profile, _) = trg::read(&bytes).map_err(|error| format!("its counts cannot be read: {error}"))?;
    let metric = profile.find_metric("instructions").ok_or("no instructions were counted")?;
    let instructions = profile.run_cost(metric);
    match record.counted {
        None => record.counted = Some((bytes, instructions)),
        Some(_) => record.counted_again = Some(instructions),
    }
    Ok(())
}

/// Keeps every job that was measured and has not failed.
pub fn keep(archive: &mut Archive, jobs: &[Job], records: &[Record]) -> Result<Vec<Id>, Failure> {
    let machine = Machine::here();
    let session = format!("{} {}", Moment::now(), std::process::id());
    let mut kept = Vec::new();
    for (job, record) in jobs.iter().zip(records).filter(|(_, record)| record.is_worth_keeping()) {
        let manifest = record.manifest(job, &machine, &session);
        kept.push(archive.add_with_profiles(&manifest, &record.profiles()).map_err(failure)?);
    }
    Ok(kept)
}

/// A line on a terminal's standard error that says how far the measuring is. In a pipe nothing is said.
struct Progress {
    bar: ProgressBar,
    all: usize,
    begin: Instant,
}

impl Progress {
    fn of(all: usize) -> Self {
        // Indicatif draws nothing where standard error is no terminal.
        let bar = ProgressBar::new(all as u64);
        bar.set_style(ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, all, begin: Instant::now() }
    }

    fn on(&self, what: &str) {
        let done = self.bar.position();
        let left = match done {
            0 => String::new(),
            _ => {
                let each = self.begin.elapsed().as_secs_f64() / done as f64;
                let left = Duration::from_secs_f64(each * (self.all as u64).saturating_sub(done) as f64);
                format!(" · {} s left", left.as_secs())
            }
        };
        let what = treering_report::printable(what).into_owned();
        self.bar.set_message(format!("bench    {} of {} · {what}{left} · Ctrl-C keeps", done + 1, self.all));
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
