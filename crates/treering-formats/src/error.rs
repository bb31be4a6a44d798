//! Why a file of whatever format could not be read.

use std::fmt;

use crate::{Format, callgrind, folded, live, pprof, trg};

/// Why a file could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// It has no content.
    Empty,
    /// It is of a known sort that is no profile, or one that is not read.
    Foreign(Foreign),
    /// It is of no known sort.
    Unknown {
        /// Its first bytes, at most eight.
        start: Vec<u8>,
    },
    /// It is a `.trg` file with something wrong.
    Trg(trg::ReadError),
    /// It is the live file of an instrumented program with something wrong.
    Live(live::ReadError),
    /// It holds folded stacks with something wrong.
    Folded(folded::ReadError),
    /// It is a pprof profile with something wrong.
    Pprof(pprof::ReadError),
    /// It is a callgrind file with something wrong.
    Callgrind(callgrind::ReadError),
}

impl Error {
    /// The format that it was taken for, if it was taken for one.
    pub fn format(&self) -> Option<Format> {
        match self {
            Self::Trg(_) => Some(Format::Trg),
            Self::Live(_) => Some(Format::Live),
            Self::Folded(_) => Some(Format::Folded),
            Self::Pprof(_) => Some(Format::Pprof),
            Self::Callgrind(_) => Some(Format::Callgrind),
            Self::Empty | Self::Foreign(_) | Self::Unknown { .. } => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the file is empty"),
            Self::Foreign(foreign) => write!(f, "not a profile that can be read: it is {foreign}"),
            Self::Unknown { start } => {
                write!(f, "not a profile that can be read: it starts with \"{}\"", start.escape_ascii())
            }
            Self::Trg(error) => error.fmt(f),
            Self::Live(error) => error.fmt(f),
            Self::Folded(error) => error.fmt(f),
            Self::Pprof(error) => error.fmt(f),
            Self::Callgrind(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

/// A sort of file that is recognised but not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Foreign {
    /// What `perf record` writes.
    PerfData,
    /// What programs compiled with `-pg` write.
    Gmon,
    /// A program or library.
    Elf,
    /// Gzip data that holds something else than a pprof profile.
    Gzip,
    /// Zstandard data.
    Zstd,
    /// JSON, as Speedscope, the Firefox Profiler and Chrome write it.
    Json,
    /// A page or other markup.
    Markup,
    /// What `perf script` prints.
    PerfScript,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PerfData => "a perf.data file",
            Self::Gmon => "a gmon.out file",
            Self::Elf => "a program or library",
            Self::Gzip => "compressed with gzip and holds no pprof profile",
            Self::Zstd => "compressed with zstd",
            Self::Json => "JSON",
            Self::Markup => "HTML or XML",
            Self::PerfScript => "the output of perf script",
        })
    }
}
