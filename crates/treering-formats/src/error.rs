//! Why a file of whatever format could not be read.

use crate::{Foreign, Format, GzipError, ReadError};

/// Why a file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It has no content.
    #[error("the file is empty")]
    Empty,
    /// It is of a known sort that is no profile, or one that is not read.
    #[error("not a profile that can be read: it is {0}")]
    Foreign(Foreign),
    /// It is gzip data that holds a file of a known sort that is not read.
    #[error("not a profile that can be read: compressed with gzip, it is {0}")]
    CompressedForeign(Foreign),
    /// It is gzip data that cannot be decompressed.
    #[error("{0}")]
    Gzip(GzipError),
    /// It is of no known sort.
    #[error("not a profile that can be read: it starts with \"{}\"", start.escape_ascii())]
    Unknown {
        /// Its first bytes, at most eight.
        start: Vec<u8>,
    },
    /// Something is wrong with a file of a format.
    #[error("{error}")]
    Read {
        /// The format.
        format: Format,
        /// The problem, and its place.
        error: ReadError,
    },
}

impl Error {
    /// The format that it was taken for, if it was taken for one.
    pub fn format(&self) -> Option<Format> {
        match self {
            Self::Read { format, .. } => Some(*format),
            _ => None,
        }
    }
}

impl ReadError {
    /// The error of a file that was taken for one of a format.
    pub fn of(self, format: Format) -> Error {
        Error::Read { format, error: self }
    }
}

impl From<GzipError> for Error {
    fn from(error: GzipError) -> Self {
        Self::Gzip(error)
    }
}
