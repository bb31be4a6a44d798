//! The reasons why a program cannot be counted, or not to its end.

use std::ffi::OsString;
use std::io;

use nix::sys::signal::Signal;
use treering_proc::reason;

/// The reason why a program was not counted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CountError {
    /// There is no such program.
    #[error("cannot run {program}: there is no such program", program = .0.display())]
    NotFound(OsString),
    /// The program cannot be started.
    #[error("cannot run {program}: {error}", program = .0.display(), error = reason(.1))]
    Start(OsString, #[source] io::Error),
    /// The kernel does not let us trace it.
    #[error("cannot trace the program: {0}")]
    Trace(#[source] io::Error),
    /// The kernel does not provide something that the translator needs, such as shared memory.
    #[error("cannot prepare the program: {0}: {1}")]
    Setup(&'static str, #[source] io::Error),
    /// The program is for another processor or mode.
    #[error("{program} is not a 64-bit program for x86", program = .0.display())]
    OtherMode(OsString),
    /// A signal ended it before its first instruction.
    #[error("{program} was ended by {signal} before its first instruction", program = .0.display(), signal = signal_name(*.1))]
    Killed(OsString, i32),
    /// There is no process of that number.
    #[error("there is no process {0}")]
    NoProcess(i32),
    /// That process has ended, or is ending.
    #[error("process {0} has ended")]
    HasEnded(i32),
    /// The kernel does not let us trace that process.
    #[error("cannot trace process {0}: {1}")]
    Attach(i32, #[source] io::Error),
    /// The process cannot be counted, for this reason; it continues as before.
    #[error("process {0} cannot be counted: {1}")]
    CannotAttach(i32, String),
    /// This processor has not the level that the program is to see; the first feature that it lacks.
    #[error("this processor is not {0}: it has no {1}")]
    Processor(&'static str, &'static str),
    /// A process could not continue, and was ended.
    #[error("process {0} was ended, because it cannot go on: {1}")]
    GivenUp(i32, #[source] io::Error),
}

/// A resource of limited size that a process ran out of, so that it cannot continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Exhausted {
    /// Counters, of which each block has one.
    #[error("the program has more blocks of code than there are counters")]
    Counters,
    /// Nodes of its calling context trees.
    #[error("its calling context tree has more nodes than there is room for")]
    Contexts,
    /// Frames of these trees.
    #[error("its calls nest deeper than its calling context tree has room for")]
    Nesting,
}

impl From<Exhausted> for io::Error {
    fn from(exhausted: Exhausted) -> Self {
        Self::other(exhausted)
    }
}

impl CountError {
    /// The exit status that a shell would give: 127 if there is no program, or no interpreter for it, 126 if it cannot
    /// start, and 128 plus the signal's number if a signal ended it.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::NotFound(_) => 127,
            Self::Start(_, error) if error.kind() == io::ErrorKind::NotFound => 127,
            Self::Start(..) | Self::OtherMode(_) => 126,
            Self::Killed(_, signal) => (128 + signal) as u8,
            Self::Trace(_)
            | Self::Setup(..)
            | Self::NoProcess(_)
            | Self::HasEnded(_)
            | Self::Attach(..)
            | Self::CannotAttach(..)
            | Self::Processor(..)
            | Self::GivenUp(..) => 1,
        }
    }

    /// The resource that a process ran out of, if it could not continue for that reason.
    pub fn exhausted(&self) -> Option<Exhausted> {
        match self {
            Self::GivenUp(_, error) => error.get_ref()?.downcast_ref().copied(),
            _ => None,
        }
    }
}

fn signal_name(signal: i32) -> String {
    Signal::try_from(signal).map_or_else(|_| format!("signal {signal}"), |name| name.as_str().to_owned())
}
