//! `treering stat`: counts events in a program, and says how sure the numbers are.

mod counted;
mod events;
mod exact;
mod sink;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use treering_perf::{CountOptions, CountedRun, EventCounts, Finish, RecordError, Target, count_events};

use treering_stat::Metric;
use treering_translator::{stop_after_children, stop_with_program};

use crate::arguments::seconds;
use crate::ending::ended_by;
use crate::failure::{Failure, Outcome};
use crate::hint::against_no_recording;
use crate::output::check_stat_target;

use counted::{Given, Intervals, Whole};
use events::Events;
use sink::{Form, Sink};

/// Count events: processor time, switches, page faults, and the processor's own counters
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  treering stat -- ./solve input.txt          time, switches, faults, cycles, instructions
  treering stat -r 10 -- ./solve              the mean of ten runs, and how far it may be off
  treering stat -e cycles,instructions:u,sched:sched_switch -- ./solve
  treering stat -I 100 -p 4711                a running process, ten times a second
  treering stat --json -o stat.json -- ./solve
  treering stat --exact --by function -- ./solve   the mix of instructions, exactly")]
pub struct Stat {
    /// The events, by perf's names (cycles, page-faults, sched:sched_switch, r01c4 ...), as a list or by several -e;
    /// those in braces are counted at the same times: '{cycles,instructions}'
    #[arg(short, long, value_name = "EVENTS")]
    event: Vec<String>,

    /// Tell which part of the processor's slots was used, and what kept the others empty, up to this level of top-down
    /// metrics: 1 or 2
    #[arg(long, value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "1",
          value_parser = clap::value_parser!(u8).range(1..=2))]
    top_down: Option<u8>,

    /// Tell the counts of each thread as well
    #[arg(long, conflicts_with_all = ["pid", "repeat", "interval", "csv", "exact"])]
    per_thread: bool,

    /// Tell the counts of each process as well, with those of its threads
    #[arg(long, conflicts_with_all = ["per_thread", "pid", "repeat", "interval", "csv", "exact"])]
    per_process: bool,

    /// Run the program N times, and tell the mean with its 95 % confidence interval
    #[arg(short, long = "repeat", value_name = "N", default_value_t = 1, conflicts_with = "pid",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,

    /// Print what was counted every MS milliseconds too
    #[arg(short = 'I', long, value_name = "MS", conflicts_with = "repeat",
          value_parser = clap::value_parser!(u64).range(1..))]
    interval: Option<u64>,

    /// Count in a running process, in its threads and in what these make from now on, until it ends or Ctrl-C
    #[arg(short, long, value_name = "PID", conflicts_with = "command")]
    pid: Option<u32>,

    /// Stop counting in the running process after this many seconds
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds, requires = "pid")]
    duration: Option<Duration>,

    /// Count instructions exactly instead, without the kernel's events: by kind, with the bytes that they load and store,
    /// and the sizes of basic blocks
    #[arg(long, conflicts_with_all = ["event", "top_down", "repeat", "interval", "pid"])]
    exact: bool,

    /// Tell the exact counts of each function as well
    #[arg(long, value_name = "PART", requires = "exact")]
    by: Option<exact::By>,

    /// The most functions that the table has
    #[arg(long, value_name = "N", requires = "by", default_value_t = 20)]
    top: usize,

    /// Model caches, branch prediction, or both, and count misses with the exact counts
    #[arg(long, value_name = "cache,branch", requires = "exact", value_delimiter = ',',
          value_parser = ["cache", "branch"])]
    model: Vec<String>,

    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Write to FILE, `-` for standard output, instead of standard error
    #[arg(short, long, value_name = "FILE", value_parser = crate::output_name::parser())]
    output: Option<PathBuf>,

    /// Replace FILE even if it is nothing that this command wrote
    #[arg(long, requires = "output")]
    force: bool,

    /// The program and its arguments
    #[arg(trailing_var_arg = true, required_unless_present = "pid", value_name = "PROGRAM ARGS")]
    command: Vec<OsString>,
}

