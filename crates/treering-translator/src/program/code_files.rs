//! The files that code came from, by device and inode.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use hashbrown::HashMap;

/// Files as the kernel knows them: their devices and their numbers on these.
pub(crate) type FileId = (u64, u64);

/// The files that code came from.
#[derive(Debug, Default)]
pub(crate) struct CodeFiles {
    pub(crate) paths: HashMap<FileId, Vec<PathBuf>>,
    /// The number of regions that have been examined.
    pub(crate) regions: usize,
}

/// The file that has this metadata.
pub(crate) fn id_of(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}
