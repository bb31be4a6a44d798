//! Files that the tracer does not find by the program's paths: those of containers, and programs that were deleted.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::program::file_version::Version;

/// A file that code was loaded from and that is not at its path; nothing if it cannot be opened.
#[derive(Debug, Clone)]
pub struct HiddenFile(Option<Arc<File>>);

/// Device and inode.
type Identity = (u64, u64);

/// The open ones: many programs of a container load the same files. An open file keeps its identity.
static OPEN: Mutex<BTreeMap<Identity, Weak<File>>> = Mutex::new(BTreeMap::new());

impl HiddenFile {
    /// The program's file at `path`, which this process finds at `there`. Nothing if it is also the file at
    /// this process's `path`, or cannot be found.
    pub(crate) fn find(path: &Path, there: &Path) -> Option<Self> {
        let identity = |path: &Path| path.metadata().map(|found| (found.dev(), found.ino())).ok();
        let wanted = identity(there)?;
        (identity(path) != Some(wanted)).then(|| Self(open(wanted, there)))
    }

    /// The file that a thread's process runs, whatever its path leads to by now, and its version. The memory of the process must
    /// still exist.
    pub(crate) fn of_program(tid: i32) -> Option<(Version, Self)> {
        let there = PathBuf::from(format!("/proc/{tid}/exe"));
        let found = there.metadata().ok()?;
        let file = open((found.dev(), found.ino()), &there)?;
        Some((Version::of_file(&file)?, Self(Some(file))))
    }

    /// A path by which this process can open the file while this value exists; no code is there if the file
    /// cannot be opened.
    pub fn path(&self) -> PathBuf {
        let descriptor = self.file().map(|file| format!("/proc/self/fd/{}", file.as_raw_fd()));
        descriptor.unwrap_or_else(|| "/dev/null".to_owned()).into()
    }

    pub(crate) fn file(&self) -> Option<&File> {
        self.0.as_deref()
    }
}

fn open(identity: Identity, there: &Path) -> Option<Arc<File>> {
    let mut all = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.get(&identity).and_then(Weak::upgrade) {
        return Some(known);
    }
    let file = Arc::new(File::open(there).ok()?);
    all.insert(identity, Arc::downgrade(&file));
    Some(file)
}

impl PartialEq for HiddenFile {
    fn eq(&self, other: &Self) -> bool {
        self.path() == other.path()
    }
}

impl Eq for HiddenFile {}

/// The path by which this process finds a file at a thread's path.
pub(crate) fn seen_by(tid: i32, path: &Path) -> PathBuf {
    let path = path.strip_prefix("/").unwrap_or(path);
    Path::new(&format!("/proc/{tid}/root")).join(path)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail by panicking")]
mod tests {
    use super::*;

    #[test]
    fn only_other_files_are_hidden() {
        let own = std::process::id().cast_signed();
        let (here, other) = (Path::new("/proc/self/exe"), Path::new("/etc/passwd"));
        assert_eq!(HiddenFile::find(here, here), None);
        assert_eq!(HiddenFile::find(other, &seen_by(own, other)), None);
        assert_eq!(HiddenFile::find(here, Path::new("/no/such/file")), None);
        for missing in [other, Path::new("/no/such/file")] {
            let hidden = HiddenFile::find(missing, here).unwrap();
            assert_eq!(hidden.path().metadata().unwrap().ino(), here.metadata().unwrap().ino());
            assert_eq!(HiddenFile::find(missing, here), Some(hidden), "it is opened once");
        }
    }
}
