//! What can be wrong with profiles of OpenTelemetry.

use std::fmt;

use crate::{GzipError, JsonError, pprof};

/// Why profiles of OpenTelemetry could not be read.
///
/// Samples and the elements of tables are told by their number, from 0: the protobuf decoder does not keep byte
/// positions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The gzip data cannot be decompressed.
    Gzip(GzipError),
    /// It is not the protobuf message that it should be.
    Protobuf(String),
    /// It is not the JSON that it should be.
    Json(JsonError),
    /// It has no dictionary: it is by the schema of 2024, or has other signals than profiles.
    NoDictionary,
    /// It has no profile with samples.
    NoSamples,
    /// An index points behind its table.
    Missing {
        /// What the table has.
        what: &'static str,
        /// The index.
        index: i64,
        /// The sample, or the element of another table, that holds the index.
        user: String,
    },
    /// It takes far more memory than any profile of its size does.
    TooLarge,
    /// What it says does not make a profile.
    Profile(pprof::ReadError),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gzip(error) => error.fmt(f),
            Self::Protobuf(what) => write!(f, "it is no OTLP profile, or damaged or cut short: {what}"),
            Self::Json(error) => error.fmt(f),
            Self::NoDictionary => f.write_str(
                "it is OTLP without a dictionary of profiles: by the schema of 2024, or another signal",
            ),
            Self::NoSamples => f.write_str("it has no samples"),
            Self::Missing { what, index, user } => {
                write!(f, "{user} names {what} {index}, which is not there")
            }
            Self::TooLarge => f.write_str("it takes far more memory than a profile of its size"),
            Self::Profile(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<JsonError> for ReadError {
    fn from(error: JsonError) -> Self {
        Self::Json(error)
    }
}
