//! Where the profile is written: which file, while the program runs and when it has ended.
//!
//! A name may lead to anything by the time that it is used: files are made anew, never through a
//! link, and only their owner can read them. An output that is no file, such as a pipe, gets the finished
//! profile.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use treering_events::output_name::tells_processes_apart;
use treering_events::{Header, MAGIC};

use crate::environment::fill_in_marks;
use crate::sys;

/// The file of a process. It holds the live file until the program ends, then the finished one.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) path: PathBuf,
    /// Open as long as the process writes, for the lock on it; none when the profile is kept in
    /// memory.
    pub(crate) file: Option<OwnFile>,
    /// Why there is no file.
    pub(crate) problem: Option<io::Error>,
    /// A file of the wanted name that is no profile, for which the profile has another name.
    pub(crate) left_alone: Option<PathBuf>,
    /// Whether nothing may be written in the end either.
    is_refused: bool,
    /// Whether the path leads to a pipe or device, which the finished profile is written to.
    is_stream: bool,
    /// How many files of this process were found in use, which are those of other copies of the
    /// runtime.
    pub(crate) earlier_copies: u32,
}

/// A file of ours. A program may close it, and then have another one under its number.
#[derive(Debug)]
pub(crate) struct OwnFile {
    file: Option<File>,
    identity: sys::FileIdentity,
}

impl OwnFile {
    fn new(file: File) -> Option<Self> {
        let identity = sys::file_identity(file.as_raw_fd())?;
        Some(Self { file: Some(file), identity })
    }

    /// The number by which to use it, and how to tell that it still is this file.
    pub(crate) fn descriptor(&self) -> Option<(i32, sys::FileIdentity)> {
        self.file.as_ref().map(|file| (file.as_raw_fd(), self.identity))
    }

    fn is_open(&self) -> bool {
        self.descriptor().is_some_and(|(number, identity)| sys::file_identity(number) == Some(identity))
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        if !self.is_open() {
            // The number is the program's now, and so is what it leads to.
            self.file.take().map(std::os::fd::IntoRawFd::into_raw_fd);
        }
    }
}

/// How many names are tried.
const TRIES: u32 = 100;

/// The directory in which the program was started, as far as is known.
static START: OnceLock<PathBuf> = OnceLock::new();

/// Keeps the directory in mind, which the program may change.
pub(crate) fn note_directory() {
    if let Ok(directory) = std::env::current_dir() {
        let _ = START.set(directory);
    }
}

impl Output {
    /// Creates the file. The name is `wanted` with its marks filled in; where another process is
    /// writing that one, where it is no profile, or where this process was forked from its writer, the
    /// process's number is put in front of its last dot.
    pub(crate) fn create(chosen: Option<&Path>, is_child: bool, process_start: u64) -> Self {
        let pid = std::process::id();
        let wanted = chosen.unwrap_or(Path::new("treering.trg")).as_os_str().as_bytes();
        let first = absolute(PathBuf::from(OsString::from_vec(fill_in_marks(wanted))));
        let has_own_name = !is_child || tells_processes_apart(wanted);
        let none = Self {
            path: first.clone(),
            file: None,
            problem: None,
            left_alone: None,
            is_refused: false,
            is_stream: false,
            earlier_copies: 0,
        };
        if chosen.is_none() && sys::has_rights_of_others() {
            return Self::where_the_user_may_write(none);
        }
        if is_stream(&first) {
            let problem = (!has_own_name).then(|| io::Error::other("the profile of the process that was forked goes there"));
            return Self { is_stream: has_own_name, problem, ..none };
        }
        let (mut earlier_copies, mut left_alone) = (0, None);
        for attempt in u32::from(!has_own_name)..TRIES {
            let path = numbered(&first, pid, attempt);
            match try_create(&path, pid, process_start) {
                Ok(Taken::Created(file)) => {
                    return Self { path, file: Some(file), earlier_copies, left_alone, ..none };
                }
                Ok(Taken::InUse { by }) => earlier_copies += u32::from(by == pid),
                Ok(Taken::NotOurs) => left_alone = left_alone.or(Some(path)),
                Err(problem) => return Self { problem: Some(problem), earlier_copies, ..none },
            }
        }
        let problem = left_alone.is_some().then(|| io::Error::other("it is no profile, and is left alone"));
        Self { problem, earlier_copies, ..none }
    }

