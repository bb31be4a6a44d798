//! Memory for the little that is asked for before the next functions are known.
//!
//! Looking for them may itself ask for memory. The blocks given here are never taken back.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering};

/// How much there is; the loader of glibc asks for some 32 bytes.
const BYTES: usize = 1 << 14;

/// In front of every block stands its size; blocks are aligned to this.
const UNIT: usize = 16;

#[repr(align(16))]
struct Room(UnsafeCell<[u8; BYTES]>);

// SAFETY: every part is given away once, by an atomic addition.
unsafe impl Sync for Room {}

static ROOM: Room = Room(UnsafeCell::new([0; BYTES]));
static USED: AtomicUsize = AtomicUsize::new(0);

fn start() -> *mut u8 {
    ROOM.0.get().cast()
}

/// A block of zeros; null when there is none.
pub(crate) fn allocate(size: usize) -> *mut c_void {
    let Some(taken) = size.checked_next_multiple_of(UNIT).and_then(|size| size.checked_add(UNIT)) else {
        return core::ptr::null_mut();
    };
    let room = |used: usize| used.checked_add(taken).filter(|end| *end <= BYTES);
    match USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room) {
        // SAFETY: this part of the room is ours alone now, and large enough.
        Ok(at) => unsafe {
            start().add(at).cast::<usize>().write(size);
            start().add(at + UNIT).cast()
        },
        Err(_) => core::ptr::null_mut(),
    }
}

/// Whether a block was given here.
#[inline(always)]
pub(crate) fn contains(block: *mut c_void) -> bool {
    (block as usize).wrapping_sub(start() as usize) < BYTES
}

/// The size that was asked for.
///
/// # Safety
/// The block was given here.
pub(crate) unsafe fn size(block: *mut c_void) -> usize {
    // SAFETY: by this function's own requirement.
    unsafe { block.cast::<u8>().sub(UNIT).cast::<usize>().read() }
}
