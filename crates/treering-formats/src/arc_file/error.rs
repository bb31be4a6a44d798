//! What can be wrong with a file of calls.

use std::fmt;

/// Why a file of calls could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// It does not begin like one.
    NotArcs,
    /// It ends within its header.
    CutShort {
        /// How many bytes it has.
        length: usize,
    },
    /// It is of another version.
    Version(u32),
    /// A record reaches beyond the file, or is too small for what it holds.
    BadRecord {
        /// The byte at which it starts.
        offset: usize,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotArcs => f.write_str("not a file of calls counted under treering gprof"),
            Self::CutShort { length } => write!(f, "it has {length} bytes, which is less than its header"),
            Self::Version(version) => write!(f, "it is of version {version}; only version 1 is known"),
            Self::BadRecord { offset } => write!(f, "the record at byte {offset:#x} is damaged"),
        }
    }
}

impl std::error::Error for ReadError {}
