//! Why a file of whatever format could not be read.

use std::fmt;

use crate::{
    Foreign, Format, GzipError, callgrind, chrome_trace, cpuprofile, firefox, folded, gmon, live,
    perf_script, pprof, prolog, pstats, speedscope, trg,
};

/// Why a file could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// It has no content.
    Empty,
    /// It is of a known sort that is no profile, or one that is not read.
    Foreign(Foreign),
    /// It is gzip data that holds a file of a known sort that is not read.
    CompressedForeign(Foreign),
    /// It is gzip data that cannot be decompressed.
    Gzip(GzipError),
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
    /// It is the output of perf script with something wrong.
    PerfScript(perf_script::ReadError),
    /// It is a `gmon.out` with something wrong.
    Gmon(gmon::ReadError),
    /// It is a profile of SWI-Prolog with something wrong.
    Prolog(prolog::ReadError),
    /// Speedscope's JSON, with something wrong.
    Speedscope(speedscope::ReadError),
    /// V8's profile of processor time, with something wrong.
    CpuProfile(cpuprofile::ReadError),
    /// Trace events of Chrome, with something wrong.
    ChromeTrace(chrome_trace::ReadError),
    /// What Python's cProfile dumps, with something wrong.
    Pstats(pstats::ReadError),
    /// The Firefox Profiler's processed profiles, with something wrong.
    Firefox(firefox::ReadError),
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
            Self::PerfScript(_) => Some(Format::PerfScript),
            Self::Gmon(_) => Some(Format::Gmon),
            Self::Prolog(_) => Some(Format::Prolog),
            Self::Speedscope(_) => Some(Format::Speedscope),
            Self::CpuProfile(_) => Some(Format::CpuProfile),
            Self::ChromeTrace(_) => Some(Format::ChromeTrace),
            Self::Pstats(_) => Some(Format::Pstats),
            Self::Firefox(_) => Some(Format::Firefox),
            Self::Empty
            | Self::Foreign(_)
            | Self::CompressedForeign(_)
            | Self::Gzip(_)
            | Self::Unknown { .. } => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the file is empty"),
            Self::Foreign(foreign) => write!(f, "not a profile that can be read: it is {foreign}"),
            Self::CompressedForeign(foreign) => {
                write!(f, "not a profile that can be read: compressed with gzip, it is {foreign}")
            }
            Self::Gzip(error) => error.fmt(f),
            Self::Unknown { start } => {
                write!(f, "not a profile that can be read: it starts with \"{}\"", start.escape_ascii())
            }
            Self::Trg(error) => error.fmt(f),
            Self::Live(error) => error.fmt(f),
            Self::Folded(error) => error.fmt(f),
            Self::Pprof(error) => error.fmt(f),
            Self::Callgrind(error) => error.fmt(f),
            Self::PerfScript(error) => error.fmt(f),
            Self::Gmon(error) => error.fmt(f),
            Self::Prolog(error) => error.fmt(f),
            Self::Speedscope(error) => error.fmt(f),
            Self::CpuProfile(error) => error.fmt(f),
            Self::ChromeTrace(error) => error.fmt(f),
            Self::Pstats(error) => error.fmt(f),
            Self::Firefox(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}
