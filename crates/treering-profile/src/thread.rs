//! The owners of costs: runs, processes and threads.

use crate::{NodeId, ProcessId, RunId};

/// One execution of the profiled command. A merged profile holds several.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Run {
    /// The command and its arguments.
    pub command: Vec<String>,
    /// When it started, in nanoseconds since the Unix epoch; 0 when unknown.
    pub start_unix_ns: u64,
    /// How long it ran by the wall clock, in nanoseconds; 0 when unknown.
    pub duration_ns: u64,
    /// The processor time of the program, in nanoseconds, where the kernel reported it.
    pub cpu_ns: Option<u64>,
    /// How it ended, where known: `exit 0`, `signal 9`.
    pub end: Option<String>,
}

/// A process of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    /// The run it belongs to.
    pub run: RunId,
    /// The number the system gave it, or 0.
    pub pid: u32,
    /// The name of the program that it ran last.
    pub name: String,
}

/// A thread of a process and the root of its part of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The process it belongs to.
    pub process: ProcessId,
    /// The number the system gave it, or 0.
    pub tid: u32,
    /// The name it gave itself last.
    pub name: String,
    /// The root of its calling context tree. Every thread has one of its own.
    pub root: NodeId,
}
