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
