//! Counting events without samples: numbers for a whole run, or for parts of it.

use std::io;
use std::time::{Duration, Instant};

use crate::counter::{Absence, Counter};
use crate::error::{Denial, RecordError};
use crate::event::Event;
use crate::options::Target;
use crate::recording::{Finish, RunningChild};
use crate::rights::Uncounted;
use crate::sys::{
    Child, CounterReading, Interrupts, ProcessHandle, Usage, poll, process_exists, raise_file_limit,
    send_signal,
};
use crate::thread_counts::{ThreadCounters, ThreadCounts};

/// The events to count, where, and for how long.
#[derive(Clone, Debug)]
pub struct CountOptions {
    /// The program or process.
    pub target: Target,
    /// The events, in groups whose members count at the same times.
    pub groups: Vec<Vec<Event>>,
    /// How often the counts so far are shown.
    pub interval: Option<Duration>,
    /// When to stop; nothing for the end of the program.
    pub duration: Option<Duration>,
    /// Whether to count each thread by itself too, of a program that is launched.
    pub per_thread: bool,
}

/// The count of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventCount {
    /// It was counted.
    Counted(CounterReading),
    /// It was not, and why.
    Absent(Absence),
}

/// The counts of a run, or of the part of it that is over.
#[derive(Clone, Debug)]
pub struct EventCounts {
    /// Of every event, in the order in which they were asked for.
    pub counts: Vec<EventCount>,
    /// For each of them, whether the kernel counted it in user mode alone, as this user may not see more.
    pub user_only: Vec<bool>,
    /// From the start to the end, or until now.
    pub elapsed: Duration,
}

impl EventCounts {
    /// How long events should have counted: the processor time of all that was counted, whatever it was that counted.
    fn enabled(&self) -> Option<Duration> {
        let enabled = self.counts.iter().filter_map(|count| match count {
            EventCount::Counted(reading) => Some(reading.enabled_ns),
            EventCount::Absent(_) => None,
        });
        enabled.max().map(Duration::from_nanos)
    }
}

/// The counts of a run that is over.
#[derive(Debug)]
pub struct CountedRun {
    /// The counts of all of it.
    pub counts: EventCounts,
    /// How it ended.
    pub finish: Finish,
    /// The answer of `wait4(2)`, for a program that was launched and has ended.
    pub usage: Option<Usage>,
    /// About the most memory that the process had before it became the program. The kernel keeps a peak over an exec, so
    /// one that is not clearly above this may not be the program's own.
    pub peak_before_exec: u64,
    /// Whether a signal asked to end.
    pub interrupted: bool,
    /// Threads of a running process that began while counters were attached to the others.
    pub late_threads: usize,
    /// The counts of each thread, if they were asked for, the program's first one before all others.
    pub threads: Vec<ThreadCounts>,
    /// Processor time of a launched program that has ended in which nothing was counted, if it is much.
    pub uncounted: Option<Uncounted>,
    /// How many records of threads the kernel had no room for.
    pub lost_records: u64,
}

/// Runs a program, or attaches to all threads of a process, and counts events in it and in the threads and children that
/// it makes from then on.
///
/// Signals act as with [`record`](crate::record()): SIGINT from the terminal ends the program, and the counts are those
/// until then. An event that cannot be counted is no failure, and keeps no other from being counted.
///
/// # Errors
/// The program cannot be run, or there is no such process. The kernel lets this user count none of the events in a running
/// process. The limit of open files is reached.
pub fn count_events(
    options: &CountOptions,
    observe: &mut dyn FnMut(&EventCounts),
) -> Result<CountedRun, RecordError> {
    raise_file_limit();
    let interrupts = Interrupts::block().map_err(system("receiving signals"))?;
    let (child, pid) = match &options.target {
        Target::Launch(command) => {
            let child = Child::prepare(command, &[]).map_err(|source| cannot_run(&options.target, source))?;
            let pid = child.pid();
            (Some(child), pid)
        }
        Target::Attach(pid) if process_exists(*pid) => (None, *pid),
        Target::Attach(pid) => return Err(RecordError::NoProcess(*pid)),
    };
    let mut counted = Counted::open(options, child, pid, interrupts)?;
    let interrupted = counted.run(options, observe)?;
    counted.finish(options, interrupted)
}

/// A program or process with counters on it.
struct Counted {
    pid: u32,
    child: Option<Child>,
    handle: ProcessHandle,
    interrupts: Interrupts,
    /// By event, in the order in which they were asked for.
    counters: Vec<Counter>,
    late_threads: usize,
    /// The counters of each thread by itself.
    thread_counters: Option<ThreadCounters>,
    begin: Instant,
    peak_before_exec: u64,
    has_ended: bool,
}

