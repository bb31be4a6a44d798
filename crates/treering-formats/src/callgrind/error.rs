//! What can be wrong with a callgrind file.

use std::fmt;

use treering_profile::InvalidProfile;

/// Why a callgrind file could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The number of the line, from 1.
    pub line: u64,
    /// The byte of the file at which the line starts.
    pub offset: u64,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a line of a callgrind file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// It is none of the lines of the format.
    UnknownLine,
    /// It has a version above 1.
    Version(String),
    /// It holds costs, but no `events:` line came before.
    NoEvents,
    /// It names more events than Treering reads.
    TooManyEvents(usize),
    /// It names a position other than `instr`, `bb` and `line`.
    UnknownPosition(String),
    /// It holds costs, but no `fn=` line came before.
    NoFunction,
    /// It holds the cost of a call, but no `cfn=` line came before.
    NoCallee,
    /// Something is there where a number belongs.
    NotANumber,
    /// A position goes below 0 or above 2^64.
    PositionOverflow,
    /// It has more costs than there are events.
    TooManyCosts,
    /// What it holds takes far more memory than a file of its size should.
    TooLarge,
    /// The file ended and holds no costs at all.
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
            Self::UnknownLine => f.write_str("is not a line of a callgrind file"),
            Self::Version(version) => write!(f, "states version {version}; only those up to 1 are known"),
            Self::NoEvents => f.write_str("holds costs before the `events:` line"),
            Self::TooManyEvents(count) => {
                write!(f, "names {count} events; at most {} can be read", super::read::MAX_EVENTS)
            }
            Self::UnknownPosition(name) => write!(f, "names an unknown sort of position, `{name}`"),
            Self::NoFunction => f.write_str("holds costs before the first `fn=` line"),
            Self::NoCallee => f.write_str("holds the cost of a call without a `cfn=` line"),
            Self::NotANumber => f.write_str("has something else where a number belongs"),
            Self::PositionOverflow => f.write_str("moves the position below 0 or above 2^64"),
            Self::TooManyCosts => f.write_str("has more costs than there are events"),
            Self::TooLarge => f.write_str("takes far more memory than a file of this size should"),
            Self::Empty => f.write_str("is the end, and no costs came before"),
            Self::Invalid(invalid) => write!(f, "is the end, and the parts do not fit together: {invalid}"),
        }
    }
}

impl std::error::Error for ReadError {}
