//! What can be wrong with a callgrind file.

use treering_profile::InvalidProfile;

use crate::position::LineError;

/// Why a callgrind file could not be read.
pub type ReadError = LineError<Problem>;

/// What is wrong with a line of a callgrind file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It is none of the lines of the format.
    #[error("is not a line of a callgrind file")]
    UnknownLine,
    /// It has a version above 1.
    #[error("states version {0}; only those up to 1 are known")]
    Version(String),
    /// It holds costs, but no `events:` line came before.
    #[error("holds costs before the `events:` line")]
    NoEvents,
    /// It names more events than Treering reads.
    #[error("names {0} events; at most {max} can be read", max = super::read::MAX_EVENTS)]
    TooManyEvents(usize),
    /// It names a position other than `instr`, `bb` and `line`.
    #[error("names an unknown sort of position, `{0}`")]
    UnknownPosition(String),
    /// It holds costs, but no `fn=` line came before.
    #[error("holds costs before the first `fn=` line")]
    NoFunction,
    /// It holds the cost of a call, but no `cfn=` line came before.
    #[error("holds the cost of a call without a `cfn=` line")]
    NoCallee,
    /// Something is there where a number belongs.
    #[error("has something else where a number belongs")]
    NotANumber,
    /// A position goes below 0 or above 2^64.
    #[error("moves the position below 0 or above 2^64")]
    PositionOverflow,
    /// It has more costs than there are events.
    #[error("has more costs than there are events")]
    TooManyCosts,
    /// What it holds takes far more memory than a file of its size should.
    #[error("takes far more memory than a file of this size should")]
    TooLarge,
    /// The file ended and holds no costs at all.
    #[error("is the end, and no costs came before")]
    Empty,
    /// The whole does not make a profile.
    #[error("is the end, and the parts do not fit together: {0}")]
    Invalid(InvalidProfile),
}
