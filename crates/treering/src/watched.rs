//! The file of a program that is being watched: found, read again and again, and its end noticed.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use treering_formats::live::{MAGIC, Writer};
use treering_formats::{Format, detect};
use treering_proc::{Mapping, mappings};

use crate::failure::Failure;
use crate::live::{self, Fate};
use crate::open::{Opened, open_profile};
use crate::word::word;

/// A program that is being watched.
#[derive(Debug)]
pub struct Watched {
    path: PathBuf,
    /// Open all the time, since the program may put the finished profile in its place, and others
    /// may remove it.
    file: File,
}

/// The visible state of a program.
#[derive(Debug)]
pub enum Sight {
    /// It runs.
    Running(Box<live::Read>),
    /// It has ended, and left this profile.
    Ended(Box<Opened>),
    /// It has ended, and its file is gone. The last profile that was read is all there is.
    Gone,
}

impl Watched {
    /// Finds a program by its file or by its process.
    pub fn find(target: &str) -> Result<Self, Failure> {
        match target.parse::<u32>() {
            Ok(pid) if !Path::new(target).exists() => patiently(|| find_process(pid)),
            _ => patiently(|| find_file(PathBuf::from(target))),
        }
    }

    /// Looks at it now.
    pub fn look(&mut self) -> Result<Sight, Failure> {
        let bytes = self.bytes()?;
        match detect(&bytes) {
            Some(Format::Live) => self.look_at(&bytes),
            Some(Format::Trg) => Ok(Sight::Ended(Box::new(open_profile(&self.path)?))),
            _ => {
                let path = self.path.display();
                let failure = Failure::new(format_args!("{path}: not the file of an instrumented program"));
                Err(failure.hint(format_args!("to show a profile: treering report {}", word(&self.path))))
            }
        }
    }

    fn bytes(&mut self) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        let read = self.file.rewind().and_then(|()| self.file.read_to_end(&mut bytes));
        read.map_err(|error| unreadable(&self.path, &error))?;
        Ok(bytes)
    }

    fn look_at(&mut self, bytes: &[u8]) -> Result<Sight, Failure> {
        let failed = |error| Failure::new(format_args!("{}: {error}", self.path.display()));
        let read = live::read(bytes).map_err(failed)?;
        if read.fate == Fate::Runs {
            return Ok(Sight::Running(Box::new(read)));
        }
        self.after(read)
    }

    /// The profile in the file is at its end: the finished one has taken its place, or another one
    /// that the same process has begun, or nothing.
    fn after(&mut self, read: live::Read) -> Result<Sight, Failure> {
        let Ok(mut file) = File::open(&self.path) else { return Ok(Sight::Gone) };
        let mut bytes = Vec::new();
        let _ = file.read_to_end(&mut bytes);
        let Ok(next) = Writer::of(&bytes) else {
            let finished = detect(&bytes) == Some(Format::Trg);
            return if finished {
                Ok(Sight::Ended(Box::new(open_profile(&self.path)?)))
            } else {
                Ok(Sight::Gone)
            };
        };
        let (own, same_file) = (read.writer.pid, next.start_raw_ns == read.writer.start_raw_ns);
        match Fate::of(&next) {
            Fate::Runs if next.pid == own => {
                self.file = file;
                self.look_at(&bytes)
            }
            // The finished profile is being written.
            Fate::Finished if same_file && live::is_running(&read.writer) => {
                Ok(Sight::Running(Box::new(read)))
            }
            _ if same_file => Ok(Sight::Ended(Box::new(open_profile(&self.path)?))),
            _ => Ok(Sight::Gone),
        }
    }
}

/// How long a program that was just started has to begin its file.
const PATIENCE: Duration = Duration::from_secs(1);

/// Tries again for a moment.
fn patiently<T>(find: impl Fn() -> Result<T, NotYet>) -> Result<T, Failure> {
    let end = Instant::now() + PATIENCE;
    loop {
        match find() {
            Ok(found) => return Ok(found),
            Err(NotYet { may_come: true, .. }) if Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(NotYet { failure, .. }) => return Err(failure),
        }
    }
}

/// Why a program was not found.
struct NotYet {
    failure: Failure,
    /// Whether it may only have been started.
    may_come: bool,
}

impl NotYet {
    fn never(failure: Failure) -> Self {
        Self { failure, may_come: false }
    }
}

fn find_file(path: PathBuf) -> Result<Watched, NotYet> {
    let mut file = File::open(&path).map_err(|error| NotYet::never(unreadable(&path, &error)))?;
    let mut start = [0; MAGIC.len()];
    // The header is written when there is room for it.
    let is_blank = file.read(&mut start).is_ok_and(|_| start == [0; MAGIC.len()]);
    if is_blank {
        return Err(NotYet { failure: not_begun(&path), may_come: true });
    }
    Ok(Watched { path, file })
}

