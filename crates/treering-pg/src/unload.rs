//! `dlclose`, which tells when libraries are unloaded.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::count::{CELLS, GENERATION, MOST_CELLS, NEXT_CELL, READY, STATE, at_cell};

/// Unloads a library, as `dlclose` of the C library does.
///
/// # Safety
/// As for that.
#[unsafe(no_mangle)]
unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    type Close = unsafe extern "C" fn(*mut c_void) -> c_int;
    let before = unloaded();
    // SAFETY: the next library with a function of this name has the one of the C library.
    let result = unsafe {
        let next = libc::dlsym(libc::RTLD_NEXT, c"dlclose".as_ptr());
        if next.is_null() {
            return -1;
        }
        std::mem::transmute::<*mut c_void, Close>(next)(handle)
    };
    if unloaded() != before {
        begin_generation();
    }
    result
}

/// How many libraries were unloaded since the program started.
fn unloaded() -> usize {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _size: usize, _data: *mut c_void) -> c_int {
        // SAFETY: the loader gives it for the time of this call.
        COUNT.store(unsafe { (*info).dlpi_subs as usize }, Ordering::Relaxed);
        1
    }
    // SAFETY: the function takes what is handed to it.
    unsafe { libc::dl_iterate_phdr(Some(look), std::ptr::null_mut()) };
    COUNT.load(Ordering::Relaxed)
}

/// Says that libraries were unloaded: whatever is called from now on may be other code at the same
/// addresses, so all threads get new tables.
fn begin_generation() {
    if STATE.load(Ordering::Acquire) != READY {
        return;
    }
    GENERATION.fetch_add(1, Ordering::SeqCst);
    let cells = CELLS.load(Ordering::Acquire);
    for at in 0..NEXT_CELL.load(Ordering::SeqCst).min(MOST_CELLS) {
        at_cell(cells + at * 8).store(0, Ordering::SeqCst);
    }
}