    /// The file of a program that has more rights than the user who started it, and has chosen none itself: a new one, in the
    /// directory it is in, if that user could have made it there.
    fn where_the_user_may_write(none: Self) -> Self {
        // From here on nothing but the open file is used: names may lead elsewhere by then.
        let path = PathBuf::from("treering.trg");
        let refused = || io::Error::other("the program has more rights than the user who started it");
        let file = if sys::user_may_write(Path::new(".")) { create_new(&path) } else { Err(refused()) };
        match file.map(OwnFile::new) {
            Ok(file) => Self { file, ..none },
            Err(problem) => Self { problem: Some(problem), is_refused: true, ..none },
        }
    }

    /// Puts the finished profile in the place of the live file. `make_room` gives back what the live
    /// file takes of the disk, if it can.
    pub(crate) fn replace(&mut self, bytes: &[u8], make_room: impl FnOnce(&OwnFile) -> bool) -> io::Result<()> {
        if self.is_refused || self.file.is_some() && sys::has_rights_of_others() {
            // The live file is a profile as well.
            return Ok(());
        }
        if self.is_stream {
            return sys::write_to_stream(&self.path, bytes);
        }
        if let Some(file) = &self.file
            && !is_still(&self.path, file)
            && !may_be_replaced(&self.path).unwrap_or(false)
        {
            let other = self.path.clone();
            self.path = free_name(&other, std::process::id())?;
            let (other, path) = (other.to_string_lossy(), self.path.to_string_lossy());
            sys::complain(&["treering: ", &other, " is no profile any more; the profile is ", &path]);
        }
        let mut written = write_whole(&self.path, bytes);
        let is_full = |error: &io::Error| matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT));
        if written.as_ref().is_err_and(is_full)
            && let Some(file) = self.file.as_ref().filter(|file| file.is_open() && is_still(&self.path, file))
            && has_room(file, bytes.len())
            && make_room(file)
        {
            written = write_whole(&self.path, bytes);
        }
        if written.is_err() {
            self.remove_empty();
        }
        self.file = None;
        written
    }

    /// Removes a live file that never had any room: it would be taken for one that was stopped.
    fn remove_empty(&self) {
        let is_empty = |file: &File| file.metadata().is_ok_and(|found| found.len() == 0);
        if self.file.as_ref().is_some_and(|own| own.file.as_ref().is_some_and(is_empty)) {
            self.remove();
        }
    }

    /// Removes the live file, in which nothing was recorded.
    pub(crate) fn remove(&self) {
        if self.file.as_ref().is_some_and(|own| own.is_open() && is_still(&self.path, own)) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Whether a profile of `bytes` bytes fits in the place of the live file, with the free room besides.
fn has_room(file: &OwnFile, bytes: usize) -> bool {
    const BLOCK: u64 = 512;
    const SPARE: u64 = 1 << 16;
    let Some(file) = &file.file else { return false };
    let taken = file.metadata().map_or(0, |found| found.blocks() * BLOCK);
    bytes as u64 + SPARE <= taken + sys::free_room(file.as_raw_fd())
}

/// Writes a file that only its owner can read, and puts it in the place of the profile that has the name. A
/// file that is no profile is left alone.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return if is_stream(path) { sys::write_to_stream(path, bytes) } else { Err(not_a_file()) };
    }
    if !may_be_replaced(path)? {
        return Err(io::Error::other("it is no profile, and is left alone"));
    }
    let (new, mut file) = create_beside(path)?;
    let written = file.write_all(bytes).and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written
}

/// A new file in the same directory, under an unpredictable name.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    for attempt in 0..TRIES {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{:016x}", RandomState::new().hash_one(attempt)));
        let new = PathBuf::from(name);
        match create_new(&new) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (new, file)),
        }
    }
    Err(io::Error::from_raw_os_error(libc::EEXIST))
}

fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Whether a name leads to a pipe or a device that takes bytes one after the other.
fn is_stream(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| {
        let kind = found.file_type();
        kind.is_fifo() || kind.is_char_device()
    })
}