impl Stat {
    /// Counts, prints, and passes on the program's exit status.
    pub fn run(self) -> Outcome {
        let events = Events::parse(&self.event)?;
        if let Some(output) = &self.output {
            check_stat_target(output, self.force)?;
        }
        let form = if self.json {
            Form::Json
        } else if self.csv {
            Form::Csv
        } else {
            Form::Text
        };
        let mut sink = Sink::open(self.output.clone(), form, self.interval.is_some())?;
        if self.exact {
            return self.count_exactly(&mut sink);
        }
        let metrics = self.top_down.map(events::top_down).transpose()?.unwrap_or_default();
        let options = CountOptions {
            target: match self.pid {
                Some(pid) => Target::Attach(pid),
                None => Target::Launch(self.command.clone()),
            },
            groups: [events.groups.clone(), events::groups_of(&metrics)].concat(),
            interval: self.interval.map(Duration::from_millis),
            duration: self.duration,
            per_thread: self.per_thread || self.per_process,
        };
        let mut whole = Whole::new(self.given(&events, &metrics));
        let finish = loop {
            let run = self.count_once(&options, self.given(&events, &metrics), &mut sink)?;
            let is_last = run.interrupted || whole.len() + 1 == self.repeat as usize;
            let finish = whole.add(run);
            if is_last || was_interrupted(&finish) {
                break finish;
            }
        };
        let status = exit_status(&finish);
        let written = sink.write_whole(&whole.finish(self.repeat));
        // The program's own status tells more than that its counts could not be written.
        written.map_err(|failure| failure.status(if status == 0 { 1 } else { status }))?;
        Ok(ExitCode::from(status))
    }

    fn given<'a>(&self, events: &'a Events, metrics: &'a [Metric]) -> Given<'a> {
        let command = self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        Given { events, command, pid: self.pid, metrics, whole_processes: self.per_process }
    }

    fn count_once(
        &self,
        options: &CountOptions,
        given: Given<'_>,
        sink: &mut Sink,
    ) -> Result<CountedRun, Failure> {
        let mut intervals = Intervals::new(given);
        let mut failed = None;
        let mut observe = |counts: &EventCounts| {
            let (stat, from, until) = intervals.next(counts);
            failed = failed.take().or_else(|| sink.write_interval(&stat, from, until).err());
        };
        if matches!(options.target, Target::Launch(_)) {
            let _ = stop_after_children();
        }
        let run = count_events(options, &mut observe);
        let _ = stop_with_program(false);
        let run = run.map_err(|error| {
            let failure = Failure::new(&error).status(error.exit_status());
            let fewer = is_full(&error).then(|| "or count fewer events: -e task-clock".to_owned());
            against_no_recording(&error).into_iter().chain(fewer).fold(failure, Failure::hint)
        })?;
        if options.interval.is_some() {
            observe(&run.counts);
        }
        match failed {
            Some(failure) => Err(failure),
            None => Ok(run),
        }
    }
}

/// Whether too many files are open: each thread of a running process needs one for each event.
fn is_full(error: &RecordError) -> bool {
    matches!(error, RecordError::System { source, .. } if source.raw_os_error() == Some(libc::EMFILE))
}

/// Whether a run ended by the user's wish, so that no other follows.
fn was_interrupted(finish: &Finish) -> bool {
    const INTERRUPTS: [i32; 5] = [libc::SIGINT, libc::SIGTERM, libc::SIGKILL, libc::SIGHUP, libc::SIGQUIT];
    matches!(finish, Finish::Killed(signal) if INTERRUPTS.contains(signal))
}

/// The exit status that a shell would give. By a signal that has ended the program this process ends as well.
fn exit_status(finish: &Finish) -> u8 {
    match finish {
        Finish::Exited(status) => *status as u8,
        Finish::Killed(signal) => ended_by(*signal),
        Finish::Running(_) | Finish::Detached => 0,
    }
}
