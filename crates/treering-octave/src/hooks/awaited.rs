//! The script with which recording begins.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The script with which recording begins, while it is awaited.
static AWAITED: Mutex<Option<Awaited>> = Mutex::new(None);
static AWAITS: AtomicBool = AtomicBool::new(false);

struct Awaited {
    path: PathBuf,
    begin: fn(),
}

/// Has `begin` called when Octave runs the script of that path.
pub(crate) fn wait_for_script(path: PathBuf, begin: fn()) {
    *AWAITED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Awaited { path, begin });
    AWAITS.store(true, Relaxed);
}

/// Whether a script is awaited.
#[inline(always)]
pub(super) fn awaits() -> bool {
    AWAITS.load(Relaxed)
}

/// Whether the script of that file is the one that recording begins with; then it has begun.
#[cold]
pub(super) fn has_come(file: &[u8]) -> bool {
    let begun = catch_unwind(|| {
        let mut awaited = AWAITED.lock().unwrap_or_else(PoisonError::into_inner);
        let file = PathBuf::from(OsStr::from_bytes(file)).canonicalize().ok();
        let found = awaited.take_if(|awaited| awaited.path.canonicalize().ok() == file)?;
        AWAITS.store(false, Relaxed);
        (found.begin)();
        Some(())
    });
    matches!(begun, Ok(Some(())))
}
