//! Allocations of threads that have entered nothing yet.
//!
//! They are counted for the whole process. Adding to one number from many threads is slow, so a
//! thread adds the first few at once and later ones by the dozen: those of a thread that stays
//! without a record may be up to 63 too few, and the file says no more than was added.

use crate::{store, sys};

/// How many allocations are added at once.
const DOZEN: u64 = 64;

/// Counts an allocation of the running thread.
pub(crate) fn count(bytes: u64) {
    let Some(pending) = sys::stray_allocations() else { return };
    let allocations = pending.allocations.get() + 1;
    pending.allocations.set(allocations);
    pending.bytes.update(|sum| sum + bytes);
    pending.seen.update(|seen| seen + 1);
    if pending.seen.get() > DOZEN && allocations < DOZEN {
        return;
    }
    store::add_to_header(|header| &header.stray_allocations, pending.allocations.replace(0));
    store::add_to_header(|header| &header.stray_allocated, pending.bytes.replace(0));
}
