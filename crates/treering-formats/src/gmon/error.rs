//! What can be wrong with a `gmon.out`.

use std::fmt::{self, Display as _};

use treering_profile::InvalidProfile;

use crate::GzipError;
use crate::position::{AtByte, ByteError};

/// Why a `gmon.out` could not be read.
pub type ReadError = ByteError<Problem>;

/// What is wrong with a `gmon.out`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// It is gzip data that cannot be decompressed.
    Gzip(GzipError),
    /// It does not begin like one.
    NotGmon,
    /// It is of another version of the format.
    Version(u32),
    /// The file ends within a record.
    CutShort {
        /// Which record.
        record: &'static str,
        /// How many bytes it has.
        needed: u64,
        /// How many are left in the file.
        left: u64,
    },
    /// There is no record with such a number.
    UnknownRecord(u8),
    /// A histogram ends before it begins, or is of no code although it has bins.
    BadRange {
        /// Its first address.
        low: u64,
        /// The address behind it.
        high: u64,
    },
    /// The bins of the histogram have so many bits; only bins of 16 bits are read.
    WideBins(u32),
    /// Its addresses are not as wide as those of the program.
    Width {
        /// Whether its addresses have 64 bits, or else 32.
        wide: bool,
    },
    /// A histogram took no samples in a second.
    NoRate,
    /// A histogram shares addresses with another one and is not of the same.
    Overlap {
        /// Its first address.
        low: u64,
        /// The address behind it.
        high: u64,
    },
    /// Histograms measure different things.
    OtherDimension {
        /// What one measures.
        one: String,
        /// What another measures.
        other: String,
    },
    /// Histograms took samples at different rates.
    OtherRate {
        /// The rate of one, per second.
        one: u32,
        /// The rate of another.
        other: u32,
    },
    /// It takes far more memory than that of any program.
    TooLarge,
    /// The whole does not make a profile.
    Invalid(InvalidProfile),
}

impl AtByte for Problem {
    fn describe(&self, offset: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gzip(error) => error.fmt(f),
            Self::NotGmon => f.write_str("not a gmon.out file"),
            Self::Version(version) => {
                write!(f, "it is a gmon.out file of version {version}; only version 1 is known")
            }
            Self::WideBins(_) | Self::Width { .. } => write!(f, "the file {self}"),
            Self::CutShort { record, needed, left } => {
                write!(
                    f,
                    "{record} at byte {offset:#x} is cut short: it needs {needed} bytes, {left} are left"
                )
            }
            Self::UnknownRecord(tag) => {
                write!(f, "the record at byte {offset:#x} is of the kind {tag}, which is not known")
            }
            problem => write!(f, "the record at byte {offset:#x} {problem}"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gzip(error) => error.fmt(f),
            Self::NotGmon => f.write_str("is not one of a gmon.out file"),
            Self::Version(version) => write!(f, "is of version {version}"),
            Self::CutShort { needed, left, .. } => {
                write!(f, "is cut short: it needs {needed} bytes, {left} are left")
            }
            Self::UnknownRecord(tag) => write!(f, "is of the kind {tag}, which is not known"),
            Self::BadRange { low, high } => {
                write!(f, "is a histogram from {low:#x} to {high:#x}, which is no code")
            }
            Self::WideBins(bits) => {
                write!(f, "has bins of {bits} bits, as kernels write them; only bins of 16 bits are read")
            }
            Self::Width { wide } => {
                let (own, other) = if *wide { (64, 32) } else { (32, 64) };
                write!(f, "has addresses of {own} bits, and its program has addresses of {other} bits")
            }
            Self::NoRate => f.write_str("is a histogram with 0 samples a second"),
            Self::Overlap { low, high } => write!(
                f,
                "is a histogram from {low:#x} to {high:#x}, which shares addresses with another one"
            ),
            Self::OtherDimension { one, other } => {
                write!(f, "is a histogram of {other:?}, while another one is of {one:?}")
            }
            Self::OtherRate { one, other } => {
                write!(f, "is a histogram with {other} samples a second, while another one has {one}")
            }
            Self::TooLarge => f.write_str("takes far more memory than those of a profile of this size"),
            Self::Invalid(invalid) => write!(f, "is the end, and the parts do not fit together: {invalid}"),
        }
    }
}

impl std::error::Error for Problem {}
