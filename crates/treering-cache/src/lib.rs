//! A private folder of files that are kept from one run to the next.
//!
//! The files can be made again at any time, so whatever is in doubt is not used: a [`Cache`] refuses a folder that other
//! users can change, and a file that it did not leave. A file gets its name when it is whole, so several processes can
//! keep the same one at once. This crate does not know what the files hold.
//!
//! ```
//! use std::io::{Read as _, Write as _};
//! use treering_cache::Cache;
//!
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let cache = Cache::open(&folder.join("example"))?;
//! cache.keep("note", 0o600, |file| file.write_all(b"for the next run"))?;
//! let mut note = String::new();
//! cache.file("note", 1000)?.read_to_string(&mut note)?;
//! assert_eq!(note, "for the next run");
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A folder of files that can be made again. Only its owner can change it.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    owner: u32,
}

/// The ending of names of files that are not whole yet; a writer that was killed leaves them.
const UNFINISHED: &str = "unfinished";

/// An unfinished file of that age has no writer any more.
const ABANDONED: Duration = Duration::from_secs(3600);

/// How long a note that a file is used remains valid.
const NOTED_AGAIN: Duration = Duration::from_secs(3600);

impl Cache {
    /// Makes a folder, and those above it that are missing, for this user alone.
    ///
    /// # Errors
    /// The folder belongs to another user, or another user can change it or replace it or one above it, or a link of
    /// another user leads there; or the system's own error.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let owner = std::fs::metadata("/proc/self")?.uid();
        refuse_links_of_others(folder, owner)?;
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        // One may have been made meanwhile.
        refuse_links_of_others(folder, owner)?;
        let real = folder.canonicalize()?;
        for (above, folder) in real.ancestors().enumerate() {
            let found = std::fs::metadata(folder)?;
            let others_write = found.mode() & 0o022 != 0;
            // In a sticky folder, only the owner of an entry can replace it.
            let is_safe = match above {
                0 => found.uid() == owner && !others_write,
                _ => [0, owner].contains(&found.uid()) && (!others_write || found.mode() & 0o1000 != 0),
            };
            if !is_safe {
                let message = format!("{} can be changed by other users", folder.display());
                return Err(io::Error::new(ErrorKind::PermissionDenied, message));
            }
        }
        Ok(Self { folder: real, owner })
    }

    /// Opens a file of at most `largest` bytes that was kept.
    ///
    /// # Errors
    /// It is not there, or nothing that [`keep`](Self::keep) left: a link, another kind of file, one of another user,
    /// one that others can change, a larger one.
    pub fn file(&self, name: &str, largest: u64) -> io::Result<File> {
        // Opening a pipe would wait for its writer.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(self.folder.join(name))?;
        let found = file.metadata()?;
        let is_own = found.is_file() && found.uid() == self.owner && found.mode() & 0o022 == 0;
        if !is_own || found.len() > largest {
            return Err(ErrorKind::PermissionDenied.into());
        }
        // Setting the note takes longer than reading most files.
        if found.modified()?.elapsed().is_ok_and(|ago| ago > NOTED_AGAIN) {
            let _ = file.set_modified(SystemTime::now());
        }
        Ok(file)
    }

    /// Keeps a file: its name is given at once, to a whole file. Returns its path.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(
        &self,
        name: &str,
        mode: u32,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<PathBuf> {
        let path = self.folder.join(name);
        let unfinished =
            self.folder.join(format!("{name}.{:016x}.{UNFINISHED}", RandomState::new().hash_one(name)));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        let written = write(&mut file)
            .and_then(|()| file.set_permissions(Permissions::from_mode(mode)))
            .and_then(|()| std::fs::rename(&unfinished, &path));
        if let Err(error) = written {
            let _ = std::fs::remove_file(&unfinished);
            return Err(error);
        }
        Ok(path)
    }

    /// Removes a file that was kept, if it is there.
    pub fn remove(&self, name: &str) {
        let _ = std::fs::remove_file(self.folder.join(name));
    }

    /// Removes the least recently used files until all together have at most `most` bytes, and files that were never
    /// finished.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn shrink(&self, most: u64) -> io::Result<()> {
        let mut kept = Vec::new();
        for entry in std::fs::read_dir(&self.folder)?.flatten() {
            let (path, Ok(found)) = (entry.path(), entry.metadata()) else { continue };
            let used = found.modified()?;
            let is_unfinished = path.extension().is_some_and(|ending| ending == UNFINISHED);
            if !found.is_file() {
                continue;
            }
            match is_unfinished {
                true if used.elapsed().is_ok_and(|ago| ago > ABANDONED) => drop(std::fs::remove_file(&path)),
                // Its writer may be at work.
                true => {}
                false => kept.push((used, found.len(), path)),
            }
        }
        kept.sort_unstable();
        let mut bytes: u64 = kept.iter().map(|(_, length, _)| length).sum();
        for (_, length, path) in kept {
            if bytes <= most {
                break;
            }
            let _ = std::fs::remove_file(path);
            bytes -= length;
        }
        Ok(())
    }
}

