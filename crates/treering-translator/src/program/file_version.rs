//! The version of a file: whether it is still the same as before.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The state of a file when its code ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Version {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Version {
    /// How many numbers it is in a journal.
    pub(crate) const WORDS: usize = 5;

    /// Its numbers, which are not all 0: no file has the inode 0.
    pub(crate) fn to_words(self) -> [u64; Self::WORDS] {
        let (seconds, nanoseconds) = self.modified;
        [self.device, self.inode, self.size, seconds.cast_unsigned(), nanoseconds.cast_unsigned()]
    }

    /// The version with these numbers.
    pub(crate) fn of_words([device, inode, size, seconds, nanoseconds]: [u64; Self::WORDS]) -> Self {
        Self { device, inode, size, modified: (seconds.cast_signed(), nanoseconds.cast_signed()) }
    }

    pub(crate) fn of(path: &Path) -> Option<Self> {
        Self::of_found(&path.metadata().ok()?)
    }

    pub(crate) fn of_file(file: &File) -> Option<Self> {
        Self::of_found(&file.metadata().ok()?)
    }

    fn of_found(found: &Metadata) -> Option<Self> {
        let modified = (found.mtime(), found.mtime_nsec());
        Some(Self { device: found.dev(), inode: found.ino(), size: found.size(), modified })
    }
}
