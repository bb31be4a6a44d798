//! Code that changes through files that are opened for writing: files that code was mapped from, and the
//! memory of processes.
//!
//! An unmodified page of a file changes with the file, even in a private mapping. So once a file is opened
//! for writing, its code is compared before each execution. The same holds for all code of a process whose
//! memory is opened (`/proc/PID/mem`, `proc(5)`): such writes ignore all protection.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::address_space::AddressSpace;
use crate::program::code_files::{FileId, id_of};
use crate::program::region::PAGE;
use crate::sys;
use crate::sys::filter::WRITES;
use crate::tracer::state::Tracer;
use crate::tracer::thread::{Call, State};

/// Whether a file is in a `proc` file system.
fn is_of_processes(metadata: &Metadata) -> bool {
    std::fs::metadata("/proc").is_ok_and(|processes| processes.dev() == metadata.dev())
}

impl AddressSpace {
    /// Has the code of a file compared from now on, as the file may be written to.
    fn expect_writes(&mut self, file: FileId) {
        let files = &mut self.program.code_files;
        for region in &self.program.regions.log()[files.regions..] {
            if let (Some(found), Some((path, _))) = (region.path(), &region.file)
                && let Ok(metadata) = found.metadata()
            {
                files.paths.entry(id_of(&metadata)).or_default().push(path.clone());
            }
        }
        files.regions = self.program.regions.log().len();
        let Some(paths) = files.paths.get(&file) else { return };
        for (start, end) in self.program.regions.set_changing(paths) {
            self.read_again(start, end);
        }
    }
}

impl Tracer {
    /// A thread may be about to open a file for writing, or to truncate it.
    pub(crate) fn opens(&mut self, tid: i32) -> io::Result<()> {
        let r = sys::registers(tid)?.0;
        let (directory, name) = match r.orig_rax as i64 {
            libc::SYS_openat | libc::SYS_openat2 => (r.rdi as i32, r.rsi),
            _ => (libc::AT_FDCWD, r.rdi),
        };
        let mut flags = [0; 8];
        let only_reads = r.orig_rax as i64 == libc::SYS_openat2
            && sys::read_memory(tid, r.rdx, &mut flags) == flags.len()
            && u64::from_le_bytes(flags) & u64::from(WRITES) == 0;
        let opens_for_reading = match r.orig_rax as i64 {
            libc::SYS_open => r.rsi & u64::from(WRITES) == 0,
            libc::SYS_openat => r.rdx & u64::from(WRITES) == 0,
            _ => only_reads,
        };
        let Some(path) = path_at(tid, name).filter(|_| !opens_for_reading) else {
            return sys::resume(tid, 0);
        };
        let found = seen_from(tid, directory, &path).metadata();
        let is_memory = path.file_name() == Some(OsStr::new("mem"));
        if is_memory || found.as_ref().is_ok_and(is_of_processes) {
            if let Some(thread) = self.threads.get_mut(&tid) {
                thread.state = State::InCall(Call::OpenedMemory);
            }
            return sys::resume_to_call(tid, 0);
        }
        if let Ok(metadata) = found.as_ref()
            && metadata.is_file()
        {
            let programs = self.spaces.iter_mut().flatten();
            programs.for_each(|program| program.space.expect_writes(id_of(metadata)));
        }
        sys::resume(tid, 0)
    }

    /// A thread has opened a file that may be the memory of a process. If the process is not known by its
    /// number, as in a container, it may be any of the counted ones.
    pub(crate) fn opened_memory(&mut self, tid: i32) -> io::Result<()> {
        let descriptor = sys::registers(tid)?.0.rax as i64;
        let link = std::fs::read_link(format!("/proc/{tid}/fd/{descriptor}"));
        let Some(of) = link.ok().as_deref().and_then(process_of_memory) else { return Ok(()) };
        let owner = of.and_then(|number| self.threads.get(&number)).and_then(|thread| thread.space);
        for (number, program) in self.spaces.iter_mut().enumerate() {
            if let Some(program) = program.as_mut().filter(|_| owner.is_none_or(|owner| owner == number)) {
                program.space.distrust();
            }
        }
        Ok(())
    }
}

/// The process whose memory a file is, if it is one: `/proc/PID/mem` or `/proc/PID/task/TID/mem`.
fn process_of_memory(path: &Path) -> Option<Option<i32>> {
    let is_memory = path.file_name() == Some(OsStr::new("mem"));
    let number = |name: &OsStr| name.to_str()?.parse().ok();
    is_memory.then(|| path.parent()?.file_name().and_then(number))
}

/// Reads a path from a thread's memory.
pub(crate) fn path_at(tid: i32, address: u64) -> Option<PathBuf> {
    let mut path = Vec::new();
    while path.len() < libc::PATH_MAX as usize {
        let at = address.checked_add(path.len() as u64)?;
        let mut bytes = [0; 256];
        let room = (PAGE - at % PAGE).min(bytes.len() as u64) as usize;
        let got = sys::read_memory(tid, at, &mut bytes[..room]);
        if let Some(end) = bytes[..got].iter().position(|&byte| byte == 0) {
            path.extend_from_slice(&bytes[..end]);
            return Some(PathBuf::from(OsStr::from_bytes(&path)));
        }
        if got == 0 {
            return None;
        }
        path.extend_from_slice(&bytes[..got]);
    }
    None
}

/// Resolves a path as a thread does, relative to one of its directories.
fn seen_from(tid: i32, directory: i32, path: &Path) -> PathBuf {
    let from = match (path.strip_prefix("/"), directory) {
        (Ok(rest), _) => return Path::new(&format!("/proc/{tid}/root")).join(rest),
        (Err(_), libc::AT_FDCWD) => format!("/proc/{tid}/cwd"),
        (Err(_), descriptor) => format!("/proc/{tid}/fd/{descriptor}"),
    };
    Path::new(&from).join(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_known_by_its_name() {
        let owner = |path: &str| process_of_memory(Path::new(path));
        assert_eq!(owner("/proc/12/mem"), Some(Some(12)));
        assert_eq!(owner("/proc/12/task/13/mem"), Some(Some(13)));
        assert_eq!(owner("/tmp/mem"), Some(None));
        assert_eq!(owner("/proc/12/maps"), None);
    }

    #[test]
    fn paths_are_seen_as_the_thread_sees_them() {
        assert_eq!(seen_from(1, 7, Path::new("/etc/a")), Path::new("/proc/1/root/etc/a"));
        assert_eq!(seen_from(1, libc::AT_FDCWD, Path::new("a")), Path::new("/proc/1/cwd/a"));
        assert_eq!(seen_from(1, 7, Path::new("a/b")), Path::new("/proc/1/fd/7/a/b"));
    }
}
