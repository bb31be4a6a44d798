//! What can be wrong with a pprof profile.

use std::fmt;

use treering_profile::InvalidProfile;

use crate::GzipError;

/// Why a pprof profile could not be read.
///
/// Samples, locations and functions are told by their place in the message, from 0: the protobuf
/// decoder does not keep byte positions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The gzip data cannot be decompressed.
    Gzip(GzipError),
    /// It takes far more memory than any profile of its size does.
    TooLarge,
    /// It is not the protobuf message that it should be.
    Protobuf(String),
    /// It has no sample types, so no metrics.
    NoSampleTypes,
    /// It has more sample types than Treering reads.
    TooManySampleTypes(usize),
    /// An index points behind the string table.
    MissingString(i64),
    /// A sample has more or fewer values than there are sample types.
    ValueCount {
        /// Which sample.
        sample: usize,
        /// How many values it has.
        values: usize,
        /// How many there should be.
        types: usize,
    },
    /// A sample is in a location that is not there.
    MissingLocation {
        /// Which sample.
        sample: usize,
        /// The id of the location.
        id: u64,
    },
    /// A location is in a function that is not there.
    MissingFunction {
        /// The id of the location.
        location: u64,
        /// The id of the function.
        id: u64,
    },
    /// A location is in a mapping that is not there.
    MissingMapping {
        /// The id of the location.
        location: u64,
        /// The id of the mapping.
        id: u64,
    },
    /// No sample has the labels that were asked for.
    NoSuchLabels {
        /// The labels, as `KEY=VALUE`.
        wanted: String,
        /// Those that there are: keys with some of their values.
        known: Vec<String>,
    },
    /// The whole does not make a profile.
    Invalid(InvalidProfile),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gzip(error) => error.fmt(f),
            Self::TooLarge => f.write_str("it takes far more memory than a profile of its size"),
            Self::Protobuf(what) => write!(f, "not a pprof profile, or one cut short: {what}"),
            Self::NoSampleTypes => f.write_str("it has no sample types"),
            Self::TooManySampleTypes(count) => {
                write!(f, "it has {count} sample types; at most {} can be read", super::read::MAX_TYPES)
            }
            Self::MissingString(index) => write!(f, "string {index} is missing"),
            Self::ValueCount { sample, values, types } => {
                write!(f, "sample {sample} has {values} values for {types} sample types")
            }
            Self::MissingLocation { sample, id } => write!(f, "location {id} of sample {sample} is missing"),
            Self::MissingFunction { location, id } => {
                write!(f, "function {id} of location {location} is missing")
            }
            Self::MissingMapping { location, id } => {
                write!(f, "mapping {id} of location {location} is missing")
            }
            Self::NoSuchLabels { wanted, known } if known.is_empty() => {
                write!(f, "no sample has the label {wanted}; samples have no labels at all")
            }
            Self::NoSuchLabels { wanted, known } => {
                write!(f, "no sample has the label {wanted}; there are: {}", known.join("; "))
            }
            Self::Invalid(invalid) => write!(f, "its parts do not fit together: {invalid}"),
        }
    }
}

impl std::error::Error for ReadError {}
