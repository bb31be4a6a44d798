//! What can be wrong with the output of perf script.

use treering_profile::InvalidProfile;

use crate::position::LineError;

/// Why the output of perf script could not be read.
pub type ReadError = LineError<Problem>;

/// What is wrong with the output of perf script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file ended and holds no samples.
    #[error("is the end, and no samples came before")]
    Empty,
    /// The line is longer than any that perf prints.
    #[error("is longer than {longest} bytes", longest = super::read::LONGEST_LINE)]
    LongLine,
    /// There are more events than are read.
    #[error("has one event more than the {most} that can be read", most = crate::sampled_event::MOST_EVENTS)]
    TooManyEvents,
    /// The system could not read on.
    #[error("cannot be read: {0}")]
    Io(String),
    /// The whole does not make a profile.
    #[error("is the end, and the parts do not fit together: {0}")]
    Invalid(InvalidProfile),
}
