//! What can be wrong with a `.cpuprofile`.

use std::fmt;

use treering_profile::InvalidProfile;

use crate::JsonError;

/// Why a `.cpuprofile` could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// It is not the JSON that it should be.
    Json(JsonError),
    /// It has no samples, neither with times nor as counts of nodes.
    Empty,
    /// It takes far more memory than any profile of its size does.
    TooLarge,
    /// There is not one time for each sample.
    TimeCount {
        /// How many samples there are.
        samples: usize,
        /// How many times.
        times: usize,
    },
    /// A sample or node refers to a node that is not there.
    MissingNode(u64),
    /// A node has two callers, or is its own.
    Tangled(u64),
    /// A time is no number that can be one.
    BadTime {
        /// Of which sample, from 0.
        sample: usize,
    },
    /// The whole does not make a profile.
    Invalid(InvalidProfile),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => write!(f, "not a .cpuprofile, or one that is damaged: {error}"),
            Self::Empty => f.write_str("it holds no samples"),
            Self::TooLarge => f.write_str("it takes far more memory than a profile of its size"),
            Self::TimeCount { samples, times } => write!(f, "it has {times} times for {samples} samples"),
            Self::MissingNode(id) => write!(f, "node {id} is missing"),
            Self::Tangled(id) => {
                write!(f, "node {id} has two callers or calls itself, so the nodes are no tree")
            }
            Self::BadTime { sample } => write!(f, "the time of sample {sample} is too large"),
            Self::Invalid(invalid) => write!(f, "its parts do not fit together: {invalid}"),
        }
    }
}

impl std::error::Error for ReadError {}
