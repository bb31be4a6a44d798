//! Files of programs whose paths lead elsewhere, or nowhere, from here: as those of containers.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file that code was loaded from and that is not found at its path.
#[derive(Debug, Clone)]
pub struct HiddenFile(Arc<File>);

impl HiddenFile {
    /// The file that a program has at `path`, and we at `there`; nothing if it is what `path` leads to
    /// from here as well, or cannot be found.
    pub(crate) fn find(path: &Path, there: &Path) -> Option<Self> {
        let identity = |path: &Path| path.metadata().map(|found| (found.dev(), found.ino())).ok();
        let wanted = identity(there)?;
        if identity(path) == Some(wanted) {
            return None;
        }
        Some(Self(Arc::new(File::open(there).ok()?)))
    }

    /// Where this process can open it for as long as this exists.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    pub(crate) fn file(&self) -> &File {
        &self.0
    }
}

impl PartialEq for HiddenFile {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for HiddenFile {}

/// What a thread has at a path, by a path of ours.
pub(crate) fn seen_by(tid: i32, path: &Path) -> PathBuf {
    let path = path.strip_prefix("/").unwrap_or(path);
    Path::new(&format!("/proc/{tid}/root")).join(path)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail by panicking")]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_another_file_is_hidden() {
        let own = std::process::id().cast_signed();
        let (here, other) = (Path::new("/proc/self/exe"), Path::new("/etc/passwd"));
        assert_eq!(HiddenFile::find(here, here), None);
        assert_eq!(HiddenFile::find(other, &seen_by(own, other)), None);
        assert_eq!(HiddenFile::find(here, Path::new("/no/such/file")), None);
        for missing in [other, Path::new("/no/such/file")] {
            let hidden = HiddenFile::find(missing, here).unwrap();
            assert_eq!(hidden.path().metadata().unwrap().ino(), here.metadata().unwrap().ino());
        }
    }
}
