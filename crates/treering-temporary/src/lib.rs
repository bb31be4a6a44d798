//! Private folders for the time of one run.
//!
//! The commands that start interpreters, and the libraries that these load, keep files while they run: profiles, and code
//! that the interpreter reads. A [`Folder`] for them is new, has a name that nobody can foresee, and can be used by its
//! owner only, whatever the umask is.
//!
//! A folder is removed when its value is dropped. A process that is killed leaves its folder behind, so each folder lists
//! the processes that use it: the next one to make a folder removes those of the same user whose processes have all
//! ended. A folder without such a list is not touched.
//!
//! ```
//! let folder = treering_temporary::Folder::create("example")?;
//! std::fs::write(folder.path().join("note"), "for this run")?;
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod folder;
mod user;

use std::path::PathBuf;

pub use folder::Folder;

/// The directory for temporary files: `TMPDIR` if it is an absolute path, else `/tmp`.
pub fn directory() -> PathBuf {
    let named = std::env::var_os("TMPDIR").map(PathBuf::from).filter(|path| path.is_absolute());
    named.unwrap_or_else(|| PathBuf::from("/tmp"))
}

/// The same error, with the directory in which it came: who set `TMPDIR`, long ago, looks for the reason elsewhere.
pub fn located(error: std::io::Error) -> std::io::Error {
    let text = format!("{}, the directory for temporary files: {error}", directory().display());
    std::io::Error::new(error.kind(), text)
}
