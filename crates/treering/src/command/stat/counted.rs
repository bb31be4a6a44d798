//! The kernel's counts, as they are told.

use std::time::Duration;

use treering_perf::{
    Absence, CountedRun, CounterReading, EventCount, EventCounts, Finish, ThreadCounts, Uncounted, Usage,
};
use treering_stat::{Absence as Reason, Count, Metric, MetricName, Part, Resources, Run, Source, Stat};

use super::events::Events;
use crate::ending::signal_name;

/// The user's choices.
#[derive(Clone, Debug)]
pub(super) struct Given<'a> {
    pub(super) events: &'a Events,
    pub(super) command: Vec<String>,
    pub(super) pid: Option<u32>,
    /// The metrics; their events are counted behind the others.
    pub(super) metrics: &'a [Metric],
    /// Whether threads are summed up by process.
    pub(super) whole_processes: bool,
}

impl Given<'_> {
    /// A description without runs.
    fn stat(&self) -> Stat {
        Stat {
            title: self.pid.map_or_else(|| self.command.join(" "), |pid| format!("process {pid}")),
            command: self.command.clone(),
            pid: self.pid,
            events: self.events.named.clone(),
            metrics: self
                .metrics
                .iter()
                .map(|metric| MetricName { name: metric.name.clone(), level: metric.level })
                .collect(),
            ..Stat::default()
        }
    }

    /// A run with these counts, of which those of metrics are the last.
    fn run(&self, counts: &EventCounts) -> Run {
        let mut all = told(counts);
        let of_metrics = all.split_off(self.events.named.len());
        let mut rest = &of_metrics[..];
        let mut values = Vec::with_capacity(self.metrics.len());
        for metric in self.metrics {
            let events = metric.events();
            let (own, behind) = rest.split_at(events.len());
            rest = behind;
            values.push(metric.value(&|event| {
                let at = events.iter().position(|known| *known == event)?;
                match own[at] {
                    Count::Counted { value, .. } => Some(value),
                    Count::Absent(_) => None,
                }
            }));
        }
        Run { counts: all, metrics: values, elapsed_ns: nanoseconds(counts.elapsed), ..Run::default() }
    }
}

/// How much more memory a process may have when it becomes the program than when it was made: the pages of its code, of
/// which the kernel maps 16 at a time.
const UNCERTAIN_PEAK: u64 = 2 << 20;

/// All runs.
pub(super) struct Whole<'a> {
    given: Given<'a>,
    stat: Stat,
    late_threads: usize,
    lost_records: u64,
    /// Of the first run that has such.
    uncounted: Option<Uncounted>,
    /// The greatest memory of a process before it became the program, of those whose own is not known for that.
    peak_before_exec: Option<u64>,
    /// A run that was interrupted, behind others that were not.
    is_cut: bool,
}

impl<'a> Whole<'a> {
    pub(super) fn new(given: Given<'a>) -> Self {
        let stat = given.stat();
        Self {
            given,
            stat,
            late_threads: 0,
            lost_records: 0,
            uncounted: None,
            peak_before_exec: None,
            is_cut: false,
        }
    }

    /// How many runs there are.
    pub(super) fn len(&self) -> usize {
        self.stat.runs.len()
    }

    /// Adds a run; returns how it ended. A run that was interrupted has no part in the means of others.
    pub(super) fn add(&mut self, run: CountedRun) -> Finish {
        if run.interrupted && !self.stat.runs.is_empty() {
            self.is_cut = true;
            return run.finish;
        }
        let mut told = self.given.run(&run.counts);
        if let Some(usage) = &run.usage {
            fill_in(&mut told.counts, &self.given.events.named, usage);
        }
        told.resources = run.usage.map(|usage| Resources {
            user_ns: nanoseconds(usage.user),
            system_ns: nanoseconds(usage.system),
            peak_bytes: (usage.peak_bytes > run.peak_before_exec + UNCERTAIN_PEAK)
                .then_some(usage.peak_bytes as f64),
        });
        if told.resources.is_some_and(|resources| resources.peak_bytes.is_none()) {
            self.peak_before_exec = self.peak_before_exec.max(run.usage.map(|usage| usage.peak_bytes));
        }
        self.late_threads += run.late_threads;
        self.lost_records += run.lost_records;
        self.uncounted = self.uncounted.take().or(run.uncounted);
        self.stat.parts = self.parts(run.threads, &told.counts);
        told.end = match run.finish {
            Finish::Exited(status) => Some(format!("exit {status}")),
            Finish::Killed(signal) => Some(signal_name(signal)),
            Finish::Running(_) | Finish::Detached => None,
        };
        self.stat.runs.push(told);
        run.finish
    }

