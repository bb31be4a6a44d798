//! What can be wrong with a result of Octave's profiler.

use std::fmt;

use treering_profile::InvalidProfile;

/// Why a result of Octave's profiler could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// At which byte; that of the end for what is wrong with the whole.
    pub offset: usize,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong.
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

impl ReadError {
    pub(crate) fn new(offset: usize, problem: Problem) -> Self {
        Self { offset, problem }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = self.offset;
        match &self.problem {
            Problem::Cut => write!(f, "the file is cut short at byte {offset:#x}"),
            Problem::Expected(what) => write!(f, "{what} is expected at byte {offset:#x}"),
            Problem::UnknownType(name) => {
                write!(
                    f,
                    "the value before byte {offset:#x} has the type {name:?}, which no profile of Octave has"
                )
            }
            Problem::TooDeep => write!(f, "the value at byte {offset:#x} is nested too deeply"),
            Problem::TooLarge => f.write_str("it takes far more memory than a profile of its size"),
            Problem::Shape(what) => write!(f, "it is not what profile (\"info\") returns: {what}"),
            Problem::NoFunction(index) => {
                write!(f, "a call is of function {index}, which is not in the table")
            }
            Problem::Invalid(invalid) => write!(f, "its parts do not fit together: {invalid}"),
        }
    }
}

impl std::error::Error for ReadError {}
