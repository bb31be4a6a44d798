//! Marks: moments with a name, for the recorder that has started the program.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use treering_events::mark_file::{self, VARIABLE, WORDS};

use crate::process::Quiet;
use crate::{environment, sys};

/// Adds a mark, if a recorder waits for any. Else it costs a load and a branch.
pub(crate) fn add(name: &[u8]) {
    static FILE: OnceLock<Option<&'static [AtomicU64]>> = OnceLock::new();
    let Some(words) = *FILE.get_or_init(open) else { return };
    let writer = (std::process::id(), sys::thread_id());
    mark_file::add(words, sys::clock_ns(libc::CLOCK_MONOTONIC), writer, name);
}

/// Maps the file that the environment names. It stays mapped in children that are forked, which add to it as well.
fn open() -> Option<&'static [AtomicU64]> {
    let _quiet = Quiet::begin();
    let path = environment::variable(VARIABLE)?;
    let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
    let facts = file.metadata().ok()?;
    // The recorder makes no file of another kind or length.
    if !facts.is_file() || facts.len() != 8 * WORDS as u64 {
        return None;
    }
    sys::map_words(file.as_raw_fd(), WORDS)
}
