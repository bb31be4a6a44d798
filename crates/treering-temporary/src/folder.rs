//! A folder, and what is left of folders.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::user::User;

/// All names of folders begin with it.
const PREFIX: &str = "treering-";

/// The list of a folder's users, a line for each.
const USERS: &str = ".users";

/// How many names are tried.
const TRIES: u32 = 100;

/// A folder that only its owner can use. It is removed when it is dropped.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes a folder in the directory for temporary files, and removes those that ended processes have left there.
    ///
    /// # Errors
    /// The directory is not there or cannot be written.
    pub fn create(purpose: &str) -> io::Result<Self> {
        Self::create_in(&crate::directory(), purpose).map_err(crate::located)
    }

    fn create_in(directory: &Path, purpose: &str) -> io::Result<Self> {
        remove_stale(directory);
        for attempt in 0..TRIES {
            let random = RandomState::new().hash_one(attempt);
            let path = directory.join(format!("{PREFIX}{purpose}-{random:016x}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                created => created?,
            }
            let folder = Self { path };
            // The umask may have taken rights away from the owner.
            std::fs::set_permissions(&folder.path, Permissions::from_mode(0o700))?;
            folder.is_used_by(std::process::id())?;
            return Ok(folder);
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a path has a name that such folders have, whether it is there or not.
    pub fn is_name_of_ours(path: &Path) -> bool {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()))
    }

    /// Keeps the folder for another process as well, should this one be killed.
    ///
    /// # Errors
    /// The list of users cannot be written.
    pub fn is_used_by(&self, pid: u32) -> io::Result<()> {
        // One that has ended already needs no folder.
        let Some(user) = User::of(pid) else { return Ok(()) };
        let mut options = OpenOptions::new();
        let mut users = options.append(true).create(true).mode(0o600).open(self.path.join(USERS))?;
        users.write_all(format!("{user}\n").as_bytes())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Removes this user's folders whose processes have all ended. A folder that cannot be removed stays.
fn remove_stale(directory: &Path) {
    let Ok(own) = std::fs::metadata("/proc/self").map(|own| own.uid()) else { return };
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        // Not through a link.
        let is_ours = || path.symlink_metadata().is_ok_and(|found| found.is_dir() && found.uid() == own);
        if Folder::is_name_of_ours(&path) && is_ours() && is_stale(&path) {
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

/// Whether the list of users is there, and all of them have ended.
fn is_stale(folder: &Path) -> bool {
    let Ok(users) = std::fs::read_to_string(folder.join(USERS)) else { return false };
    !users.is_empty() && users.lines().all(|line| line.parse::<User>().is_ok_and(|user| user.has_ended()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory in place of that for temporary files, removed in the end.
    fn directory() -> Folder {
        Folder::create("test").unwrap()
    }

    /// The number of a process that has ended, and what the list of users says of it.
    fn ended() -> String {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let user = User::of(child.id()).unwrap().to_string();
        child.kill().unwrap();
        child.wait().unwrap();
        user
    }

    #[test]
    fn a_folder_is_private_and_gone_in_the_end() {
        let directory = directory();
        let folder = Folder::create_in(directory.path(), "x").unwrap();
        let path = folder.path().to_owned();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o700);
        assert_ne!(path, Folder::create_in(directory.path(), "x").unwrap().path());
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn the_next_run_removes_what_ended_processes_have_left() {
        let directory = directory();
        let left = |name: &str, users: Option<&str>| {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.join("worker")).unwrap();
            users.into_iter().for_each(|users| std::fs::write(path.join(USERS), users).unwrap());
            path
        };
        let (ended, ours) = (ended(), User::of(std::process::id()).unwrap());
        let stale = left("treering-octave-1", Some(&format!("{ended}\n")));
        let all_stale = left("treering-octave-2", Some(&format!("{ended}\n{ended}\n")));
        let kept = [
            left("treering-octave-3", Some(&format!("{ended}\n{ours}\n"))),
            left("treering-octave-4", Some("something else\n")),
            left("treering-octave-5", Some("")),
            left("treering-octave-6", None),
            left("others-7", Some(&format!("{ended}\n"))),
        ];
        let link = directory.path().join("treering-octave-8");
        std::os::unix::fs::symlink(directory.path().join("others-7"), &link).unwrap();
        drop(Folder::create_in(directory.path(), "x").unwrap());
        assert!(!stale.exists() && !all_stale.exists());
        assert!(kept.iter().all(|path| path.is_dir()) && link.is_symlink());
    }
}