/// Refuses a folder behind a link of another user, who can point it elsewhere after the check of where it leads.
fn refuse_links_of_others(folder: &Path, owner: u32) -> io::Result<()> {
    let is_theirs = |path: &&Path| {
        let found = path.symlink_metadata();
        found.is_ok_and(|found| found.is_symlink() && ![0, owner].contains(&found.uid()))
    };
    match folder.ancestors().find(is_theirs) {
        Some(link) => {
            let message = format!("{} is a link of another user", link.display());
            Err(io::Error::new(ErrorKind::PermissionDenied, message))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(cache: &Cache, name: &str, text: &str) -> PathBuf {
        cache.keep(name, 0o600, |file| file.write_all(text.as_bytes())).unwrap()
    }

    fn read(cache: &Cache, name: &str) -> io::Result<String> {
        let mut text = String::new();
        cache.file(name, 100)?.read_to_string(&mut text)?;
        Ok(text)
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o7777
    }

    #[test]
    fn a_kept_file_is_read_again_and_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(&folder.path().join("a/b")).unwrap();
        assert_eq!((mode(&folder.path().join("a")), mode(&folder.path().join("a/b"))), (0o700, 0o700));
        assert_eq!(read(&cache, "one").unwrap_err().kind(), ErrorKind::NotFound);
        let path = write(&cache, "one", "text");
        assert_eq!((read(&cache, "one").unwrap().as_str(), mode(&path)), ("text", 0o600));
        let mut old = cache.file("one", 100).unwrap();
        write(&cache, "one", "newer");
        let mut text = String::new();
        old.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), read(&cache, "one").unwrap().as_str()), ("text", "newer"));
        let failed = cache.keep("one", 0o600, |_| Err(ErrorKind::StorageFull.into()));
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(read(&cache, "one").unwrap(), "newer");
        assert_eq!(std::fs::read_dir(folder.path().join("a/b")).unwrap().count(), 1);
    }

    #[test]
    fn links_pipes_files_of_others_and_large_files_are_refused_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(&folder.path().join("cache")).unwrap();
        let elsewhere = folder.path().join("elsewhere");
        std::fs::write(&elsewhere, "other").unwrap();
        let path = folder.path().join("cache/one");
        let pipe = || assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let open_to_all = || {
            std::fs::write(&path, "forged").unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        };
        let hostile: [&dyn Fn(); 5] = [
            &|| symlink(&elsewhere, &path).unwrap(),
            &pipe,
            &open_to_all,
            &|| std::fs::write(&path, [b'x'; 101]).unwrap(),
            // Only root can give files away.
            &|| {
                std::fs::write(&path, "forged").unwrap();
                let _ = std::os::unix::fs::chown(&path, Some(65534), None);
                let own = path.metadata().unwrap().uid() != 65534;
                let mode = if own { 0o666 } else { 0o600 };
                std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            },
        ];
        for prepare in hostile {
            prepare();
            assert!(read(&cache, "one").is_err());
            write(&cache, "one", "own");
            assert_eq!(read(&cache, "one").unwrap(), "own");
            cache.remove("one");
        }
        assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "other");
    }

    #[test]
    fn a_folder_that_others_can_change_keeps_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let open = folder.path().join("open");
        Cache::open(&open).unwrap();
        for mode in [0o777, 0o1777, 0o770] {
            std::fs::set_permissions(&open, Permissions::from_mode(mode)).unwrap();
            let refused = Cache::open(&open).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
            assert!(refused.to_string().ends_with("open can be changed by other users"), "{refused}");
        }
        // A folder in a sticky one is safe; in one that is not, it could be replaced.
        std::fs::set_permissions(&open, Permissions::from_mode(0o1777)).unwrap();
        Cache::open(&open.join("own")).unwrap();
        std::fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
        assert_eq!(Cache::open(&open.join("own")).unwrap_err().kind(), ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_folder_behind_a_link_of_another_user_keeps_nothing() {
        // Where the link leads was checked, and the link itself was used afterwards.
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        std::fs::create_dir(&target).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(Cache::open(&link.join("own")).is_ok(), "an own link is as good as a folder");
        // Only root can give links away.
        if std::os::unix::fs::lchown(&link, Some(65534), None).is_err() {
            return;
        }
        let refused = Cache::open(&link.join("below/it")).unwrap_err();
        assert!(refused.to_string().ends_with("link is a link of another user"), "{refused}");
        assert!(!target.join("below").exists());
    }

    #[test]
    fn the_least_recently_used_files_are_removed_first() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path()).unwrap();
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        for (name, used) in [("old", 10), ("older", 5), ("new", 20), ("x.7.unfinished", 30)] {
            let path = write(&cache, name, "0123456789");
            OpenOptions::new().write(true).open(path).unwrap().set_modified(at(used)).unwrap();
        }
        write(&cache, "x.8.unfinished", "of a process at work");
        cache.file("older", 100).unwrap();
        cache.shrink(25).unwrap();
        let names = ["old", "older", "new", "x.7.unfinished", "x.8.unfinished"];
        let here = |name: &str| folder.path().join(name).exists();
        assert_eq!(names.map(here), [false, true, true, false, true]);
    }
}