    /// The counts of threads, or of processes, of the events that have counts.
    fn parts(&self, threads: Vec<ThreadCounts>, counts: &[Count]) -> Vec<Part> {
        let is_counted =
            |at: usize| matches!(counts[at], Count::Counted { source, .. } if source != Source::Wait);
        let of = |thread: ThreadCounts| Part {
            pid: thread.pid,
            tid: Some(thread.tid),
            counts: (0..counts.len()).map(|at| is_counted(at).then(|| thread.counts[at])).collect(),
            name: thread.name,
        };
        let parts = threads.into_iter().map(of).collect();
        if self.given.whole_processes { Part::by_process(parts) } else { parts }
    }

    /// The runs with notes on what is not as it seems.
    pub(super) fn finish(mut self, wanted: u32) -> Stat {
        let mut notes = Vec::new();
        let ends = self.stat.runs.iter().enumerate();
        for (at, end) in ends.filter_map(|(at, run)| Some((at, run.end.as_ref()?))) {
            if end != "exit 0" {
                let run = if wanted > 1 {
                    format!("run {} of the program", at + 1)
                } else {
                    "the program".to_owned()
                };
                notes.push(format!("{run} ended with {end}"));
            }
        }
        if self.is_cut {
            notes.push(format!("interrupted in run {} of {wanted}, which is left out", self.len() + 1));
        } else if self.len() < wanted as usize {
            notes.push(format!("interrupted in run {} of {wanted}", self.len()));
        }
        if let Some(peak) = self.peak_before_exec {
            notes.push(format!(
                "peak memory is at most {:.1} MiB: the process may have had as much before it became the program",
                peak as f64 / f64::from(1 << 20)
            ));
        }
        if self.late_threads > 0 {
            notes.push(format!(
                "{} threads began while counters were attached to the others: those that an uncounted thread made \
                 are not counted",
                self.late_threads
            ));
        }
        if self.lost_records > 0 {
            let lost = self.lost_records;
            notes.push(format!(
                "{lost} records of threads were lost: the counts of those threads are with the first one"
            ));
        }
        notes.extend(self.uncounted.iter().map(note_on_uncounted));
        notes.extend(self.notes_on_absent());
        self.stat.notes = notes;
        self.stat
    }

    /// Why events have no numbers, or only some of them.
    fn notes_on_absent(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let counts = || self.stat.runs.iter().flat_map(|run| &run.counts);
        let has = |reason: Reason| counts().any(|count| *count == Count::Absent(reason));
        let has_source = |wanted: Source| {
            counts().any(|count| matches!(count, Count::Counted { source, .. } if *source == wanted))
        };
        if has(Reason::NotPermitted) || has_source(Source::Wait) || has_source(Source::KernelInUserMode) {
            notes.push(denial());
        }
        if has_source(Source::Wait) {
            notes.push(
                "numbers by wait4 are of the program and the children that it waited for, from before the program was \
                 executed"
                    .to_owned(),
            );
        }
        if has(Reason::NotSupported) {
            notes.push(
                "not supported here: virtual machines often have no counters of the processor".to_owned(),
            );
        }
        if self.stat.runs.iter().flat_map(|run| &run.metrics).any(Option::is_none) {
            notes.push(
                "top-down metrics need all of their counters at once, which virtual machines often lack"
                    .to_owned(),
            );
        }
        if has(Reason::NeverRan) {
            notes.push("the processor has too few counters for these events: count fewer with -e".to_owned());
        }
        notes
    }
}

/// Says that counts lack programs which the kernel does not let the user watch.
fn note_on_uncounted(uncounted: &Uncounted) -> String {
    let Uncounted { program, time, of } = uncounted;
    let programs = program.as_deref().unwrap_or("programs of this run");
    let was = if program.is_some() { "was" } else { "were" };
    let milliseconds = |time: &Duration| time.as_secs_f64() * 1e3;
    format!(
        "{programs} {was} not counted for {:.1} ms of {:.1} ms of CPU time: the kernel ends the events of programs that \
         are setuid, have capabilities or must not be read; to count them, run treering as the user whose rights they \
         take, such as root",
        milliseconds(time),
        milliseconds(of)
    )
}

/// Why the kernel's events could not be had in all modes, and what to do about it.
fn denial() -> String {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    match paranoid.trim().parse::<i32>() {
        Ok(level) if level >= 2 => format!(
            "kernel.perf_event_paranoid is {level}: to count in the kernel too, sudo sysctl kernel.perf_event_paranoid=1"
        ),
        _ => "perf_event_open is denied: in a container, docker run --cap-add PERFMON --security-opt seccomp=unconfined"
            .to_owned(),
    }
}

