//! What can be wrong with a file of Speedscope.

use std::fmt;

use treering_profile::InvalidProfile;

use crate::JsonError;

/// Why a file of Speedscope could not be read. Profiles, samples and events are told by their place, from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// It is not the JSON that it should be.
    Json(JsonError),
    /// There are no profiles in it.
    Empty,
    /// It takes far more memory than any profile of its size does.
    TooLarge,
    /// A sample or event is in a frame that is not there.
    MissingFrame {
        /// Which profile.
        profile: usize,
        /// Which sample or event.
        at: usize,
        /// The number of the frame.
        frame: u64,
    },
    /// There is not one weight for each sample.
    WeightCount {
        /// Which profile.
        profile: usize,
        /// How many samples it has.
        samples: usize,
        /// How many weights.
        weights: usize,
    },
    /// A weight or time is below 0 or too large.
    BadValue {
        /// Which profile.
        profile: usize,
        /// Which sample or event.
        at: usize,
    },
    /// An event is earlier than the one before it.
    StepsBack {
        /// Which profile.
        profile: usize,
        /// Which event.
        at: usize,
    },
    /// A frame is closed that is not the one opened last.
    Unbalanced {
        /// Which profile.
        profile: usize,
        /// Which event.
        at: usize,
    },
    /// The whole does not make a profile.
    Invalid(InvalidProfile),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => write!(f, "not a file of Speedscope, or one that is damaged: {error}"),
            Self::Empty => f.write_str("it holds no profiles"),
            Self::TooLarge => f.write_str("it takes far more memory than a profile of its size"),
            Self::MissingFrame { profile, at, frame } => {
                write!(f, "frame {frame} of sample or event {at} of profile {profile} is missing")
            }
            Self::WeightCount { profile, samples, weights } => {
                write!(f, "profile {profile} has {weights} weights for {samples} samples")
            }
            Self::BadValue { profile, at } => {
                write!(f, "the value of sample or event {at} of profile {profile} is below 0 or too large")
            }
            Self::StepsBack { profile, at } => {
                write!(f, "event {at} of profile {profile} is earlier than the one before it")
            }
            Self::Unbalanced { profile, at } => {
                write!(f, "event {at} of profile {profile} closes a frame that was not opened last")
            }
            Self::Invalid(invalid) => write!(f, "its parts do not fit together: {invalid}"),
        }
    }
}

impl std::error::Error for ReadError {}
