//! Waiting for traced threads.

use std::cell::RefCell;
use std::io;

/// `PTRACE_EVENT_STOP`, which the C library's header lacks.
pub(crate) const EVENT_STOP: i32 = 128;

/// Signals that stop a process which does not handle them.
pub(crate) const STOPS: [i32; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// The result of waiting for a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It has ended, with this exit status.
    Exited(i32),
    /// It has ended, by this signal.
    Killed(i32),
    /// A signal is about to be delivered.
    Signal(i32),
    /// It enters or leaves a system call.
    SystemCall,
    /// One of `PTRACE_EVENT_*`, with its signal.
    Event(i32, i32),
}

/// Has the kernel send no signals for stops of traced threads to this process, which waits for them. The
/// signal's action otherwise stays as it is.
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
    /// Stops that came while the tracer waited for something else.
    static AGAIN: RefCell<Vec<(i32, Stop)>> = const { RefCell::new(Vec::new()) };
}

/// Reports the stop or the end of a thread again to the next wait for any thread: the kernel reports it only once.
pub(crate) fn tell_again(tid: i32, stop: Stop) {
    AGAIN.with_borrow_mut(|stops| stops.push((tid, stop)));
}

/// Waits for a thread that the calling thread traces: a certain one, or any if `tid` is −1.
///
/// Nothing if no thread is left. `EINTR` is returned only when it waits for any.
pub(crate) fn wait(tid: i32) -> io::Result<Option<(i32, Stop)>> {
    if let Some(stop) = AGAIN.with_borrow_mut(|stops| if tid == -1 { stops.pop() } else { None }) {
        return Ok(Some(stop));
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

/// The stop of a thread that the calling thread traces, if it is in one, without waiting.
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
