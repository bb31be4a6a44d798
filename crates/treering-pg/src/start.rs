//! The other functions of the C library that stand behind `-pg`.

use std::ffi::{c_int, c_ulong};

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

/// Starts and stops the C library's timer, which does not run: everything is counted from the first call on.
#[unsafe(no_mangle)]
extern "C" fn moncontrol(_mode: c_int) {}

/// The same under the C library's own name.
#[unsafe(no_mangle)]
extern "C" fn __moncontrol(_mode: c_int) {}
