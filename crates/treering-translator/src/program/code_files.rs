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
    /// How many regions have been looked at.
    pub(crate) regions: usize,
}

/// The file of its metadata.
pub(crate) fn id_of(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}
