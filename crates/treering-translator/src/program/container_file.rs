//! Files whose paths lead elsewhere, or nowhere, for the tracer: those of containers.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A file that code was loaded from and that is not found at its path; nothing if it cannot be opened.
#[derive(Debug, Clone)]
pub struct HiddenFile(Option<Arc<File>>);

/// Device and inode.
type Identity = (u64, u64);

/// Those that are open: many programs of a container load the same files. Who is open keeps its identity.
static OPEN: Mutex<BTreeMap<Identity, Weak<File>>> = Mutex::new(BTreeMap::new());

impl HiddenFile {
    /// The file that a program has at `path`, and we at `there`; nothing if it is what `path` leads to
    /// from here as well, or cannot be found.
    pub(crate) fn find(path: &Path, there: &Path) -> Option<Self> {
        let identity = |path: &Path| path.metadata().map(|found| (found.dev(), found.ino())).ok();
        let wanted = identity(there)?;
        (identity(path) != Some(wanted)).then(|| Self(open(wanted, there)))
    }

    /// Where this process can open it for as long as this exists: no code is there if it cannot.
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
            assert_eq!(HiddenFile::find(missing, here), Some(hidden), "it is opened once");
        }
    }
}
