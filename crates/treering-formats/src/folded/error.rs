//! What can be wrong with folded stacks.

use treering_profile::InvalidProfile;

use crate::position::LineError;

/// Why folded stacks could not be read.
pub type ReadError = LineError<Problem>;

/// What is wrong with a line of folded stacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// There is no space, so no weight.
    #[error("has no weight: a stack is followed by a space and a number")]
    NoWeight,
    /// What follows the last space is not a number that can be a weight.
    #[error("ends with `{0}`, which is not a number from 0 to 2^64 - 1")]
    BadWeight(String),
    /// The stacks take far more memory than those of any profile of its size.
    #[error("is the end: the stacks take far more memory than those of a profile of this size")]
    TooLarge,
    /// The file ended and holds no stacks.
    #[error("is the end, and no stacks came before")]
    Empty,
    /// The whole does not make a profile.
    #[error("is the end, and the parts do not fit together: {0}")]
    Invalid(InvalidProfile),
}
