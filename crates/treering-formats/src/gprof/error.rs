//! What can be wrong with the output of gprof.

use std::fmt;

use treering_profile::InvalidProfile;

/// Why the output of gprof could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The number of the line, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with the output of gprof.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// There is neither a flat profile nor a call graph.
    Empty,
    /// A row of the flat profile is none.
    FlatRow,
    /// A row of the call graph is none.
    GraphRow,
    /// A number is larger than can be held.
    LargeNumber,
    /// What was read is no sound profile.
    Invalid(InvalidProfile),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, problem } = self;
        match problem {
            Problem::Empty => f.write_str("it has neither rows of a flat profile nor of a call graph"),
            Problem::FlatRow => write!(f, "line {line} is no row of gprof's flat profile"),
            Problem::GraphRow => write!(f, "line {line} is no row of gprof's call graph"),
            Problem::LargeNumber => write!(f, "line {line} has a number that is too large"),
            Problem::Invalid(error) => write!(f, "its contents are no valid profile: {error}"),
        }
    }
}

impl std::error::Error for ReadError {}
