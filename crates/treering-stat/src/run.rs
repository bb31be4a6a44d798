//! Counts of runs.

/// Counts of events in runs of one program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stat {
    /// The command, or the process.
    pub title: String,
    /// The words of the command; none for a process that ran already.
    pub command: Vec<String>,
    /// The process that ran already.
    pub pid: Option<u32>,
    /// The events, in the order in which they are shown.
    pub events: Vec<Event>,
    /// The metrics that were worked out, each before its parts.
    pub metrics: Vec<MetricName>,
    /// The runs.
    pub runs: Vec<Run>,
    /// The counts of each thread, or of each process, of the last run; none if they were not asked for.
    pub parts: Vec<Part>,
    /// Facts that a reader must know, as sentences.
    pub notes: Vec<String>,
}

/// The counts of a thread, or of a process with all of its threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The process.
    pub pid: u32,
    /// The thread; nothing for a whole process.
    pub tid: Option<u32>,
    /// Its name at the end.
    pub name: String,
    /// Of every event of the [`Stat`]; nothing where it was not counted.
    pub counts: Vec<Option<u64>>,
}

impl Part {
    /// Processes instead of their threads, in the order of their first ones.
    pub fn by_process(threads: Vec<Self>) -> Vec<Self> {
        let mut processes: Vec<Self> = Vec::new();
        for thread in threads {
            // A number is used again when its process has ended: the last one of that number is meant.
            let is_new = thread.tid == Some(thread.pid);
            match processes.iter_mut().rev().find(|process| process.pid == thread.pid).filter(|_| !is_new) {
                Some(process) => {
                    let counts = process.counts.iter_mut().zip(&thread.counts);
                    counts.for_each(|(sum, count)| *sum = sum.zip(*count).map(|(sum, count)| sum + count));
                }
                None => processes.push(Self { tid: None, ..thread }),
            }
        }
        processes
    }
}

/// An event that was to be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its name as the user wrote it.
    pub name: String,
    /// The unit of its count.
    pub unit: Unit,
}

/// A metric in percent of the processor's slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricName {
    /// Its name.
    pub name: String,
    /// 1, or 2 for a part of a metric of level 1.
    pub level: u8,
}

/// The unit of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Processor time.
    Nanoseconds,
    /// How often something occurred.
    Count,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Of every event of the [`Stat`].
    pub counts: Vec<Count>,
    /// Of every metric of the [`Stat`], in percent; nothing where its events were not counted.
    pub metrics: Vec<Option<f64>>,
    /// From the start to the end.
    pub elapsed_ns: f64,
    /// The kernel's account of the program when it ended.
    pub resources: Option<Resources>,
    /// How it ended, as `exit 0` or `SIGSEGV`.
    pub end: Option<String>,
}

/// The kernel's account of a program, and of the children that it waited for, when it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Resources {
    /// Time in its own code.
    pub user_ns: f64,
    /// Time in the kernel for it.
    pub system_ns: f64,
    /// The most memory that one of the processes had at once; nothing where the kernel does not tell it of the program
    /// alone.
    pub peak_bytes: Option<f64>,
}

/// The count of an event in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Count {
    /// It was counted.
    Counted {
        /// The count, scaled up if it was counted for a part of the time only.
        value: f64,
        /// The part of the time for which it was counted, from 0 to 1.
        running: f64,
        /// The counter.
        source: Source,
    },
    /// It was not.
    Absent(Absence),
}

/// The counter of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The kernel's events, in all modes that were asked for.
    Kernel,
    /// The kernel's events in user mode alone, as this user may not see more.
    KernelInUserMode,
    /// `wait4(2)`: the program and the children that it waited for, from before the program was executed.
    Wait,
}

impl Source {
    /// As JSON and CSV call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kernel => "perf",
            Self::KernelInUserMode => "perf, user mode only",
            Self::Wait => "wait4",
        }
    }
}

/// Why an event was not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// The machine has no such counter.
    NotSupported,
    /// The user may not have it.
    NotPermitted,
    /// It occurs in the kernel alone, and was asked for in user mode alone.
    InKernelOnly,
    /// There were too few counters for all events, and it had none at any time.
    NeverRan,
}

impl Absence {
    /// As tables, JSON and CSV call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotSupported => "not supported here",
            Self::NotPermitted => "not permitted",
            Self::InKernelOnly => "occurs in the kernel only",
            Self::NeverRan => "had no counter at any time",
        }
    }
}

impl Count {
    /// The count that a counter read, which should have counted for one time and did for another.
    ///
    /// A counter that took turns with others saw a part of the run, and the rest is taken to be like it.
    pub fn scaled(count: u64, enabled_ns: u64, running_ns: u64, source: Source) -> Self {
        match (enabled_ns, running_ns) {
            (_, running) if running >= enabled_ns && running > 0 => {
                Self::Counted { value: count as f64, running: 1.0, source }
            }
            // It never had to count: nothing ran.
            (0, _) => Self::Counted { value: count as f64, running: 1.0, source },
            (_, 0) => Self::Absent(Absence::NeverRan),
            (enabled, running) => {
                let part = running as f64 / enabled as f64;
                Self::Counted { value: count as f64 / part, running: part, source }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule of `perf stat`: count × enabled / running.
    #[test]
    fn a_counter_that_took_turns_is_scaled_up() {
        let of = |count, enabled, running| Count::scaled(count, enabled, running, Source::Kernel);
        let counted = |value, running| Count::Counted { value, running, source: Source::Kernel };
        assert_eq!(of(600, 1000, 250), counted(2400.0, 0.25));
        assert_eq!(of(600, 1000, 1000), counted(600.0, 1.0));
        assert_eq!(of(0, 1000, 0), Count::Absent(Absence::NeverRan));
        assert_eq!(of(0, 0, 0), counted(0.0, 1.0));
    }
}
