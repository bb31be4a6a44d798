//! What can be wrong with a profile of the Firefox Profiler.

use std::fmt;

use treering_profile::InvalidProfile;

use crate::JsonError;

/// Why a profile of the Firefox Profiler could not be read. Threads and samples are told by their place, from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// It is not the JSON that it should be.
    Json(JsonError),
    /// No thread has samples.
    Empty,
    /// It takes far more memory than any profile of its size does.
    TooLarge,
    /// A thread has samples, and a table that they need is missing.
    MissingTable {
        /// Which thread.
        thread: usize,
        /// The table.
        table: &'static str,
    },
    /// A row refers to one that is not there, or that does not come before it.
    MissingRow {
        /// Which thread.
        thread: usize,
        /// The table that is referred to.
        table: &'static str,
        /// The number of the row.
        row: i64,
    },
    /// A weight is below 0, as in the difference of two profiles, or too large.
    BadWeight {
        /// Which thread.
        thread: usize,
        /// Which sample.
        sample: usize,
    },
    /// The whole does not make a profile.
    Invalid(InvalidProfile),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => write!(f, "not a profile of Firefox, or one that is damaged: {error}"),
            Self::Empty => f.write_str("no thread has samples"),
            Self::TooLarge => f.write_str("it takes far more memory than a profile of its size"),
            Self::MissingTable { thread, table } => write!(f, "thread {thread} has samples and no {table}"),
            Self::MissingRow { thread, table, row } => {
                write!(
                    f,
                    "row {row} of the {table} of thread {thread} is missing or not before what refers to it"
                )
            }
            Self::BadWeight { thread, sample } => {
                write!(f, "the weight of sample {sample} of thread {thread} is below 0 or too large")
            }
            Self::Invalid(invalid) => write!(f, "its parts do not fit together: {invalid}"),
        }
    }
}

impl std::error::Error for ReadError {}
