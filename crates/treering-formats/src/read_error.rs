//! Why a file could not be read: where in it, and the problem.

use std::borrow::Cow;
use std::fmt;

use treering_profile::InvalidProfile;

use crate::GzipError;
use crate::budget::{OverBudget, OverLimit};

/// Why a file could not be read. The text says where, what is wrong, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The place of the problem.
    pub position: Position,
    /// The problem.
    pub problem: Problem,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// The file as a whole.
    Whole,
    /// A byte, from 0.
    Byte(u64),
    /// A line of text, from 1.
    Line {
        /// The number of the line, from 1.
        number: u64,
        /// The byte of the file at which the line starts.
        offset: u64,
    },
    /// A place in JSON.
    Column {
        /// The number of the line, from 1.
        line: u64,
        /// The column, from 1.
        column: u64,
    },
    /// An element of a table, for formats whose decoders keep no positions: `sample 3`.
    Element(String),
}

/// A problem with a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It has none of the things that a profile is made of.
    #[error("it holds no {0}")]
    Empty(&'static str),
    /// It ends too early.
    #[error("the file is cut short")]
    CutShort,
    /// It takes far more memory than any profile of its size does.
    #[error("it takes far more memory than a profile of its size")]
    TooLarge,
    /// Values are nested deeper than in any profile.
    #[error("values are nested too deeply")]
    TooDeep,
    /// It is gzip data that cannot be decompressed.
    #[error("{0}")]
    Gzip(GzipError),
    /// It is a file of something else.
    #[error("not {0}")]
    OtherFormat(&'static str),
    /// It ends within one of its parts.
    #[error("{part} is cut short: it needs {needed} bytes, {left} are left")]
    PartCutShort {
        /// The part, with its article.
        part: &'static str,
        /// How many bytes it has.
        needed: u64,
        /// How many of them the file has.
        left: u64,
    },
    /// It ends within one of its parts, of which the size is not known.
    #[error("the file ends within {0}")]
    EndsWithin(&'static str),
    /// It has not what it refers to, or what was asked for.
    #[error("{0}")]
    Missing(Cow<'static, str>),
    /// The input failed.
    #[error("the input failed: {0}")]
    Input(String),
    /// The syntax asks for something else.
    #[error("{0} is expected")]
    Expected(&'static str),
    /// It is of a version or kind that is not read.
    #[error("{0}")]
    Unsupported(Cow<'static, str>),
    /// A part of it makes no sense; the text says which part, and what was expected.
    #[error("{0}")]
    Malformed(Cow<'static, str>),
    /// The whole does not make a profile.
    #[error("its parts do not fit together: {0}")]
    Invalid(InvalidProfile),
}

/// Costs whose sum is no number of 64 bits.
pub(crate) const LARGE_SUM: Problem = malformed("a sum of costs below 2^64 is expected");

/// A time that is no number of nanoseconds of 64 bits.
pub(crate) const LARGE_TIME: Problem = malformed("a time below 2^64 nanoseconds is expected");

const fn malformed(text: &'static str) -> Problem {
    Problem::Malformed(Cow::Borrowed(text))
}

impl ReadError {
    fn new(position: Position, problem: impl Into<Problem>) -> Self {
        Self { position, problem: problem.into() }
    }

    pub(crate) fn at_byte(offset: usize, problem: impl Into<Problem>) -> Self {
        Self::new(Position::Byte(offset as u64), problem)
    }

    pub(crate) fn at_line(number: u64, offset: u64, problem: impl Into<Problem>) -> Self {
        Self::new(Position::Line { number, offset }, problem)
    }

    /// An error at an element of a table, such as `sample 3`.
    pub(crate) fn at(element: impl fmt::Display, problem: impl Into<Problem>) -> Self {
        Self::new(Position::Element(element.to_string()), problem)
    }
}

impl Problem {
    pub(crate) fn missing(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Missing(text.into())
    }

    pub(crate) fn unsupported(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Unsupported(text.into())
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.position {
            Position::Whole => {}
            Position::Byte(offset) => write!(f, "byte {offset:#x}: ")?,
            Position::Line { number, offset } => write!(f, "line {number} at byte {offset:#x}: ")?,
            Position::Column { line, column } => write!(f, "line {line}, column {column}: ")?,
            Position::Element(element) => write!(f, "{element}: ")?,
        }
        self.problem.fmt(f)
    }
}

impl std::error::Error for ReadError {}

/// A problem with the whole.
impl<P: Into<Problem>> From<P> for ReadError {
    fn from(problem: P) -> Self {
        Self::new(Position::Whole, problem)
    }
}

#[cfg(feature = "all")]
impl From<serde_json::Error> for ReadError {
    fn from(error: serde_json::Error) -> Self {
        let position = match (error.line() as u64, error.column() as u64) {
            (0, _) => Position::Whole,
            (line, column) => Position::Column { line, column },
        };
        if error.is_eof() {
            return Self { position, problem: Problem::CutShort };
        }
        // serde_json adds the place itself.
        let text = error.to_string();
        Self::new(position, text.split(" at line ").next().unwrap_or_default().to_owned())
    }
}

impl From<&'static str> for Problem {
    fn from(text: &'static str) -> Self {
        Self::Malformed(text.into())
    }
}

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Self::Malformed(text.into())
    }
}

impl From<InvalidProfile> for Problem {
    fn from(invalid: InvalidProfile) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<GzipError> for Problem {
    fn from(error: GzipError) -> Self {
        Self::Gzip(error)
    }
}

impl From<OverBudget> for Problem {
    fn from(_: OverBudget) -> Self {
        Self::TooLarge
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
