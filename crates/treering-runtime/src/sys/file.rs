//! Files: their room on the disk, pipes, locks, rights, standard error.

use core::ffi::c_int;
use std::io;

/// Shortens a file to `bytes`, if it can be.
pub(crate) fn shorten_file(file: i32, bytes: u64) {
    // SAFETY: changes a file that is not mapped behind `bytes`.
    unsafe { libc::ftruncate(file, bytes as libc::off_t) };
}

/// Makes a file longer and sure of its room on the disk, so that writing to a mapping of it
/// cannot fail later.
pub(crate) fn extend_file(fd: c_int, from: u64, to: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call fills the structure.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    if known && limit.rlim_cur != libc::RLIM_INFINITY && to > limit.rlim_cur {
        // Going beyond would end the program by a signal.
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    loop {
        // SAFETY: works on a descriptor of ours.
        match unsafe { libc::posix_fallocate(fd, from as libc::off_t, (to - from) as libc::off_t) } {
            0 => return Ok(()),
            libc::EINTR => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// Tells a file from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    device: u64,
    node: u64,
}

impl FileIdentity {
    pub(crate) const fn of(device: u64, node: u64) -> Self {
        Self { device, node }
    }
}

/// The identity of an open file; nothing where the number is of none.
pub(crate) fn file_identity(fd: c_int) -> Option<FileIdentity> {
    // SAFETY: all zeros are a valid structure, and the call fills it.
    unsafe {
        let mut found: libc::stat = core::mem::zeroed();
        (libc::fstat(fd, &raw mut found) == 0).then(|| FileIdentity::of(found.st_dev, found.st_ino))
    }
}

/// Bytes that are free on the disk of an open file.
pub(crate) fn free_room(fd: c_int) -> u64 {
    // SAFETY: all zeros are a valid structure, and the call fills it.
    unsafe {
        let mut found: libc::statvfs = core::mem::zeroed();
        if libc::fstatvfs(fd, &raw mut found) != 0 { 0 } else { found.f_bavail * found.f_frsize }
    }
}

/// Writes to a pipe or device. It gives up after ten seconds in which no reader takes anything. A pipe without a
/// reader raises no signal.
pub(crate) fn write_to_stream(path: &std::path::Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::{IsTerminal as _, Write as _};
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    const PATIENCE_MS: c_int = 10_000;

    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let mut options = std::fs::OpenOptions::new();
    let mut stream = options.write(true).custom_flags(flags).open(path).map_err(|error| {
        match error.raw_os_error() {
            Some(libc::ENXIO) => io::Error::other("it has no reader"),
            _ => error,
        }
    })?;
    if stream.is_terminal() {
        return Err(io::Error::other("it is a terminal"));
    }
    let _quiet = NoPipeSignal::begin();
    let mut left = bytes;
    while !left.is_empty() {
        match stream.write(left) {
            Ok(count) => left = &left[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let mut wait = libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
                // SAFETY: one structure is given, and it lives.
                if unsafe { libc::poll(&raw mut wait, 1, PATIENCE_MS) } == 0 {
                    return Err(io::Error::other("its reader does not continue"));
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// While it lives, the program gets no signal for a pipe without a reader.
struct NoPipeSignal {
    before: libc::sigset_t,
    pipe: libc::sigset_t,
}

impl NoPipeSignal {
    fn begin() -> Self {
        // SAFETY: all zeros are valid sets; the calls fill them, and change this thread's mask only.
        unsafe {
            let mut pipe: libc::sigset_t = core::mem::zeroed();
            let mut before: libc::sigset_t = core::mem::zeroed();
            libc::sigemptyset(&raw mut pipe);
            libc::sigaddset(&raw mut pipe, libc::SIGPIPE);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const pipe, &raw mut before);
            Self { before, pipe }
        }
    }
}

impl Drop for NoPipeSignal {
    fn drop(&mut self) {
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: takes a signal that is pending, if it is, and puts the mask back.
        unsafe {
            if libc::sigismember(&raw const self.before, libc::SIGPIPE) == 0 {
                libc::sigtimedwait(&raw const self.pipe, core::ptr::null_mut(), &raw const now);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, core::ptr::null_mut());
        }
    }
}

/// Locks a file for this process, as long as it is open. False when another has it.
pub(crate) fn lock_file(fd: c_int) -> bool {
    // SAFETY: works on a descriptor of ours.
    unsafe { libc::flock(fd, libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// Whether the program runs with more rights than the user who started it: setuid, setgid, capabilities of its file.
pub(crate) fn has_rights_of_others() -> bool {
    // SAFETY: it reads a number that the kernel gave the process when it started.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Whether the user who started the program may make files in a folder, whatever the program itself may.
pub(crate) fn user_may_write(folder: &std::path::Path) -> bool {
    let Ok(folder) = std::ffi::CString::new(folder.as_os_str().as_encoded_bytes()) else { return false };
    // SAFETY: the name ends with a zero. `access` asks for the real user, not for the effective one.
    unsafe { libc::access(folder.as_ptr(), libc::W_OK | libc::X_OK) == 0 }
}

/// Writes a line to standard error without the allocator; what cannot be written is left out.
pub(crate) fn complain(parts: &[&str]) {
    for part in parts.iter().chain([&"\n"]) {
        // SAFETY: the bytes are those of a text that lives.
        unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
    }
}
