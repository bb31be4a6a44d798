//! Files of this user that stay from one run to the next, as in a cache, and that no other user can write.
//!
//! A cache may lie where others can write, and be forged. So [`open`] reads only files of this user, [`write`] replaces
//! whatever has their name, and [`check_folder`] refuses folders in which others could replace them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The ending of a file's name while it is written; a killed writer leaves such a file behind.
pub const UNFINISHED: &str = "unfinished";

/// The mode bits with which others may write.
const OTHERS_WRITE: u32 = 0o022;
/// The mode bit of a folder in which only the owner of an entry can replace it.
const STICKY: u32 = 0o1000;

/// Makes a folder, and those above it that are missing, for this user alone.
///
/// # Errors
/// One of them cannot be made.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Refuses a folder whose entries other users than root could replace. Files that are executed need this check.
///
/// # Errors
/// Others may change the folder, or it is not there.
pub fn check_folder(folder: &Path) -> io::Result<()> {
    let own = own_user()?;
    for folder in folder.canonicalize()?.ancestors() {
        let found = fs::metadata(folder)?;
        let others_write = found.mode() & OTHERS_WRITE != 0 && found.mode() & STICKY == 0;
        if others_write || ![0, own].contains(&found.uid()) {
            let message = format!("{} can be changed by other users", folder.display());
            return Err(io::Error::new(ErrorKind::PermissionDenied, message));
        }
    }
    Ok(())
}

/// Opens a regular file of at most `largest` bytes that belongs to this user, that no other can write, and that is no
/// link. `None` for any other file.
pub fn open(path: &Path, largest: u64) -> Option<File> {
    // Opening a pipe must not wait.
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let found = file.metadata().ok()?;
    let is_own = found.uid() == own_user().ok()? && found.mode() & OTHERS_WRITE == 0;
    (found.is_file() && is_own && found.len() <= largest).then_some(file)
}

/// Writes a file of this `mode` whole or not at all; whatever had its name is replaced.
///
/// # Errors
/// The folder is not there, or the file cannot be written.
pub fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    // Another process may write the same file.
    let random = RandomState::new().hash_one(std::process::id());
    let unfinished = path.with_extension(format!("{random:016x}.{UNFINISHED}"));
    let created = OpenOptions::new().write(true).create_new(true).mode(mode).open(&unfinished);
    let written = created.and_then(|mut file| file.write_all(bytes));
    let written = written.and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}

/// The user that this process acts for.
pub(crate) fn own_user() -> io::Result<u32> {
    Ok(fs::metadata("/proc/self")?.uid())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::Folder;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn folders_and_files_are_private() {
        let folder = Folder::create("test").unwrap();
        let (outer, inner) = (folder.path().join("outer"), folder.path().join("outer/inner"));
        create_folder(&inner).unwrap();
        write(&inner.join("file"), b"text", 0o600).unwrap();
        assert_eq!([mode(&outer), mode(&inner), mode(&inner.join("file"))], [0o700, 0o700, 0o600]);
    }

    #[test]
    fn a_written_file_replaces_another_a_link_and_one_that_cannot_be_written() {
        let folder = Folder::create("test").unwrap();
        let (path, elsewhere) = (folder.path().join("file"), folder.path().join("elsewhere"));
        fs::write(&elsewhere, "untouched").unwrap();
        symlink(&elsewhere, &path).unwrap();
        for text in ["first", "second"] {
            write(&path, text.as_bytes(), 0o400).unwrap();
            assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), (text, 0o400));
        }
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "untouched");
        let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(names.into_iter().all(|name| !name.to_string_lossy().ends_with(UNFINISHED)));
    }

    #[test]
    fn a_file_that_another_user_could_have_written_is_not_opened() {
        let folder = Folder::create("test").unwrap();
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        write(&path, b"12345", 0o600).unwrap();
        symlink(&path, &link).unwrap();
        assert!(open(&path, 5).is_some());
        assert!(open(&path, 4).is_none() && open(&link, 5).is_none() && open(folder.path(), 5).is_none());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).unwrap();
        assert!(open(&path, 5).is_none());
    }

    #[test]
    fn a_folder_that_others_may_change_is_refused_with_all_inside_it() {
        let folder = Folder::create("test").unwrap();
        let (shared, inside) = (folder.path().join("shared"), folder.path().join("shared/inside"));
        create_folder(&inside).unwrap();
        check_folder(&inside).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
        let refused = check_folder(&inside).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
        assert!(refused.to_string().ends_with("shared can be changed by other users"), "{refused}");
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        check_folder(&inside).unwrap();
    }
}
