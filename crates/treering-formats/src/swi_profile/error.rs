//! What can be wrong with the data of SWI-Prolog's profiler.

use std::fmt;

use treering_profile::InvalidProfile;

use crate::budget::OverLimit;
use crate::position::{AtByte, ByteError};

/// Why the data of SWI-Prolog's profiler could not be read.
pub type ReadError = ByteError<Problem>;

/// The kinds of problems.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The file ends within a term.
    Cut,
    /// Something else was expected.
    Expected(&'static str),
    /// Terms are in each other deeper than those of a profile are.
    TooDeep,
    /// It takes far more memory than any profile of its size does.
    TooLarge,
    /// A value of the whole is missing or of another sort.
    Shape(&'static str),
    /// A value of a predicate, counted from 1, is missing or of another sort.
    Node(usize, &'static str),
    /// The whole does not make a profile.
    Invalid(InvalidProfile),
}

impl AtByte for Problem {
    fn describe(&self, offset: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut => write!(f, "the file is cut short at byte {offset:#x}"),
            Self::Expected(what) => write!(f, "{what} is expected at byte {offset:#x}"),
            Self::TooDeep => write!(f, "the term at byte {offset:#x} is nested too deeply"),
            Self::TooLarge => f.write_str("it takes far more memory than a profile of its size"),
            Self::Shape(what) => write!(f, "it is not what profile_data/1 gives: {what}"),
            Self::Node(number, what) => {
                write!(f, "it is not what profile_data/1 gives: node {number} {what}")
            }
            Self::Invalid(invalid) => write!(f, "its parts do not fit together: {invalid}"),
        }
    }
}

impl From<OverLimit> for Problem {
    fn from(limit: OverLimit) -> Self {
        match limit {
            OverLimit::Memory => Self::TooLarge,
            OverLimit::Depth => Self::TooDeep,
        }
    }
}
