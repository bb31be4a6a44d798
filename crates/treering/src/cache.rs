//! Where files are kept from one run to the next.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Once;

use treering_cache::Cache;

/// The user's directory for them, which may have to be made (`$XDG_CACHE_HOME/treering`, `~/.cache/treering`).
/// Nothing when the home directory is another user's, as it may be under `sudo`: files of ours would be in
/// the way there.
pub fn directory() -> Option<PathBuf> {
    Some(users_caches()?.join("treering"))
}

/// A private folder in that directory. Nothing when there is none that only this user can change: then nothing is kept.
pub fn folder(name: &str) -> Option<Cache> {
    Cache::open(&directory()?.join(name)).ok()
}

/// Where clients of debuginfod keep what they fetched (`$DEBUGINFOD_CACHE_PATH`, else below the user's
/// directory for such files, or as older ones do in the home directory).
pub fn debuginfod() -> Vec<PathBuf> {
    static SAID: Once = Once::new();
    if let Some(path) = directory_named_by("DEBUGINFOD_CACHE_PATH", &SAID) {
        return vec![path];
    }
    let old = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".debuginfod_client_cache"));
    let Some(caches) = users_caches() else { return Vec::new() };
    std::iter::once(caches.join("debuginfod_client")).chain(old).collect()
}

/// The user's directory of files that can be made again. Nothing when the home directory is another
/// user's.
fn users_caches() -> Option<PathBuf> {
    static SAID: Once = Once::new();
    let home = PathBuf::from(std::env::var_os("HOME")?);
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = cache.as_ref().filter(|path| !path.is_absolute()) {
        let told = path.display();
        SAID.call_once(|| {
            warn(&format!(
                "XDG_CACHE_HOME is {told}, which is not an absolute path; ~/.cache is used instead"
            ))
        });
    }
    let cache = cache.filter(|path| path.is_absolute());
    let own = std::fs::metadata("/proc/self").ok()?.uid() == std::fs::metadata(&home).ok()?.uid();
    own.then(|| cache.unwrap_or_else(|| home.join(".cache")))
}

/// The directory that a variable of the environment names, if it is set; one that is not there is said
/// once and not used.
pub fn directory_named_by(variable: &str, said: &'static Once) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(variable).filter(|value| !value.is_empty())?);
    if path.is_dir() {
        return Some(path);
    }
    let told = path.display();
    said.call_once(|| warn(&format!("{variable} is {told}, which is not a directory; it is ignored")));
    None
}

fn warn(text: &str) {
    tell!("warning: {text}");
}
