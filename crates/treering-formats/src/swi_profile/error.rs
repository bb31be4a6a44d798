//! What can be wrong with the data of SWI-Prolog's profiler.

use std::fmt;

use treering_profile::InvalidProfile;

/// Why the data of SWI-Prolog's profiler could not be read.
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
            Problem::TooDeep => write!(f, "the term at byte {offset:#x} is nested too deeply"),
            Problem::TooLarge => f.write_str("it takes far more memory than a profile of its size"),
            Problem::Shape(what) => write!(f, "it is not what profile_data/1 gives: {what}"),
            Problem::Node(number, what) => {
                write!(f, "it is not what profile_data/1 gives: node {number} {what}")
            }
            Problem::Invalid(invalid) => write!(f, "its parts do not fit together: {invalid}"),
        }
    }
}

impl std::error::Error for ReadError {}
