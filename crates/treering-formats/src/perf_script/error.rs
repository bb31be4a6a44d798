//! What can be wrong with the output of perf script.

use std::fmt;

use treering_profile::InvalidProfile;

/// Why the output of perf script could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The number of the line, from 1.
    pub line: u64,
    /// The byte of the file at which the line starts.
    pub offset: u64,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with the output of perf script.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The file ended and holds no samples.
    Empty,
    /// The line is longer than any that perf prints.
    LongLine,
    /// There are more events than are read.
    TooManyEvents,
    /// The system could not read on.
    Io(String),
    /// The whole does not make a profile.
    Invalid(InvalidProfile),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} at byte {:#x} {}", self.line, self.offset, self.problem)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is the end, and no samples came before"),
            Self::LongLine => write!(f, "is longer than {} bytes", super::read::LONGEST_LINE),
            Self::TooManyEvents => {
                write!(
                    f,
                    "has one event more than the {} that can be read",
                    crate::sampled_event::MOST_EVENTS
                )
            }
            Self::Io(error) => write!(f, "cannot be read: {error}"),
            Self::Invalid(invalid) => write!(f, "is the end, and the parts do not fit together: {invalid}"),
        }
    }
}

impl std::error::Error for ReadError {}
