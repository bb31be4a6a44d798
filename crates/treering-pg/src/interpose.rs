//! The other functions of the C library that stand behind `-pg`, and `dlclose`.

use std::ffi::{c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::count::begin_generation;

/// The start of a program that was linked with `-pg`: there is nothing to be prepared, and the C library's own
/// timer must not start.
#[unsafe(no_mangle)]
extern "C" fn __monstartup(_low: c_ulong, _high: c_ulong) {}

/// The same under the name for programs.
#[unsafe(no_mangle)]
extern "C" fn monstartup(_low: c_ulong, _high: c_ulong) {}

/// The end of such a program: what was counted is in the file already, and no `gmon.out` is replaced.
#[unsafe(no_mangle)]
extern "C" fn _mcleanup() {}

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
