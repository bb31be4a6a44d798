//! Where files are kept from one run to the next.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// The user's directory for them, which may have to be made (`$XDG_CACHE_HOME/treering`, `~/.cache/treering`).
/// Nothing when the home directory is another user's, as it may be under `sudo`: files of ours would be in
/// the way there.
pub fn directory() -> Option<PathBuf> {
    let home = PathBuf::from(std::env::var_os("HOME")?);
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let own = std::fs::metadata("/proc/self").ok()?.uid() == std::fs::metadata(&home).ok()?.uid();
    own.then(|| cache.unwrap_or_else(|| home.join(".cache")).join("treering"))
}
