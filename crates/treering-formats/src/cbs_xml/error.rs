//! What can be wrong with XML of a benchmark.

use std::fmt;

use treering_profile::InvalidProfile;

/// Why XML of a benchmark could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// At which byte; that of the end for what is wrong with the whole.
    pub offset: usize,
    /// The problem.
    pub problem: Problem,
}

/// The kinds of problems.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The file ends within an element.
    Cut,
    /// It is no XML there.
    Syntax(String),
    /// An element lacks an attribute.
    Missing(&'static str),
    /// An attribute or element is no number, or one that is too large.
    BadNumber(&'static str, String),
    /// There are two tasks of one number.
    SameTask(u64),
    /// A call is of a task that is not in the list.
    NoTask(u64),
    /// It has no call graph.
    NoTimer,
    /// It takes far more memory than any profile of its size does, or has costs beyond 2^64.
    TooLarge,
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
            Problem::Syntax(what) => write!(f, "it is no XML at byte {offset:#x}: {what}"),
            Problem::Missing(what) => write!(f, "the element before byte {offset:#x} has no {what}"),
            Problem::BadNumber(what, text) => {
                write!(
                    f,
                    "the element before byte {offset:#x} has `{text}` for the {what}, which is no number"
                )
            }
            Problem::SameTask(id) => write!(f, "the task before byte {offset:#x} has the id {id} of another"),
            Problem::NoTask(id) => write!(f, "a call is of task {id}, which is not in the list"),
            Problem::NoTimer => f.write_str("it has no call graph: it was saved without CO_CALLGRAPH"),
            Problem::TooLarge => {
                f.write_str("it takes far more memory than a profile of its size, or has costs beyond 2^64")
            }
            Problem::Invalid(invalid) => write!(f, "its parts do not fit together: {invalid}"),
        }
    }
}

impl std::error::Error for ReadError {}
