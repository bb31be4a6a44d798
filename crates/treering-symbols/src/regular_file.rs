//! Opens files that other users may have prepared: pipes and devices in their place neither block the reader nor
//! flood it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Why a file was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// It is a symbolic link.
    Link,
    /// It is a pipe, a device, a directory or the like.
    NotRegular,
    /// It belongs to this user, who is neither root nor a trusted one.
    Owner(u32),
    /// It has this many bytes.
    TooLarge(u64),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Link => f.write_str("it is a symbolic link"),
            Self::NotRegular => f.write_str("it is not a regular file"),
            Self::Owner(owner) => write!(f, "it belongs to user {owner}, who is not trusted"),
            Self::TooLarge(size) => write!(f, "it is larger than any such file: {size} bytes"),
        }
    }
}

/// Opens a regular file; pipes, devices and directories are refused unread.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for a file of another kind, else what the system says.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let other = || io::Error::new(io::ErrorKind::InvalidInput, Refusal::NotRegular.to_string());
    // Opening some devices has effects, and opening a pipe waits for a writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(other());
    }
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(other()) }
}

/// Opens a file of at most `largest` bytes that belongs to root or one of `owners`, and is no link.
/// Nothing when it is not there or cannot be opened.
///
/// # Errors
/// Why it is not to be read.
pub fn open_trusted(path: &Path, owners: &[u32], largest: u64) -> Result<Option<File>, Refusal> {
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => return Err(Refusal::Link),
        Ok(found) if !found.is_file() => return Err(Refusal::NotRegular),
        Ok(_) => OpenOptions::new().read(true).custom_flags(flags).open(path),
        Err(_) => return Ok(None),
    };
    let Ok(file) = found else { return Ok(None) };
    let Ok(about) = file.metadata() else { return Ok(None) };
    match about.uid() {
        _ if !about.is_file() => Err(Refusal::NotRegular),
        owner if owner != 0 && !owners.contains(&owner) => Err(Refusal::Owner(owner)),
        _ if about.len() > largest => Err(Refusal::TooLarge(about.len())),
        _ => Ok(Some(file)),
    }
}

/// The user that this process acts for.
pub fn own_user() -> Option<u32> {
    Some(std::fs::metadata("/proc/self").ok()?.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_directories_are_refused() {
        for path in ["/dev/zero", "/dev", "/proc"] {
            let error = open_regular(Path::new(path)).expect_err("it is no file");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path}");
            let refused = open_trusted(Path::new(path), &[], u64::MAX).expect_err("it is no file");
            assert_eq!(refused, Refusal::NotRegular, "{path}");
        }
        assert!(open_trusted(Path::new("/no/such/file"), &[], 1).expect("it is not there").is_none());
    }

    #[test]
    fn a_link_a_large_file_and_one_of_another_user_are_refused() {
        let directory = std::env::temp_dir().join(format!("treering-trusted-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let (file, link) = (directory.join("file"), directory.join("link"));
        std::fs::write(&file, b"12345").expect("a file");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        let user = own_user().expect("a user");
        assert!(open_trusted(&file, &[user], 5).expect("it is ours").is_some());
        assert_eq!(open_trusted(&link, &[user], 5).expect_err("a link"), Refusal::Link);
        assert_eq!(open_trusted(&file, &[user], 4).expect_err("large"), Refusal::TooLarge(5));
        if user != 0 {
            assert_eq!(open_trusted(&file, &[user + 1], 5).expect_err("ours"), Refusal::Owner(user));
        }
        std::fs::remove_dir_all(&directory).expect("it is ours");
    }
}
