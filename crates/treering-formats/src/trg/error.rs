//! Parts of a `.trg` file that cannot be used, and why one cannot be written.

use std::fmt;

use crate::trg::Kind;

/// A part of a file that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
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

/// The damage of a frame, as the predicate of a sentence about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The file ends within it.
    #[error("is cut short: it needs {needs} bytes, {left} are left")]
    CutShort {
        /// How many bytes it has.
        needs: u64,
        /// How many of them are there.
        left: u64,
    },
    /// Its bytes are not those that were written.
    #[error("is damaged: its checksum does not match")]
    Checksum,
    /// It claims to be larger than a frame may be.
    #[error("is damaged: it claims to hold {length} bytes")]
    TooLarge {
        /// The length it claims, in bytes.
        length: u32,
    },
    /// With it, the profile would take more memory than a file of this size can have a use for.
    #[error("would make the profile larger than a file of this size can be")]
    TooMuch,
    /// It cannot be decompressed to the length it claims.
    #[error("is damaged: it cannot be decompressed")]
    Compression,
    /// It continues a table of which an earlier part was lost.
    #[error("starts with entry {first}, but only {known} entries before it could be read")]
    Gap {
        /// The first entry it holds.
        first: u64,
        /// How many entries there are before.
        known: u64,
    },
    /// Its content makes no sense.
    #[error("is not valid: {0}")]
    Content(&'static str),
    /// Its content is not the text it should be.
    #[error("is not valid: {0}")]
    Text(String),
    /// The totals that it states are not those of the frames before it.
    #[error("states other totals than the frames before it have")]
    Totals,
    /// It follows the END frame.
    #[error("follows the end of the profile")]
    AfterEnd,
}

/// Why a `.trg` file could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The output failed. What was written before is readable.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// A single text or module is larger than a frame may be (64 MiB).
    #[error("a text of {length} bytes does not fit a frame")]
    TooLarge {
        /// Its size in bytes.
        length: usize,
    },
    /// The profile does not contain what was appended before.
    #[error("the profile is not the one appended before, grown: {0}")]
    NotAnExtension(&'static str),
}

impl From<crate::budget::OverBudget> for Damage {
    fn from(_: crate::budget::OverBudget) -> Self {
        Self::TooMuch
    }
}