fn not_begun(path: &Path) -> Failure {
    Failure::new(format_args!("{}: the file is empty", path.display()))
        .hint("the program that should have written it may have been stopped")
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    let path = path.display();
    match error.kind() {
        ErrorKind::NotFound => Failure::new(format_args!("cannot read {path}: there is no such file")).hint(
            "an instrumented program creates it at the first call that it reports: treering.trg in its directory",
        ),
        ErrorKind::PermissionDenied => Failure::new(format_args!("cannot read {path}: permission denied")),
        _ => Failure::new(format_args!("cannot read {path}: {error}")),
    }
}

/// Whether a file is mapped for others to see, as a live file is.
fn is_shared_file(mapping: &Mapping) -> bool {
    mapping.is_shared && mapping.path.is_absolute()
}

/// Opens the file that is mapped: by its path if that still leads to it, else by way of the mapping, which needs more
/// rights.
fn open_mapped(mapping: &Mapping, pid: u32) -> Option<File> {
    let is_it = |file: &File| file.metadata().is_ok_and(|about| about.ino() == mapping.inode);
    let by_path = File::open(mapping.plain_path()).ok().filter(is_it);
    let Mapping { start, end, .. } = mapping;
    by_path.or_else(|| File::open(format!("/proc/{pid}/map_files/{start:x}-{end:x}")).ok())
}

/// Whether it may be a file that was removed or replaced, rather than shared memory.
fn may_be_lost(mapping: &Mapping) -> bool {
    let elsewhere = ["/dev/", "/memfd:", "/SYSV", "/dmabuf:"];
    !elsewhere.iter().any(|start| mapping.path.as_os_str().as_bytes().starts_with(start.as_bytes()))
}

fn is_live(mut file: &File) -> bool {
    let mut start = [0; MAGIC.len()];
    file.read_exact(&mut start).is_ok() && start == MAGIC
}

fn find_process(pid: u32) -> Result<Watched, NotYet> {
    let mappings = mappings(pid).map_err(|error| NotYet::never(no_maps(pid, &error)))?;
    let mut lost = None;
    for mapping in mappings.iter().filter(|mapping| is_shared_file(mapping)) {
        match open_mapped(mapping, pid) {
            Some(file) if is_live(&file) => {
                return Ok(Watched { path: mapping.plain_path().to_owned(), file });
            }
            None if may_be_lost(mapping) => lost = lost.or(Some(mapping.plain_path())),
            _ => {}
        }
    }
    let may_come = lost.is_none();
    let failure = lost.map_or_else(|| not_instrumented(pid), |path| was_lost(pid, path));
    Err(NotYet { failure, may_come })
}

fn no_maps(pid: u32, error: &std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::NotFound => Failure::new(format_args!("there is no process {pid}"))
            .hint("to see what it left: treering report"),
        ErrorKind::PermissionDenied => {
            Failure::new(format_args!("cannot see what process {pid} has open: permission denied"))
                .hint("name its file instead, which is treering.trg in its directory")
        }
        _ => Failure::new(format_args!("cannot see what process {pid} has open: {error}")),
    }
}

fn was_lost(pid: u32, path: &Path) -> Failure {
    let path = path.display();
    Failure::new(format_args!("the file that process {pid} writes was removed or replaced: {path}"))
        .hint("root can still watch it; or start the program again")
}

fn not_instrumented(pid: u32) -> Failure {
    Failure::new(format_args!("process {pid} writes no profile"))
        .hint("only instrumented programs do, from their first reported call on: docs/instrumenting.md")
        .hint(format_args!("any program can be sampled: treering record --pid {pid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_mappings_of_files_are_found() {
        let mapping = |line: &str| Mapping::parse(line.as_bytes()).expect("a mapping");
        let live = mapping("7f33bae00000-7f33bae40000 rw-s 00000000 fe:00 10854513   /tmp/a b.trg (deleted)");
        assert!(is_shared_file(&live) && may_be_lost(&live));
        assert_eq!(live.plain_path(), Path::new("/tmp/a b.trg"));
        let private = mapping("55d0c0000000-55d0c0001000 r-xp 00000000 fe:00 1 /usr/bin/true");
        let anonymous = mapping("7f00-7f01 rw-s 00000000 00:01 0 ");
        assert!(!is_shared_file(&private) && !is_shared_file(&anonymous));
        assert!(!may_be_lost(&mapping(
            "7f0000000000-7f0000001000 rw-s 00000000 00:01 5 /dev/zero (deleted)"
        )));
    }
}
