//! The file of a profile without a given name: in a private folder, with those of forked processes and workers.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use treering_temporary::{Folder, directory};

/// The process that has made the folder, and the folder.
static OWN: Mutex<Option<(u32, Folder)>> = Mutex::new(None);

fn own() -> MutexGuard<'static, Option<(u32, Folder)>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file of this process. A forked one does not use its parent's.
pub(crate) fn file() -> PathBuf {
    let (mut own, pid) = (own(), std::process::id());
    if own.as_ref().is_none_or(|(owner, _)| *owner != pid) {
        leave_to_parent(&mut own, pid);
        *own = Folder::create("octave").ok().map(|folder| (pid, folder));
    }
    match &*own {
        Some((_, folder)) => folder.path().join("octave.trg"),
        // The runtime says what is wrong with the directory, and keeps the profile in memory.
        None => directory().join(format!("treering-octave-{pid}.trg")),
    }
}

/// Whether a profile is in the folder of this process, or would be if it had one.
pub(crate) fn holds(profile: &Path) -> bool {
    let pid = std::process::id();
    match own().as_ref().filter(|(owner, _)| *owner == pid) {
        Some((_, folder)) => profile.starts_with(folder.path()),
        None => profile == directory().join(format!("treering-octave-{pid}.trg")),
    }
}

/// Removes the folder, if this process has one.
pub(crate) fn remove() {
    let mut own = own();
    leave_to_parent(&mut own, std::process::id());
    *own = None;
}

/// Forgets a folder that another process has made, which is not to be removed here.
fn leave_to_parent(own: &mut Option<(u32, Folder)>, pid: u32) {
    if own.as_ref().is_some_and(|(owner, _)| *owner != pid) {
        std::mem::forget(own.take());
    }
}