impl Counted {
    fn open(
        options: &CountOptions,
        child: Option<Child>,
        pid: u32,
        interrupts: Interrupts,
    ) -> Result<Self, RecordError> {
        let handle = ProcessHandle::open(pid).map_err(|_| RecordError::NoProcess(pid))?;
        let on_exec = child.is_some();
        let tids = if on_exec { vec![pid] } else { treering_proc::threads(pid) };
        if tids.is_empty() {
            return Err(RecordError::HasEnded(options.target.name()));
        }
        let mut counters = Vec::new();
        for group in &options.groups {
            let opened = Counter::open_group(group, &tids, on_exec);
            counters.extend(opened.map_err(system("opening the counters"))?);
        }
        // Of a program that was launched, `wait4` tells some.
        if !on_exec && counters.iter().any(Counter::is_denied) && counters.iter().all(|of| !of.is_counted()) {
            let tried = options.groups.iter().flatten().map(|event| event.name.clone()).collect();
            let source = io::Error::from_raw_os_error(libc::EACCES);
            let denial = Denial::new("count events of", options.target.name(), tried, source);
            return Err(RecordError::NotPermitted(denial));
        }
        let late_threads = match on_exec {
            true => 0,
            false => treering_proc::threads(pid).iter().filter(|tid| !tids.contains(tid)).count(),
        };
        let thread_counters = (options.per_thread && on_exec)
            .then(|| open_thread_counters(pid, options, &counters))
            .transpose()
            .map_err(system("opening the counters of threads"))?;
        let begin = Instant::now();
        Ok(Self {
            pid,
            child,
            handle,
            interrupts,
            counters,
            late_threads,
            thread_counters,
            begin,
            peak_before_exec: 0,
            has_ended: false,
        })
    }

    /// Lets the program run, and waits for the end of counting; tells whether a signal asked for it.
    fn run(
        &mut self,
        options: &CountOptions,
        observe: &mut dyn FnMut(&EventCounts),
    ) -> Result<bool, RecordError> {
        self.peak_before_exec = treering_proc::peak_memory(self.pid).unwrap_or(0);
        self.begin = Instant::now();
        match &mut self.child {
            Some(child) => child.release().map_err(|source| cannot_run(&options.target, source))?,
            None => {
                self.counters.iter().try_for_each(Counter::enable).map_err(system("starting the counters"))?
            }
        }
        let mut fds = vec![self.handle.raw(), self.interrupts.raw()];
        fds.extend(self.thread_counters.iter().flat_map(ThreadCounters::descriptors));
        let idle = if self.thread_counters.is_some() { LOOK } else { IDLE };
        let (mut ready, mut signals) = (Vec::new(), 0);
        let mut next_look = options.interval;
        loop {
            let elapsed = self.begin.elapsed();
            if let (Some(look), Some(interval)) = (next_look, options.interval)
                && elapsed >= look
            {
                observe(&self.read()?);
                // An interval that was missed is part of the one that is shown.
                next_look =
                    Some(look + interval * (1 + ((elapsed - look).as_nanos() / interval.as_nanos()) as u32));
            }
            if options.duration.is_some_and(|duration| elapsed >= duration) {
                return Ok(signals > 0);
            }
            let until = next_look.into_iter().chain(options.duration).min();
            let patience = until.map_or(idle, |until| until.saturating_sub(self.begin.elapsed()).min(idle));
            poll(&fds, patience, &mut ready).map_err(system("waiting for the program"))?;
            self.thread_counters.iter_mut().for_each(ThreadCounters::take);
            if ready[1] && self.is_ended_by_signals(&mut signals) {
                return Ok(true);
            }
            if ready[0] {
                self.has_ended = true;
                return Ok(signals > 0);
            }
        }
    }

    /// Deals with signals that came, as [`record`](crate::record()) does; tells whether counting is over.
    fn is_ended_by_signals(&mut self, signals: &mut u32) -> bool {
        while let Some((signal, by_process)) = self.interrupts.next() {
            if self.child.is_none() {
                return true;
            }
            match *signals {
                0 if by_process => send_signal(self.pid, signal),
                0 => {}
                1 => send_signal(self.pid, libc::SIGTERM),
                _ => send_signal(self.pid, libc::SIGKILL),
            }
            *signals += 1;
        }
        false
    }

    fn read(&self) -> Result<EventCounts, RecordError> {
        let counts = self.counters.iter().map(Counter::read).collect::<io::Result<_>>();
        Ok(EventCounts {
            counts: counts.map_err(system("reading the counters"))?,
            user_only: self.counters.iter().map(|counter| counter.is_user_only).collect(),
            elapsed: self.begin.elapsed(),
        })
    }