/// The parts of a run, one after the other.
pub(super) struct Intervals<'a> {
    given: Given<'a>,
    before: Option<EventCounts>,
}

impl<'a> Intervals<'a> {
    pub(super) fn new(given: Given<'a>) -> Self {
        Self { given, before: None }
    }

    /// The counts since the last time, with the times of its beginning and end in nanoseconds.
    pub(super) fn next(&mut self, counts: &EventCounts) -> (Stat, f64, f64) {
        let mut since = counts.clone();
        let mut from = Duration::ZERO;
        if let Some(before) = &self.before {
            from = before.elapsed;
            for (count, before) in since.counts.iter_mut().zip(&before.counts) {
                if let (EventCount::Counted(now), EventCount::Counted(before)) = (count, before) {
                    *now = difference(*now, *before);
                }
            }
        }
        self.before = Some(counts.clone());
        since.elapsed = counts.elapsed.saturating_sub(from);
        let run = self.given.run(&since);
        let stat = Stat { runs: vec![run], ..self.given.stat() };
        (stat, nanoseconds(from), nanoseconds(counts.elapsed))
    }
}

fn difference(now: CounterReading, before: CounterReading) -> CounterReading {
    CounterReading {
        count: now.count.saturating_sub(before.count),
        enabled_ns: now.enabled_ns.saturating_sub(before.enabled_ns),
        running_ns: now.running_ns.saturating_sub(before.running_ns),
    }
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_nanos() as f64
}

fn told(counts: &EventCounts) -> Vec<Count> {
    let of = |(count, &is_user_only): (&EventCount, &bool)| match *count {
        EventCount::Counted(reading) => {
            let source = if is_user_only { Source::KernelInUserMode } else { Source::Kernel };
            Count::scaled(reading.count, reading.enabled_ns, reading.running_ns, source)
        }
        EventCount::Absent(Absence::NotSupported) => Count::Absent(Reason::NotSupported),
        EventCount::Absent(Absence::NotPermitted) => Count::Absent(Reason::NotPermitted),
        EventCount::Absent(Absence::InKernelOnly) => Count::Absent(Reason::InKernelOnly),
    };
    counts.counts.iter().zip(&counts.user_only).map(of).collect()
}

/// Puts in what `wait4` tells, where the kernel did not let this user count.
fn fill_in(counts: &mut [Count], events: &[treering_stat::Event], usage: &Usage) {
    for (count, event) in counts.iter_mut().zip(events) {
        let told = match event.name.as_str() {
            "task-clock" | "cpu-clock" => nanoseconds(usage.user + usage.system),
            "page-faults" | "faults" => (usage.minor_faults + usage.major_faults) as f64,
            "minor-faults" => usage.minor_faults as f64,
            "major-faults" => usage.major_faults as f64,
            "context-switches" | "cs" => (usage.voluntary_switches + usage.involuntary_switches) as f64,
            _ => continue,
        };
        if *count == Count::Absent(Reason::NotPermitted) {
            *count = Count::Counted { value: told, running: 1.0, source: Source::Wait };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(at_ms: u64, count: u64) -> EventCounts {
        let reading = CounterReading { count, enabled_ns: at_ms * 1_000_000, running_ns: at_ms * 500_000 };
        let counts = vec![EventCount::Counted(reading)];
        EventCounts { counts, user_only: vec![false], elapsed: Duration::from_millis(at_ms) }
    }

    #[test]
    fn an_interval_has_what_was_counted_in_it() {
        let events = Events::parse(&["cs".to_owned()]).expect("an event");
        let mut intervals = Intervals::new(Given {
            events: &events,
            command: Vec::new(),
            pid: Some(1),
            metrics: &[],
            whole_processes: false,
        });
        let values: Vec<f64> = [(100, 10), (200, 40), (300, 45)]
            .map(|(at, count)| intervals.next(&counts(at, count)).0.rows()[0].state.mean().expect("counted"))
            .to_vec();
        // Twice what was counted in half of the time.
        assert_eq!(values, [20.0, 60.0, 10.0]);
    }

    #[test]
    fn wait4_fills_in_what_is_not_permitted_and_nothing_else() {
        let events = Events::parse(&["cs,page-faults,cycles".to_owned()]).expect("events");
        let counted = Count::Counted { value: 5.0, running: 1.0, source: Source::Kernel };
        let denied = Count::Absent(Reason::NotPermitted);
        let mut counts = vec![denied, counted, denied];
        let usage = Usage { voluntary_switches: 3, involuntary_switches: 4, ..Usage::default() };
        fill_in(&mut counts, &events.named, &usage);
        let told = Count::Counted { value: 7.0, running: 1.0, source: Source::Wait };
        assert_eq!(counts, [told, counted, denied]);
    }
}
