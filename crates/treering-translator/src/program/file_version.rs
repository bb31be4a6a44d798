//! The version of a file: whether it is still the same as before.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The state of a file when its code ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Version {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Version {
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let found = path.metadata().ok()?;
        let modified = (found.mtime(), found.mtime_nsec());
        Some(Self { device: found.dev(), inode: found.ino(), size: found.size(), modified })
    }
}
