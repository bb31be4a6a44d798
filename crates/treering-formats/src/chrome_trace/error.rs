//! What can be wrong with a trace.

use std::fmt;

use treering_profile::InvalidProfile;

use crate::{JsonError, cpuprofile};

/// Why a trace could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// It is not the JSON that it should be.
    Json(JsonError),
    /// It has neither calls nor samples.
    Empty,
    /// It takes far more memory than any profile of its size does.
    TooLarge,
    /// The time of an event is no number that can be one.
    BadTime {
        /// Which event, from 0.
        event: usize,
    },
    /// The weight of a sample is no number that can be one.
    BadWeight(String),
    /// The samples of V8 in it cannot be read.
    Samples(cpuprofile::ReadError),
    /// The whole does not make a profile.
    Invalid(InvalidProfile),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => write!(f, "not a trace, or one that is damaged: {error}"),
            Self::Empty => f.write_str("the trace holds neither calls (B, E, X) nor samples"),
            Self::TooLarge => f.write_str("it takes far more memory than a profile of its size"),
            Self::BadTime { event } => write!(f, "the time of event {event} is no number or too large"),
            Self::BadWeight(weight) => write!(f, "the weight {weight} of a sample is below 0 or too large"),
            Self::Samples(error) => write!(f, "its samples cannot be read: {error}"),
            Self::Invalid(invalid) => write!(f, "its parts do not fit together: {invalid}"),
        }
    }
}

impl std::error::Error for ReadError {}
