//! Waiting for traced threads.

use std::cell::RefCell;
use std::io;

/// How a thread's wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It is gone, with this exit status.
    Exited(i32),
    /// It is gone, by this signal.
    Killed(i32),
    /// A signal is about to be delivered.
    Signal(i32),
    /// It enters or leaves a system call.
    SystemCall,
    /// One of `PTRACE_EVENT_*`, with the signal that came with it.
    Event(i32, i32),
}

/// Has the kernel not signal stops of traced threads to this process, which waits for them. What is done
/// about the signal otherwise stays as it is.
pub(crate) fn expect_no_stop_signals() {
    // SAFETY: the kernel writes and reads one action; a handler, if there is one, stays.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGCHLD, std::ptr::null(), &raw mut action) == 0 {
            action.sa_flags |= libc::SA_NOCLDSTOP;
            libc::sigaction(libc::SIGCHLD, &raw const action, std::ptr::null_mut());
        }
    }
}

thread_local! {
    /// Threads that have ended while something else was waited for.
    static ENDS: RefCell<Vec<(i32, Stop)>> = const { RefCell::new(Vec::new()) };
}

/// Has the end of a thread come up again when any is waited for: the kernel tells it once.
pub(crate) fn tell_again(tid: i32, end: Stop) {
    ENDS.with_borrow_mut(|ends| ends.push((tid, end)));
}

/// Waits for a thread that the calling thread traces: a certain one, or any if `tid` is −1.
///
/// Nothing if there is none left. `EINTR` is returned if any is waited for.
pub(crate) fn wait(tid: i32) -> io::Result<Option<(i32, Stop)>> {
    if let Some(end) = ENDS.with_borrow_mut(|ends| if tid == -1 { ends.pop() } else { None }) {
        return Ok(Some(end));
    }
    let mut status = 0;
    loop {
        // SAFETY: the kernel writes one int. `__WNOTHREAD`: other threads of this process may have
        // children of their own.
        let found = unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
        if found >= 0 {
            return Ok(Some((found, stop(status))));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::ECHILD) => return Ok(None),
            Some(libc::EINTR) if tid != -1 => {}
            _ => return Err(error),
        }
    }
}

/// The stop of a thread that the calling thread traces, if it is in one: the same without waiting.
pub(crate) fn stop_of(tid: i32) -> io::Result<Option<Stop>> {
    let mut status = 0;
    let options = libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG;
    // SAFETY: the kernel writes one int.
    match unsafe { libc::waitpid(tid, &raw mut status, options) } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        _ => Ok(Some(stop(status))),
    }
}

fn stop(status: i32) -> Stop {
    if libc::WIFEXITED(status) {
        return Stop::Exited(libc::WEXITSTATUS(status));
    }
    if libc::WIFSIGNALED(status) {
        return Stop::Killed(libc::WTERMSIG(status));
    }
    match (status >> 16, libc::WSTOPSIG(status)) {
        (0, signal) if signal == libc::SIGTRAP | 0x80 => Stop::SystemCall,
        (0, signal) => Stop::Signal(signal),
        (event, signal) => Stop::Event(event, signal),
    }
}
