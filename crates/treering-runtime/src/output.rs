//! Where the profile is written: which file, while the program runs and when it has ended.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use treering_events::{Header, MAGIC};

use crate::sys;

/// The file of a process. It holds the live file until the program ends, then the finished one.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) path: PathBuf,
    /// Open as long as the process writes, for the lock on it; none when the profile is kept in
    /// memory.
    pub(crate) file: Option<File>,
    /// Why there is no file.
    pub(crate) problem: Option<io::Error>,
    /// How many files of this process were found in use, which are those of other copies of the
    /// runtime.
    pub(crate) earlier_copies: u32,
}

/// How many names are tried.
const TRIES: u32 = 100;

impl Output {
    /// Creates the file. The name is `wanted` with `%p` filled in; where another process is
    /// writing that one, or this process was forked from it, the process's number is put in
    /// front of its last dot.
    pub(crate) fn create(wanted: &Path, is_child: bool, process_start: u64) -> Self {
        let pid = std::process::id();
        let text = wanted.to_string_lossy();
        let first = PathBuf::from(text.replace("%p", &pid.to_string()));
        let apart = !is_child || text.contains("%p");
        let mut problem = None;
        let mut earlier_copies = 0;
        for attempt in u32::from(!apart)..TRIES {
            let path = numbered(&first, pid, attempt);
            match try_create(&path, pid, process_start) {
                Ok(Taken::Created(file)) => {
                    return Self { path: absolute(path), file: Some(file), problem: None, earlier_copies };
                }
                Ok(Taken::InUse { by }) => earlier_copies += u32::from(by == pid),
                Err(error) => {
                    problem = Some(error);
                    break;
                }
            }
        }
        Self { path: absolute(first), file: None, problem, earlier_copies }
    }

    /// Puts the finished profile in the place of the live file.
    pub(crate) fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        // A device or a folder of that name is none of ours.
        if std::fs::metadata(&self.path).is_ok_and(|found| !found.is_file()) {
            return Err(not_a_file());
        }
        let mut name = self.path.as_os_str().to_owned();
        name.push(".new");
        let new = PathBuf::from(name);
        let written = std::fs::write(&new, bytes).and_then(|()| std::fs::rename(&new, &self.path));
        if written.is_err() {
            let _ = std::fs::remove_file(&new);
        }
        self.file = None;
        written
    }
}

/// `treering.trg`, then `treering.PID.trg`, then `treering.PID-2.trg` ...
fn numbered(path: &Path, pid: u32, attempt: u32) -> PathBuf {
    let suffix = match attempt {
        0 => return path.to_owned(),
        1 => pid.to_string(),
        more => format!("{pid}-{more}"),
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}.{suffix}.{}", extension.to_string_lossy()),
        None => format!("{stem}.{suffix}"),
    };
    path.with_file_name(name)
}

enum Taken {
    Created(File),
    InUse { by: u32 },
}

/// Creates the file unless somebody is writing one of that name. One that is finished, or whose
/// writer is gone, is kept under another name.
fn try_create(path: &Path, pid: u32, process_start: u64) -> io::Result<Taken> {
    if let Ok(mut old) = OpenOptions::new().read(true).write(true).open(path) {
        let header = read_header(&mut old);
        let writer = header.map_or(0, |header| header.pid);
        if !sys::lock_file(old.as_raw_fd()) {
            return Ok(Taken::InUse { by: writer });
        }
        if !old.metadata()?.is_file() {
            return Err(not_a_file());
        }
        let was_us = header.is_some_and(|header| header.pid == pid && header.process_start == process_start);
        // The program that this process ran before it called exec.
        let kept = if was_us { free_name(path, pid) } else { with_suffix(path, ".old") };
        std::fs::rename(path, kept)?;
    }
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    let is_ours = sys::lock_file(file.as_raw_fd()) && is_still(path, &file) && file.metadata()?.len() == 0;
    // Another process may have been quicker.
    Ok(if is_ours { Taken::Created(file) } else { Taken::InUse { by: 0 } })
}

fn not_a_file() -> io::Error {
    io::Error::other("it is not a regular file")
}

fn read_header(file: &mut File) -> Option<Header> {
    let mut bytes = [0; Header::BYTES];
    file.read_exact(&mut bytes).ok()?;
    Header::read(&bytes).filter(|header| header.magic == MAGIC)
}

/// Whether the path still leads to the file that was opened.
fn is_still(path: &Path, file: &File) -> bool {
    match (path.metadata(), file.metadata()) {
        (Ok(named), Ok(open)) => (named.dev(), named.ino()) == (open.dev(), open.ino()),
        _ => false,
    }
}

fn free_name(path: &Path, pid: u32) -> PathBuf {
    let mut names = (1..TRIES).map(|attempt| numbered(path, pid, attempt));
    names.find(|name| !name.exists()).unwrap_or_else(|| with_suffix(path, ".old"))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The path from the root, since the program may change its directory.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_the_number_in_front_of_the_last_dot() {
        let name = |path: &str, attempt| numbered(Path::new(path), 7, attempt).display().to_string();
        assert_eq!(name("a/treering.trg", 0), "a/treering.trg");
        assert_eq!(name("a/treering.trg", 1), "a/treering.7.trg");
        assert_eq!(name("a.b/profile", 2), "a.b/profile.7-2");
    }
}
