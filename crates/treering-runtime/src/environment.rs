//! The environment of the process, as far as it may be obeyed.

use std::ffi::OsString;

use treering_events::output_name::{Marks, RANK_VARIABLES, fill_in, rank};

use crate::sys;

/// A variable of the environment. A program that runs with more rights than its user (setuid, setgid, capabilities of
/// files) has none: whoever starts it chooses the environment, and could have it write where only the program may. The C
/// library ignores `GMON_OUT_PREFIX` and `LD_PRELOAD` for the same reason.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    if sys::has_rights_of_others() { None } else { std::env::var_os(name) }
}

/// Fills in the marks of a file's name.
pub(crate) fn fill_in_marks(name: &[u8]) -> Vec<u8> {
    let process = std::process::id().to_string();
    let host = std::fs::read("/proc/sys/kernel/hostname").unwrap_or_default();
    let host: Vec<u8> = host.trim_ascii().iter().map(|&byte| if byte == b'/' { b'-' } else { byte }).collect();
    let ranks = RANK_VARIABLES.iter().filter_map(|name| variable(name));
    let own_rank = ranks.map(OsString::into_encoded_bytes).find(|value| rank(value).is_some());
    let marks =
        Marks { process: process.as_bytes(), host: &host, rank: own_rank.as_deref().unwrap_or(b"0") };
    let mut filled = Vec::new();
    fill_in(name, marks, |piece| filled.extend(piece));
    filled
}
