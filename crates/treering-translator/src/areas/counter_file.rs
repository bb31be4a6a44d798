//! The files behind counters and trees, which survive the tracer.

use std::io;
use std::path::{Path, PathBuf};

use crate::sys::layout::counter_slot;
use crate::sys::shared_memory::SharedMemory;

/// Trees leave so much room on a disk to others, such as counters, without which nothing goes on.
pub(crate) const SPARE: u64 = 64 << 20;

/// Counters in a file that are all 0, which nobody uses. To remove files and make new ones all the time is dear: `ext4`
/// looks for a free inode among those that were removed lately.
#[derive(Debug)]
pub(crate) struct Spare {
    pub(crate) path: PathBuf,
    pub(crate) memory: SharedMemory,
}

/// The path of a file of an address space.
pub(crate) fn file_of(space: &Path, what: &str, number: usize) -> PathBuf {
    space.with_extension(format!("{what}{number}"))
}

/// Counters in memory, or in a file of the address space, which may be one that was used before.
pub(crate) fn counters(
    files: Option<&Path>,
    number: usize,
    size: u64,
    spare: Option<Spare>,
) -> io::Result<SharedMemory> {
    if let (Some(files), Some(Spare { path, memory })) = (files, spare)
        && std::fs::rename(path, file_of(files, "counters", number)).is_ok()
    {
        return Ok(memory);
    }
    // What cannot be a file is memory: the journal says how many there are.
    let in_file =
        files.and_then(|files| SharedMemory::in_file(&file_of(files, "counters", number), size).ok());
    in_file.map_or_else(|| SharedMemory::new("treering counters", size), Ok)
}

/// So many counters get room on the disk at a time.
pub(crate) const COUNTERS_AT_ONCE: u32 = 8192;

/// Sees to it that an area's counters have room, up to the batch that `counter` is in.
pub(crate) fn reserve(memory: &SharedMemory, area: u64, counter: u32) -> io::Result<()> {
    let end = counter_slot((counter / COUNTERS_AT_ONCE + 1) * COUNTERS_AT_ONCE);
    let full = |error: io::Error| io::Error::new(error.kind(), format!("no room for counters: {error}"));
    memory.reserve(area, u64::from(end)).map_err(full)
}
