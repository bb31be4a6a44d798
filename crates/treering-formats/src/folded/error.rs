//! What can be wrong with folded stacks.

use std::fmt;

use treering_profile::InvalidProfile;

/// Why folded stacks could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The number of the line, from 1.
    pub line: u64,
    /// The byte of the file at which the line starts.
    pub offset: u64,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a line of folded stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// There is no space, so no weight.
    NoWeight,
    /// What follows the last space is not a number that can be a weight.
    BadWeight(String),
    /// The stacks take far more memory than those of any profile of its size.
    TooLarge,
    /// The file ended and holds no stacks.
    Empty,
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
            Self::NoWeight => f.write_str("has no weight: a stack is followed by a space and a number"),
            Self::BadWeight(text) => {
                write!(f, "ends with `{text}`, which is not a number from 0 to 2^64 - 1")
            }
            Self::TooLarge => f.write_str(
                "is the end: the stacks take far more memory than those of a profile of this size",
            ),
            Self::Empty => f.write_str("is the end, and no stacks came before"),
            Self::Invalid(invalid) => write!(f, "is the end, and the parts do not fit together: {invalid}"),
        }
    }
}

impl std::error::Error for ReadError {}
