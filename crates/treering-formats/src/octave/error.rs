//! What can be wrong with a result of Octave's profiler.

use std::fmt;

use treering_profile::InvalidProfile;

use crate::budget::OverLimit;
use crate::position::{AtByte, ByteError};

/// Why a result of Octave's profiler could not be read.
pub type ReadError = ByteError<Problem>;

/// The kinds of problems.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The file ends within a value.
    Cut,
    /// Something else was expected.
    Expected(&'static str),
    /// A type of Octave that no profile has.
    UnknownType(String),
    /// Values are in each other deeper than Octave's calls can be.
    TooDeep,
    /// It takes far more memory than any profile of its size does.
    TooLarge,
    /// A value of the profile is missing or of another sort.
    Shape(&'static str),
    /// A call is of a function that is not in the table.
    NoFunction(u64),
    /// The whole does not make a profile.
    Invalid(InvalidProfile),
}

impl AtByte for Problem {
    fn describe(&self, offset: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut => write!(f, "the file is cut short at byte {offset:#x}"),
            Self::Expected(what) => write!(f, "{what} is expected at byte {offset:#x}"),
            Self::UnknownType(name) => {
                write!(
                    f,
                    "the value before byte {offset:#x} has the type {name:?}, which no profile of Octave has"
                )
            }
            Self::TooDeep => write!(f, "the value at byte {offset:#x} is nested too deeply"),
            Self::TooLarge => f.write_str("it takes far more memory than a profile of its size"),
            Self::Shape(what) => write!(f, "it is not what profile (\"info\") returns: {what}"),
            Self::NoFunction(index) => {
                write!(f, "a call is of function {index}, which is not in the table")
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
