//! The writer of a live file, and the state of its threads.

use treering_events::{View, flag, thread_state};
use treering_profile::{FunctionId, Profile};

use crate::{ReadError, ReadReport};

/// The process that writes a live file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    /// The process.
    pub pid: u32,
    /// When it began, in clock ticks since the machine started (proc_pid_stat(5), field 22): tells
    /// whether the number still is that of the writer.
    pub process_start: u64,
    /// `CLOCK_MONOTONIC_RAW` in nanoseconds when it began to write.
    pub start_raw_ns: u64,
    /// Whether it has ended its profile. It then could not write the finished one.
    pub finished: bool,
    /// Whether everything that was entered is in the file; not so when the file could not grow.
    pub stores_all: bool,
}

impl Writer {
    /// The process that writes the file.
    ///
    /// # Errors
    /// When the bytes are no live file of the known version.
    pub fn of(bytes: &[u8]) -> Result<Self, ReadError> {
        let view = super::view(bytes)?;
        let header = view.header();
        Ok(Self {
            pid: header.pid,
            process_start: header.process_start,
            start_raw_ns: header.start_raw_ns,
            finished: header.flags & flag::FINISHED != 0,
            stores_all: header.flags & flag::NOT_ALL_STORED == 0,
        })
    }
}

/// The profile of a program that runs, and what it is doing.
#[derive(Clone, Debug)]
pub struct Running {
    /// The profile so far.
    pub profile: Profile,
    /// Parts that could not be used.
    pub report: ReadReport,
    /// The state of its threads, in the order of those of the profile.
    pub threads: Vec<ThreadNow>,
    /// Whether the file is as it was written.
    pub state: FileState,
}

/// Whether a file is as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// Everything in it was checked.
    Whole,
    /// Something in it is not; the report says what and where.
    Damaged,
    /// It is of a layout that does not tell.
    Unchecked,
}

/// The state of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadNow {
    /// Whether it runs; else it has ended.
    pub runs: bool,
    /// The functions it has entered and not left, outermost first, as the profile has them.
    pub open: Vec<FunctionId>,
}

impl ThreadNow {
    pub(crate) fn of(
        view: &View<'_>,
        thread: &treering_events::Thread,
        function: impl Fn(u32) -> Option<FunctionId>,
    ) -> Self {
        let open = (1..=view.depth(thread)).filter_map(|index| view.activation(thread, index));
        let nodes = open.filter_map(|activation| view.node(view.node_of(&activation)));
        Self {
            runs: thread.state == thread_state::RUNNING,
            open: nodes.filter_map(|node| function(node.function)).collect(),
        }
    }
}
