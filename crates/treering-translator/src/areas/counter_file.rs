//! The files behind counters and trees, which survive the tracer.

use std::io;
use std::path::{Path, PathBuf};

use crate::sys::layout::counter_slot;
use crate::sys::shared_memory::SharedMemory;

/// The bytes that trees leave free on a disk for other files. Without room for counters, the program cannot continue.
pub(crate) const SPARE: u64 = 64 << 20;

/// An unused file of counters that are all 0. Removing files and creating new ones all the time is expensive:
/// `ext4` searches for a free inode among those that were removed lately.
#[derive(Debug)]
pub(crate) struct Spare {
    pub(crate) path: PathBuf,
    pub(crate) memory: SharedMemory,
}

/// The path of a file of an address space.
pub(crate) fn file_of(space: &Path, what: &str, number: usize) -> PathBuf {
    space.with_extension(format!("{what}{number}"))
}

/// Counters in memory, or in a file of the address space, which may be a reused one.
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
    // If no file can be made, the counters are in memory only, and the journal shows that the file is missing.
    let in_file =
        files.and_then(|files| SharedMemory::in_file(&file_of(files, "counters", number), size).ok());
    in_file.map_or_else(|| SharedMemory::new("treering counters", size), Ok)
}

/// Room on the disk is reserved for this many counters at a time.
pub(crate) const COUNTERS_AT_ONCE: u32 = 8192;

/// Reserves room on the disk for an area's slots and counters, up to the batch that holds `counter`. The first
/// `reserved` bytes have room already. Returns how many have it then; those between are 0 and not used yet.
pub(crate) fn reserve(memory: &SharedMemory, area: u64, reserved: u64, counter: u32) -> io::Result<u64> {
    let end = u64::from(counter_slot((counter / COUNTERS_AT_ONCE + 1) * COUNTERS_AT_ONCE)).max(reserved);
    let full = |error: io::Error| io::Error::new(error.kind(), format!("no room for counters: {error}"));
    memory.reserve_unused(area + reserved, end - reserved).map_err(full)?;
    Ok(end)
}