/// `treering.trg`, then `treering.PID.trg`, then `treering.PID-2.trg` ...
fn numbered(path: &Path, pid: u32, attempt: u32) -> PathBuf {
    let suffix = match attempt {
        0 => return path.to_owned(),
        1 => pid.to_string(),
        more => format!("{pid}-{more}"),
    };
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{suffix}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

enum Taken {
    Created(OwnFile),
    InUse { by: u32 },
    NotOurs,
}

/// Creates the file unless another process is writing one of that name, or it is no profile. A finished profile, or one
/// whose writer has ended, is kept under another name; so is a link, which is not followed.
fn try_create(path: &Path, pid: u32, process_start: u64) -> io::Result<Taken> {
    if let Ok(found) = std::fs::symlink_metadata(path) {
        let is_link = found.is_symlink();
        if !found.is_file() && !is_link {
            return Err(not_a_file());
        }
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let old = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).ok();
        let mut was_us = false;
        if let Some(mut old) = old.filter(|_| !is_link) {
            let header = read_header(&mut old);
            if !sys::lock_file(old.as_raw_fd()) {
                return Ok(Taken::InUse { by: header.map_or(0, |header| header.pid) });
            }
            was_us = header.is_some_and(|header| header.pid == pid && header.process_start == process_start);
        }
        if !is_link && !may_be_replaced(path).unwrap_or(false) {
            return Ok(Taken::NotOurs);
        }
        // The program that this process ran before it called exec.
        let old = with_suffix(path, ".old");
        let kept = if was_us || !may_be_forgotten(&old) { free_name(path, pid)? } else { old };
        std::fs::rename(path, kept)?;
    }
    let file = match create_new(path) {
        // Another process was quicker.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(Taken::InUse { by: 0 }),
        created => created?,
    };
    let is_locked = sys::lock_file(file.as_raw_fd());
    let own = OwnFile::new(file).ok_or_else(io::Error::last_os_error)?;
    Ok(if is_locked && is_still(path, &own) { Taken::Created(own) } else { Taken::InUse { by: 0 } })
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
fn is_still(path: &Path, file: &OwnFile) -> bool {
    path.symlink_metadata().is_ok_and(|named| sys::FileIdentity::of(named.dev(), named.ino()) == file.identity)
}

/// Whether nothing is lost when a profile takes this name: there is none, an empty file, or an older profile. An error
/// where the file cannot be read, so that it is not known.
fn may_be_replaced(path: &Path) -> io::Result<bool> {
    const MAGIC_OF_TRG: [u8; 8] = *b"\x89trg\r\n\x1a\n";
    let mut start = Vec::new();
    match OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path) {
        Ok(file) => {
            file.take(MAGIC.len() as u64).read_to_end(&mut start)?;
            Ok(start.is_empty() || start == MAGIC || start == MAGIC_OF_TRG)
        }
        Err(_) if std::fs::symlink_metadata(path).is_err() => Ok(true),
        Err(error) => Err(error),
    }
}

/// Whether an earlier profile that was kept may go: not within the moments in which runs of the same program follow
/// each other.
fn may_be_forgotten(kept: &Path) -> bool {
    const BETWEEN_RUNS: std::time::Duration = std::time::Duration::from_secs(10);
    match std::fs::symlink_metadata(kept) {
        Ok(found) => {
            let age = found.modified().ok().and_then(|time| time.elapsed().ok());
            found.is_file() && may_be_replaced(kept).unwrap_or(false) && age.is_some_and(|age| age > BETWEEN_RUNS)
        }
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn free_name(path: &Path, pid: u32) -> io::Result<PathBuf> {
    let mut names = (1..TRIES).map(|attempt| numbered(path, pid, attempt));
    let free = names.find(|name| std::fs::symlink_metadata(name).is_err());
    free.ok_or_else(|| io::Error::from_raw_os_error(libc::EEXIST))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The path from the root: one that is not from there is from the directory in which the program was
/// started, whatever the program's directory is now.
fn absolute(path: PathBuf) -> PathBuf {
    match START.get() {
        Some(start) if path.is_relative() => start.join(path),
        _ => std::path::absolute(&path).unwrap_or(path),
    }
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
