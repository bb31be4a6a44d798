//! Parts of a `.trg` file that cannot be used, and why one cannot be written.

use std::fmt;

use crate::trg::Kind;

/// A part of a file that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The byte of the file at which it starts.
    pub offset: u64,
    /// How many bytes were passed over.
    pub length: u64,
    /// The number of the kind that the frame claims to be, where that much is there.
    pub kind: Option<u16>,
    /// The damage.
    pub damage: Damage,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Some(number) => match Kind::from_number(number) {
                Some(kind) => write!(f, "{kind} frame at byte {:#x} {}", self.offset, self.damage),
                None => write!(f, "frame of kind {number} at byte {:#x} {}", self.offset, self.damage),
            },
            None => write!(f, "frame at byte {:#x} {}", self.offset, self.damage),
        }
    }
}

/// The damage of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// The file ends within it.
    CutShort {
        /// How many bytes it has.
        needs: u64,
        /// How many of them are there.
        left: u64,
    },
    /// Its bytes are not those that were written.
    Checksum,
    /// It claims to be larger than a frame may be.
    TooLarge {
        /// The length it claims, in bytes.
        length: u32,
    },
    /// With it, the profile would take more memory than a file of this size can have a use for.
    TooMuch,
    /// It cannot be decompressed to the length it claims.
    Compression,
    /// It continues a table of which an earlier part was lost.
    Gap {
        /// The first entry it holds.
        first: u64,
        /// How many entries there are before.
        known: u64,
    },
    /// Its content makes no sense.
    Content(&'static str),
    /// Its content is not the text it should be.
    Text(String),
    /// The totals that it states are not those of the frames before it.
    Totals,
    /// It follows the END frame.
    AfterEnd,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CutShort { needs, left } => {
                write!(f, "is cut short: it needs {needs} bytes, {left} are left")
            }
            Self::Checksum => f.write_str("is damaged: its checksum does not match"),
            Self::TooLarge { length } => write!(f, "is damaged: it claims to hold {length} bytes"),
            Self::TooMuch => f.write_str("would make the profile larger than a file of this size can be"),
            Self::Compression => f.write_str("is damaged: it cannot be decompressed"),
            Self::Gap { first, known } => {
                write!(f, "starts with entry {first}, but only {known} entries before it could be read")
            }
            Self::Content(what) => write!(f, "is not valid: {what}"),
            Self::Text(what) => write!(f, "is not valid: {what}"),
            Self::Totals => f.write_str("states other totals than the frames before it have"),
            Self::AfterEnd => f.write_str("follows the end of the profile"),
        }
    }
}

/// Why a `.trg` file could not be written.
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The output failed. What was written before is readable.
    Io(std::io::Error),
    /// A single text or module is larger than a frame may be (64 MiB).
    TooLarge {
        /// Its size in bytes.
        length: usize,
    },
    /// The profile does not contain what was appended before.
    NotAnExtension(&'static str),
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::TooLarge { length } => write!(f, "a text of {length} bytes does not fit a frame"),
            Self::NotAnExtension(what) => {
                write!(f, "the profile is not the one appended before, grown: {what}")
            }
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<std::io::Error> for WriteError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<crate::budget::OverBudget> for Damage {
    fn from(_: crate::budget::OverBudget) -> Self {
        Self::TooMuch
    }
}
