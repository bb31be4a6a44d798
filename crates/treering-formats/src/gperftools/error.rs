//! What can be wrong with a profile of gperftools.

use std::fmt::{self, Display as _};

use treering_profile::InvalidProfile;

use crate::GzipError;
use crate::position::{AtByte, ByteError};

/// Why a profile of gperftools could not be read.
pub type ReadError = ByteError<Problem>;

/// What is wrong with a profile of gperftools.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// It is gzip data that cannot be decompressed.
    Gzip(GzipError),
    /// It begins neither like samples of processor time nor like a heap profile.
    Neither,
    /// It is of a kind of heap profile that is not known.
    UnknownHeap(String),
    /// A line of a heap profile is no stack.
    NoStack,
    /// A number is larger than can be held.
    LargeNumber,
    /// It holds no samples, or nothing that was allocated.
    Empty,
    /// What was read is no sound profile.
    Invalid(InvalidProfile),
}

impl AtByte for Problem {
    fn describe(&self, offset: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gzip(error) => error.fmt(f),
            Self::Neither => {
                f.write_str("neither a CPU profile nor a heap profile of gperftools, as its start tells")
            }
            Self::UnknownHeap(kind) => write!(f, "a heap profile of the kind \"{kind}\" is not known"),
            Self::NoStack => write!(
                f,
                "the line at byte {offset:#x} is neither a stack (\"1: 24 [2: 48] @ 0x401010\") nor a known heading"
            ),
            Self::LargeNumber => write!(f, "a number at byte {offset:#x} is too large"),
            Self::Empty => f.write_str("it holds nothing: no sample was taken, or nothing was allocated"),
            Self::Invalid(error) => write!(f, "its contents are no valid profile: {error}"),
        }
    }
}
