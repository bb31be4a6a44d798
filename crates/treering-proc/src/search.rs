use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::{AccessFlags, faccessat};

/// Where execvp(3) searches without `PATH`.
const USUAL_PATH: &str = "/bin:/usr/bin";

/// The file that a shell runs for a name: the name itself if it has a slash, or else the first program of that name in
/// the folders of `path`. Where none of the files may be run, it is the first of them: running it tells why, as execvp(3)
/// does.
///
/// `path` is `PATH` of the environment in which the program will run; without one, the usual folders are searched. A path
/// with a slash is given back although there may be no such file: running it tells why.
///
/// ```
/// use std::path::Path;
/// let name = std::ffi::OsStr::new;
/// let found = treering_proc::find_program(name("sh"), Some(name("/none:/bin")));
/// assert_eq!(found.as_deref(), Some(Path::new("/bin/sh")));
/// assert_eq!(treering_proc::find_program(name("./sh"), None).as_deref(), Some(Path::new("./sh")));
/// ```
pub fn find_program(name: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    let mut files = files_on_path(name, path).peekable();
    let first = files.peek().cloned();
    files.find(|file| is_program(file)).or(first)
}

/// The programs of that name in the folders of `path`, in their order: files that this user may run.
///
/// An empty entry of `path`, and one without a leading slash, is relative to the current folder, and so is the result.
pub fn programs_on_path(name: &OsStr, path: Option<&OsStr>) -> impl Iterator<Item = PathBuf> {
    files_on_path(name, path).filter(|file| is_program(file))
}

fn files_on_path(name: &OsStr, path: Option<&OsStr>) -> impl Iterator<Item = PathBuf> {
    let folders = std::env::split_paths(path.unwrap_or(OsStr::new(USUAL_PATH)));
    folders.map(move |folder| folder.join(name)).filter(|file| file.is_file())
}

fn is_program(file: &Path) -> bool {
    faccessat(AT_FDCWD, file, AccessFlags::X_OK, AtFlags::AT_EACCESS).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_run_are_passed_over() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let path = std::env::join_paths([&folder, Path::new("/bin")]).expect("no colons");
        let found = |name: &str| programs_on_path(OsStr::new(name), Some(&path)).collect::<Vec<_>>();
        assert!(found("lib.rs").is_empty() && found("").is_empty());
        assert_eq!(found("sh"), [Path::new("/bin/sh")]);
        let refused = find_program(OsStr::new("lib.rs"), Some(&path));
        assert_eq!(refused, Some(folder.join("lib.rs")), "running it tells why it cannot be run");
        assert_eq!(find_program(OsStr::new("sh"), None).as_deref(), Some(Path::new("/bin/sh")));
    }
}