    fn finish(mut self, options: &CountOptions, interrupted: bool) -> Result<CountedRun, RecordError> {
        let elapsed = self.begin.elapsed();
        self.counters.iter().for_each(Counter::disable);
        let (finish, usage) = match self.child.take() {
            Some(child) if self.has_ended => {
                let ended = child.wait().map_err(system("waiting for the program"))?;
                (Finish::of(ended), Some(ended.usage))
            }
            Some(child) => (Finish::Running(RunningChild(child)), None),
            None => (Finish::Detached, None),
        };
        let counts = EventCounts { elapsed, ..self.read()? };
        let uncounted = usage.and_then(|usage| {
            let Target::Launch(command) = &options.target else { return None };
            Uncounted::new(command.first()?, usage.user + usage.system, counts.enabled()?)
        });
        let (threads, lost_records) = match self.thread_counters {
            Some(counters) => counters.finish().map_err(system("reading the counters of threads"))?,
            None => (Vec::new(), 0),
        };
        let (late_threads, peak_before_exec) = (self.late_threads, self.peak_before_exec);
        Ok(CountedRun {
            counts,
            finish,
            usage,
            peak_before_exec,
            interrupted,
            late_threads,
            threads,
            uncounted,
            lost_records,
        })
    }
}

/// Opens those of the events that can be counted in each thread by itself.
fn open_thread_counters(
    pid: u32,
    options: &CountOptions,
    counters: &[Counter],
) -> io::Result<ThreadCounters> {
    let events = options.groups.iter().flatten().zip(counters).enumerate();
    let events: Vec<_> = events
        .filter(|(_, (_, counter))| counter.is_counted())
        .map(|(place, (event, counter))| (event, place, counter.is_user_only))
        .collect();
    ThreadCounters::open(pid, &events, counters.len())
}

/// How often to take the records of threads that have ended, so that there is room for more.
const LOOK: Duration = Duration::from_millis(20);

/// How long to wait for something to happen, if nothing is to be done meanwhile.
const IDLE: Duration = Duration::from_secs(3600);

fn cannot_run(target: &Target, source: io::Error) -> RecordError {
    RecordError::CannotRun { program: target.name(), source }
}

fn system(doing: &'static str) -> impl FnOnce(io::Error) -> RecordError {
    move |source| RecordError::System { doing, source }
}

#[cfg(test)]
#[expect(clippy::print_stderr, reason = "tests say what they skipped")]
mod tests {
    use super::*;

    fn count(command: &[&str], events: &[&str]) -> CountedRun {
        let options = CountOptions {
            target: Target::Launch(command.iter().map(Into::into).collect()),
            groups: events.iter().map(|name| vec![Event::parse(name).expect(name)]).collect(),
            interval: None,
            duration: None,
            per_thread: false,
        };
        count_events(&options, &mut |_| ()).expect("a program that runs")
    }

    #[test]
    fn an_event_that_is_not_counted_keeps_no_other_from_it() {
        let run = count(&["true"], &["task-clock", "rffffffffff", "page-faults"]);
        let EventCount::Counted(clock) = run.counts.counts[0] else {
            return eprintln!("skipped: the kernel lets this user count nothing");
        };
        assert!(clock.count > 0 && clock.running_ns > 0, "{clock:?}");
        assert!(matches!(run.counts.counts[1], EventCount::Absent(_)), "{run:?}");
        let EventCount::Counted(faults) = run.counts.counts[2] else { panic!("{run:?}") };
        assert!(faults.count > 0);
        assert!(matches!(run.finish, Finish::Exited(0)));
    }

    #[test]
    fn counts_do_not_begin_before_the_program() {
        let run = count(&["true"], &["page-faults", "minor-faults", "major-faults"]);
        let counted = |at: usize| match run.counts.counts[at] {
            EventCount::Counted(reading) => Some(reading.count),
            EventCount::Absent(_) => None,
        };
        let Some(all) = counted(0) else {
            return eprintln!("skipped: the kernel lets this user count nothing");
        };
        assert_eq!(Some(all), counted(1).zip(counted(2)).map(|(minor, major)| minor + major));
        // Those of the time between fork and exec are in the usage and not in the counts.
        let usage = run.usage.expect("a program that ended");
        assert!(all <= usage.minor_faults + usage.major_faults, "{all} {usage:?}");
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let target = Target::Launch(vec!["/no/such/program".into()]);
        let options =
            CountOptions { target, groups: Vec::new(), interval: None, duration: None, per_thread: false };
        let error = count_events(&options, &mut |_| ()).expect_err("no such program");
        assert_eq!(error.exit_status(), 127);
    }
}
