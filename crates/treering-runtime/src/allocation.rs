//! Memory that an interpreter takes for the function that runs, and gives back some time later.

use core::sync::atomic::{AtomicU32, Ordering};

use treering_events::flag;
use treering_memory::Running;

use crate::memory::Here;
use crate::{store, sys};

/// Notes that the running function has allocated a block of `bytes` bytes. The result is to be kept with the block,
/// for [`freed`]. It is 0, and nothing is counted, while nothing is recorded and outside of all functions.
///
/// ```
/// # treering_runtime::clear_profiler();
/// assert_eq!(treering_runtime::allocated(100), 0);
/// ```
#[inline]
pub fn allocated(bytes: u64) -> u64 {
    // SAFETY: the current record is null, one without activations, or the running thread's.
    let is_outside = unsafe {
        let thread = sys::current();
        thread.is_null() || (*thread).top == (*thread).stack_address
    };
    match Running::find(Here) {
        Some(running) if !is_outside => {
            note_use();
            running.allocated(bytes)
        }
        _ => 0,
    }
}

/// Notes that a block of `bytes` bytes, for which [`allocated`] returned `tag`, is freed: it is taken off the
/// function that allocated it.
///
/// # Safety
/// The tag is 0, or was returned in this process or in one that it was forked from.
#[inline]
pub unsafe fn freed(tag: u64, bytes: u64) {
    // SAFETY: by this function's own requirement.
    unsafe { treering_memory::freed(Here, tag, bytes) };
}

/// Says in the file that memory is counted.
#[inline(always)]
fn note_use() {
    // SAFETY: while something runs the header is mapped, and its flags are aligned.
    let flags = unsafe { AtomicU32::from_ptr(&raw mut (*store::header()).flags) };
    if flags.load(Ordering::Relaxed) & flag::MEMORY == 0 {
        store::set_flag(flag::MEMORY);
    }
}
