//! Allocations of threads that have entered nothing yet.
//!
//! They are counted for the whole process. Adding to one number from many threads is slow, so a
//! thread adds the first few at once and later ones by the dozen: those of a thread that stays
//! without a record may be up to 63 too few, and the file says no more than was added.

use treering_events::Header;

use crate::store;

/// How many allocations are added at once.
const DOZEN: u64 = 64;

/// What a thread has not added yet: allocations, bytes; and how many it has made altogether.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Pending {
    allocations: u64,
    bytes: u64,
    seen: u64,
}

/// Counts an allocation of the running thread.
pub(crate) fn count(bytes: u64) {
    let pending = slot::pending();
    if pending.is_null() {
        return;
    }
    // SAFETY: these are the thread's own words.
    unsafe {
        (*pending).allocations += 1;
        (*pending).bytes += bytes;
        (*pending).seen += 1;
        if (*pending).seen > DOZEN && (*pending).allocations < DOZEN {
            return;
        }
        let Pending { allocations, bytes, seen } = *pending;
        *pending = Pending { allocations: 0, bytes: 0, seen };
        store::add_to_header(|header: *mut Header| &raw mut (*header).stray_allocations, allocations);
        store::add_to_header(|header: *mut Header| &raw mut (*header).stray_allocated, bytes);
    }
}

#[cfg(target_arch = "x86_64")]
mod slot {
    use super::Pending;

    // In the static block, as the word in `sys` and for one more reason: reaching a thread-local
    // of a library in the usual way may allocate.
    core::arch::global_asm!(
        ".pushsection .tbss.treering_stray,\"awT\",@nobits",
        ".hidden treering_stray",
        ".globl treering_stray",
        ".type treering_stray, @object",
        ".size treering_stray, 24",
        ".p2align 3",
        "treering_stray:",
        ".zero 24",
        ".popsection",
    );

    pub(super) fn pending() -> *mut Pending {
        let pending: *mut Pending;
        // SAFETY: adds the distance that the linker fills in to the thread pointer.
        unsafe {
            core::arch::asm!(
                "mov {pending}, qword ptr fs:[0]",
                "add {pending}, qword ptr [rip + treering_stray@gottpoff]",
                pending = out(reg) pending,
                options(nostack, readonly),
            );
        }
        pending
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod slot {
    use core::cell::UnsafeCell;

    use super::Pending;

    const NOTHING: Pending = Pending { allocations: 0, bytes: 0, seen: 0 };

    std::thread_local! {
        static PENDING: UnsafeCell<Pending> = const { UnsafeCell::new(NOTHING) };
    }

    pub(super) fn pending() -> *mut Pending {
        PENDING.try_with(UnsafeCell::get).unwrap_or(core::ptr::null_mut())
    }
}
