//! The reasons why a program cannot be counted, or not to its end.

use std::ffi::OsString;
use std::{fmt, io};

/// The reason why a program was not counted.
#[derive(Debug)]
#[non_exhaustive]
pub enum CountError {
    /// There is no such program.
    NotFound(OsString),
    /// The program cannot be started.
    Start(OsString, io::Error),
    /// The kernel does not let us trace it.
    Trace(io::Error),
    /// The kernel does not provide something that the translator needs, such as shared memory.
    Setup(&'static str, io::Error),
    /// The program is for another processor or mode.
    OtherMode(OsString),
    /// A signal ended it before its first instruction.
    Killed(OsString, i32),
    /// There is no process of that number.
    NoProcess(i32),
    /// The kernel does not let us trace that process.
    Attach(i32, io::Error),
    /// The process cannot be counted, for this reason; it continues as before.
    CannotAttach(i32, String),
    /// A process could not continue, and was ended.
    GivenUp(i32, io::Error),
}

/// A resource of limited size that a process ran out of, so that it cannot continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exhausted {
    /// Counters, of which each block has one.
    Counters,
    /// Nodes of its calling context trees.
    Contexts,
    /// Frames of these trees.
    Nesting,
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Counters => "the program has more blocks of code than there are counters",
            Self::Contexts => "its calling context tree has more nodes than there is room for",
            Self::Nesting => "its calls nest deeper than its calling context tree has room for",
        })
    }
}

impl std::error::Error for Exhausted {}

impl From<Exhausted> for io::Error {
    fn from(exhausted: Exhausted) -> Self {
        Self::other(exhausted)
    }
}

impl fmt::Display for CountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(program) => {
                write!(f, "cannot run {}: there is no such program", program.display())
            }
            Self::Start(program, error) => write!(f, "cannot start {}: {error}", program.display()),
            Self::Trace(error) => write!(f, "cannot trace the program: {error}"),
            Self::Setup(what, error) => write!(f, "cannot prepare the program: {what}: {error}"),
            Self::OtherMode(program) => {
                write!(f, "{} is not a 64-bit program for x86", program.display())
            }
            Self::Killed(program, signal) => {
                let name = nix::sys::signal::Signal::try_from(*signal);
                let name = name.map_or_else(|_| format!("signal {signal}"), |name| name.as_str().to_owned());
                write!(f, "{} was ended by {name} before its first instruction", program.display())
            }
            Self::NoProcess(pid) => write!(f, "there is no process {pid}"),
            Self::Attach(pid, error) => write!(f, "cannot trace process {pid}: {error}"),
            Self::CannotAttach(pid, why) => write!(f, "process {pid} cannot be counted: {why}"),
            Self::GivenUp(pid, error) => {
                write!(f, "process {pid} was ended, because it cannot go on: {error}")
            }
        }
    }
}

impl std::error::Error for CountError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Start(_, error)
            | Self::Trace(error)
            | Self::Setup(_, error)
            | Self::Attach(_, error)
            | Self::GivenUp(_, error) => Some(error),
            Self::NotFound(_)
            | Self::OtherMode(_)
            | Self::Killed(..)
            | Self::NoProcess(_)
            | Self::CannotAttach(..) => None,
        }
    }
}

impl CountError {
    /// The exit status that a shell would give: 127 if there is no program, 126 if it cannot start, and 128
    /// plus the signal's number if a signal ended it.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::NotFound(_) => 127,
            Self::Start(..) | Self::OtherMode(_) => 126,
            Self::Killed(_, signal) => (128 + signal) as u8,
            Self::Trace(_)
            | Self::Setup(..)
            | Self::NoProcess(_)
            | Self::Attach(..)
            | Self::CannotAttach(..)
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
