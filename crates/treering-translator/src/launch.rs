//! The start of a program that is traced, and of a process that only ends after a while.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use crate::sys::{kill, seize};

/// What a new process needs, prepared so that it allocates nothing between `fork` and `execve`.
pub(crate) struct Launch {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    fixed_addresses: bool,
    nothing: Option<OwnedFd>,
}

impl Launch {
    /// The program's file, its arguments with its name first, and the variables as `NAME=VALUE`.
    pub(crate) fn new(program: CString, arguments: Vec<CString>, environment: Vec<CString>) -> Self {
        Self { program, arguments, environment, fixed_addresses: false, nothing: None }
    }

    /// Loads everything at the same addresses in every run.
    pub(crate) fn fix_addresses(&mut self) {
        self.fixed_addresses = true;
    }

    /// Gives the program an open `/dev/null` as its standard input and output.
    pub(crate) fn silence(&mut self, nothing: OwnedFd) {
        self.nothing = Some(nothing);
    }

    /// Starts a process that waits to be traced, traces it, and lets it become the program.
    ///
    /// Returns its id; it runs up to the event of `execve`. If that fails, it writes the error's
    /// number to the returned pipe and exits.
    pub(crate) fn start(&self) -> io::Result<(i32, OwnedFd)> {
        let (go_read, go_write) = pipe()?;
        let (error_read, error_write) = pipe()?;
        let pointers = |texts: &[CString]| {
            let all = texts.iter().map(|text| text.as_ptr());
            all.chain(std::iter::once(std::ptr::null())).collect::<Vec<_>>()
        };
        let (arguments, environment) = (pointers(&self.arguments), pointers(&self.environment));
        // SAFETY: the child makes only system calls up to `execve` or `_exit`, on memory that was
        // prepared before; its descriptors are its own copies.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: as above. Rust ignores SIGPIPE in this process; programs expect the default.
            unsafe {
                libc::signal(libc::SIGPIPE, libc::SIG_DFL);
                if self.fixed_addresses {
                    libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
                }
                if let Some(nothing) = &self.nothing {
                    libc::dup2(nothing.as_raw_fd(), 0);
                    libc::dup2(nothing.as_raw_fd(), 1);
                }
                let mut byte = 0_u8;
                libc::close(go_write.as_raw_fd());
                if libc::read(go_read.as_raw_fd(), (&raw mut byte).cast(), 1) == 1 {
                    libc::execve(self.program.as_ptr(), arguments.as_ptr(), environment.as_ptr());
                }
                let error = *libc::__errno_location();
                libc::write(error_write.as_raw_fd(), (&raw const error).cast(), 4);
                libc::_exit(127);
            }
        }
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        if let Err(error) = seize(pid) {
            kill(pid);
            return Err(error);
        }
        // SAFETY: writes one byte to a pipe that is open.
        unsafe { libc::write(go_write.as_raw_fd(), [1_u8].as_ptr().cast(), 1) };
        Ok((pid, error_read))
    }
}

/// Starts a process that does nothing but end after a while, if there is one, or by a signal that is sent to
/// it, which [`wait`] tells.
pub(crate) fn start_alarm(after: Option<std::time::Duration>) -> io::Result<i32> {
    let time = after
        .map(|after| libc::timespec { tv_sec: after.as_secs() as i64, tv_nsec: after.subsec_nanos().into() });
    const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];
    // SAFETY: the sets are initialized before they are used. The child makes only system calls, on memory of
    // its own; it ends with its parent.
    unsafe {
        let (mut ending, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&raw mut ending);
        for signal in ENDING {
            libc::sigaddset(&raw mut ending, signal);
        }
        // One that came to a handler of ours, which it has at first, would be lost.
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const ending, &raw mut before);
        let forked = match libc::fork() {
            0 => {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // What is typed at the terminal is none of its business.
                libc::setpgid(0, 0);
                for signal in ENDING {
                    libc::signal(signal, libc::SIG_DFL);
                }
                libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const ending, std::ptr::null_mut());
                match &time {
                    Some(time) => drop(libc::nanosleep(time, std::ptr::null_mut())),
                    None => drop(libc::pause()),
                }
                libc::_exit(0)
            }
            pid if pid > 0 => Ok(pid),
            _ => Err(io::Error::last_os_error()),
        };
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        forked
    }
}

/// The error that a started process wrote instead of becoming the program.
pub(crate) fn start_error(pipe: &OwnedFd) -> Option<io::Error> {
    let mut number = 0_i32;
    // SAFETY: the kernel writes at most four bytes into `number`.
    let got = unsafe { libc::read(pipe.as_raw_fd(), (&raw mut number).cast(), 4) };
    (got == 4).then(|| io::Error::from_raw_os_error(number))
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    use std::os::fd::FromRawFd as _;
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two descriptors, which nobody else has.
    unsafe {
        match libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) {
            0 => Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
