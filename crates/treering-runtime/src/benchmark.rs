//! The reports of a benchmark, as CBS (the C++ benchmarking suite, 2009) has them: text, DOT, XML
//! and gnuplot data.
//!
//! The caller gives a [`Run`]: the tree of tasks with self costs. The reports are derived from it: the
//! graph of tasks, totals, cycles, shares. Nothing here measures, and nothing is called while a task is
//! timed, so it may allocate.
//!
//! Costs are CPU time where the CPU time of tasks was measured, else wall time; each report says which. The
//! cost of a run beyond its tasks is the self cost of the root task, [`PROGRAM`].

use std::borrow::Cow;

mod color;
mod cycle;
mod date;
mod dot;
mod escape;
mod gnuplot;
mod graph;
mod machine;
mod results;
mod rounding;
mod table;
mod text;
mod unit;
mod xml;

pub use date::date;
pub use machine::Machine;

/// The name of the task that stands for the whole run and calls all tasks that no task calls.
pub const PROGRAM: &str = "_program";

/// A span of time, taken apart, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Wall-clock time.
    pub wall_ns: u64,
    /// CPU time in the program's own code.
    pub user_ns: u64,
    /// CPU time in the kernel on behalf of the program.
    pub system_ns: u64,
}

impl Times {
    /// User and system time together, in nanoseconds; stays at the largest number.
    pub fn cpu_ns(self) -> u64 {
        self.user_ns.saturating_add(self.system_ns)
    }

    fn map2(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            wall_ns: f(self.wall_ns, other.wall_ns),
            user_ns: f(self.user_ns, other.user_ns),
            system_ns: f(self.system_ns, other.system_ns),
        }
    }

    fn saturating_sub(self, other: Self) -> Self {
        self.map2(other, u64::saturating_sub)
    }
}

impl std::ops::AddAssign for Times {
    fn add_assign(&mut self, other: Self) {
        *self = self.map2(other, u64::saturating_add);
    }
}

/// A node of the tree of tasks: one task, reached along one chain of callers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Node {
    /// The node of the caller: an index into [`Run::nodes`] below this node's own. `None`, or an index that
    /// is not below, means that no task was running.
    pub parent: Option<u32>,
    /// The node's task: an index into [`Run::tasks`].
    pub task: u32,
    /// How often it was started, the recursive calls included.
    pub calls: u64,
    /// How many of its calls came from itself directly and were folded into this node.
    pub recursive_calls: u64,
    /// The cost without that of the tasks it called.
    pub self_cost: Times,
}

/// The cost of measuring one activation, in its own times and in those of its caller together, in
/// nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuringCost {
    /// As found around some work, which a processor goes on with while it reads its clock.
    pub estimated_ns: f64,
    /// As found around nothing.
    pub most_ns: f64,
}

/// A point of the memory plot.
#[derive(Clone, Copy, Debug, Default)]
pub struct Point<'a> {
    /// When it was taken, in nanoseconds since the benchmark was started.
    pub time_ns: u64,
    /// The task that was running: an index into [`Run::tasks`].
    pub task: Option<u32>,
    /// The description that the program gives.
    pub description: &'a [u8],
    /// The address space in use, in bytes.
    pub virtual_bytes: u64,
    /// The memory in use, in bytes.
    pub resident_bytes: u64,
}

/// All that is known of one benchmark. Names and texts may hold any bytes.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The name of the benchmark.
    pub name: &'a [u8],
    /// The subject of the benchmark; may have several lines.
    pub description: &'a [u8],
    /// When it was started, in seconds since 1970 in UTC.
    pub start_unix_s: i64,
    /// The same for people to read: see [`date`](fn@date).
    pub date: &'a str,
    /// Where it ran.
    pub machine: &'a Machine,
    /// Name and value, in the order given. Of equal names the last value counts.
    pub parameters: &'a [(&'a [u8], &'a [u8])],
    /// Name and value, in the order given. Of equal names the last value counts, and a result of
    /// the program's goes before one that is computed here.
    pub results: &'a [(&'a [u8], &'a [u8])],
    /// The tree of tasks, callers before those they call. Trees of several threads stand one
    /// after the other.
    pub nodes: &'a [Node],
    /// The names of tasks. Equal names are one task.
    pub tasks: &'a [&'a [u8]],
    /// The memory plot, the earliest point first. The first is the one that memory is compared
    /// with, so it is to be taken when the benchmark is started.
    pub points: &'a [Point<'a>],
    /// The cost of the process from start to stop.
    pub run: Times,
    /// The cost of the child processes that ended in that time; only the CPU time is known.
    pub children: Times,
    /// By how much the CPU time of the tasks may exceed that of the run though both are right, as clocks
    /// were not read at the same moment and not to the nanosecond.
    pub cpu_uncertainty_ns: u64,
    /// How many activations of tasks were measured. Reports add one for the root task, as CBS does.
    pub timer_measures: u64,
    /// The cost of measuring one activation; `None` where it is not known. Times of tasks contain it.
    pub measuring_cost: Option<MeasuringCost>,
    /// Whether the benchmark has been stopped.
    pub stopped: bool,
    /// Warnings for the reader, such as "a task was stopped that was not started".
    pub notes: &'a [String],
}

