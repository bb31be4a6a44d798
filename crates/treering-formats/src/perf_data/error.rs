//! What can be wrong with a `perf.data` file.

use std::fmt::{self, Display as _};

use treering_profile::InvalidProfile;

use crate::GzipError;
use crate::position::{AtByte, ByteError};

/// Why a `perf.data` file could not be read.
pub type ReadError = ByteError<Problem>;

/// What is wrong with a `perf.data` file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// It is gzip data that cannot be decompressed.
    Gzip(GzipError),
    /// It does not begin like one.
    NotPerfData,
    /// It is of the first version, which perf wrote before Linux 3.0.
    OldVersion,
    /// The file ends within something that is needed.
    CutShort {
        /// What it is.
        what: &'static str,
    },
    /// A record says that it is shorter than its own header.
    BadSize(u16),
    /// Compressed records cannot be decompressed.
    Compressed(String),
    /// What is compressed is far larger than in a file of its size.
    TooLarge,
    /// There are no events.
    NoEvents,
    /// There are more events than are read.
    TooManyEvents,
    /// There are no samples.
    Empty,
    /// What was read is no sound profile.
    Invalid(InvalidProfile),
}

impl AtByte for Problem {
    fn describe(&self, offset: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gzip(error) => error.fmt(f),
            Self::NotPerfData => f.write_str("not a perf.data file"),
            Self::OldVersion => f.write_str("a perf.data file of perf before Linux 3.0, which is not read"),
            Self::CutShort { what } => write!(f, "the file ends within {what} (byte {offset:#x})"),
            Self::BadSize(size) => {
                write!(
                    f,
                    "the record at byte {offset:#x} says that it has {size} bytes, less than its header"
                )
            }
            Self::Compressed(what) => {
                write!(f, "the record at byte {offset:#x} cannot be decompressed: {what}")
            }
            Self::TooLarge => write!(
                f,
                "the records before byte {offset:#x} take far more memory than those of a file of its size"
            ),
            Self::NoEvents => f.write_str("it tells of no events"),
            Self::TooManyEvents => f.write_str("it has more than 128 events"),
            Self::Empty => f.write_str("it holds no samples"),
            Self::Invalid(error) => write!(f, "its contents are no valid profile: {error}"),
        }
    }
}
