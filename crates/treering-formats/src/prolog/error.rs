//! What can be wrong with a profile of SWI-Prolog.

use std::fmt;

use treering_profile::InvalidProfile;

/// Why a profile of SWI-Prolog could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The number of the line, from 1.
    pub line: u64,
    /// The byte of the file at which the line starts.
    pub offset: u64,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The file does not start as such files do.
    NotProlog,
    /// The file is of a version that is not known.
    Version(String),
    /// The line starts with a word that is not known.
    Unknown(String),
    /// A column is missing.
    Missing(&'static str),
    /// A column is no number, or one that is too large.
    BadNumber(&'static str, String),
    /// A column has a word that is not known.
    BadWord(&'static str, String),
    /// It names a predicate or node that did not come before.
    BadReference(&'static str, u64),
    /// The nodes take far more memory than those of any profile of its size.
    TooLarge,
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
            Self::NotProlog => f.write_str("does not say that this is a profile of SWI-Prolog"),
            Self::Version(version) => write!(f, "is of version `{version}`; version 1 is known"),
            Self::Unknown(word) => write!(f, "starts with `{word}`, which is not known"),
            Self::Missing(what) => write!(f, "has no {what}"),
            Self::BadNumber(what, text) => {
                write!(f, "has `{text}` for the {what}, which is not a number from 0 to 2^64 - 1")
            }
            Self::BadWord(what, text) => write!(f, "has `{text}` for the {what}, which is not known"),
            Self::BadReference(what, number) => write!(f, "names {what} {number}, which did not come before"),
            Self::TooLarge => {
                f.write_str("is one node too many for a file of this size, or has costs beyond 2^64")
            }
            Self::Invalid(invalid) => write!(f, "is the end, and the parts do not fit together: {invalid}"),
        }
    }
}

impl std::error::Error for ReadError {}