impl<'a> Run<'a> {
    /// A run of which nothing is known but where it was.
    pub fn new(machine: &'a Machine) -> Self {
        Self {
            name: b"",
            description: b"",
            start_unix_s: 0,
            date: "",
            machine,
            parameters: &[],
            results: &[],
            nodes: &[],
            tasks: &[],
            points: &[],
            run: Times::default(),
            children: Times::default(),
            cpu_uncertainty_ns: 0,
            timer_measures: 0,
            measuring_cost: None,
            stopped: false,
            notes: &[],
        }
    }

    fn task_name(&self, task: Option<u32>) -> Cow<'a, [u8]> {
        match task {
            None => Cow::Borrowed(PROGRAM.as_bytes()),
            Some(task) => match self.tasks.get(task as usize) {
                Some(name) => Cow::Borrowed(*name),
                None => Cow::Owned(format!("(task {task} without a name)").into_bytes()),
            },
        }
    }
}

/// How much is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// The summary only.
    None,
    /// Also the list of tasks and the memory plot.
    Minimal,
    /// Also cycles and calls; no line of a text is longer than 80 columns, unless a count needs it.
    Normal,
    /// Also user, system and wall time of each task; names are written in full.
    Full,
}

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people to read.
    Text,
    /// The graph of tasks for Graphviz; without it the memory plot, as a chain of points.
    Dot,
    /// Everything, for programs; see `docs/formats/bench.xsd`. It does not depend on the verbosity.
    Xml,
    /// The memory plot as columns of numbers.
    Gnuplot,
}

/// The parts of a report: the sum of the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents(pub u32);

impl Contents {
    /// The graph of tasks.
    pub const CALLGRAPH: Self = Self(1);
    /// The memory plot.
    pub const MEMPLOT: Self = Self(2);
    /// Leave out the summary: names, parameters and results.
    pub const NOSUMMARY: Self = Self(4);

    /// Whether all flags of `other` are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for Contents {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The choices that a report is made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How much.
    pub verbosity: Verbosity,
    /// In which format.
    pub format: Format,
    /// The parts to write.
    pub contents: Contents,
}

impl Options {
    /// The options with the numbers that the C interface gives them: verbosity 0 none, 1 minimal,
    /// 2 normal, 3 full; format 0 text, 1 DOT, 2 XML, 3 gnuplot; the flags of [`Contents`].
    ///
    /// A verbosity out of range becomes the nearest one, an unknown format text, and unknown
    /// flags are not looked at.
    pub fn from_numbers(verbosity: i32, format: i32, contents: i32) -> Self {
        let verbosity = match verbosity {
            ..=0 => Verbosity::None,
            1 => Verbosity::Minimal,
            2 => Verbosity::Normal,
            3.. => Verbosity::Full,
        };
        let format = match format {
            1 => Format::Dot,
            2 => Format::Xml,
            3 => Format::Gnuplot,
            _ => Format::Text,
        };
        Self { verbosity, format, contents: Contents((contents & 7) as u32) }
    }
}

/// Appends the report to `out`, in UTF-8 whatever bytes the names have.
///
/// A benchmark that was never started gives an empty but valid report, which says so when
/// [`Run::notes`] do.
pub fn write(run: &Run, options: Options, out: &mut Vec<u8>) {
    let report = match options.format {
        Format::Text => text::report(run, options),
        Format::Dot => dot::report(run, options),
        Format::Xml => xml::report(run, options),
        Format::Gnuplot => gnuplot::report(run, options),
    };
    out.extend_from_slice(report.as_bytes());
}

#[cfg(test)]
mod tests;
