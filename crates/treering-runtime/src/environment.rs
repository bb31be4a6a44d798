//! The environment of the process, as far as it may be obeyed.

use std::ffi::OsString;

use treering_events::output_name::{HOST_NAME, filled};

use crate::sys;

/// A variable of the environment. A program that runs with more rights than its user (setuid, setgid, capabilities of
/// files) has none: whoever starts it chooses the environment, and could have it write where only the program may. The C
/// library ignores `GMON_OUT_PREFIX` and `LD_PRELOAD` for the same reason.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    if sys::has_rights_of_others() { None } else { std::env::var_os(name) }
}

/// Fills in the marks of a file's name.
pub(crate) fn fill_in_marks(name: &[u8]) -> Vec<u8> {
    let host = std::fs::read(HOST_NAME).unwrap_or_default();
    filled(name, std::process::id(), &host, |name| variable(name).map(OsString::into_encoded_bytes))
}
