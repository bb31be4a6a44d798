//! Signals that reach this process but are meant for the program.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// The process that gets the signals; 0 while there is none.
static TARGET: AtomicI32 = AtomicI32::new(0);
/// Signals that came and were not passed on yet, each as the bit of its number.
static PENDING: AtomicU64 = AtomicU64::new(0);

/// Has this process pass a signal on to the process that [`pass_on_to`] names, also if the signal comes before that.
/// It uses no waiting thread: starting and ending one takes a hundredth of the time of a program that does nothing.
///
/// # Errors
/// There is no such signal, or it cannot be handled.
pub fn pass_on(signal: i32) -> io::Result<()> {
    // SAFETY: the kernel reads one action. Its handler calls only async-signal-safe functions
    // (signal-safety(7)).
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = passed_on as extern "C" fn(i32) as usize;
        action.sa_flags = libc::SA_RESTART;
        match libc::sigaction(signal, &raw const action, std::ptr::null_mut()) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Names the process that signals are passed on to, and passes on those that have come.
pub fn pass_on_to(pid: i32) {
    TARGET.store(pid, Ordering::SeqCst);
    send_pending();
}

/// Ends this process by a signal, as the counted program ended, and without a core dump of its own. Returns
/// if the signal does not end processes.
pub fn end_by(signal: i32) {
    // SAFETY: the calls take numbers, one action and one set of signals, which the kernel reads. No handler is left.
    unsafe {
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(signal);
    }
}

extern "C" fn passed_on(signal: i32) {
    PENDING.fetch_or(1 << signal, Ordering::SeqCst);
    if TARGET.load(Ordering::SeqCst) != 0 {
        send_pending();
    }
}

fn send_pending() {
    let (pid, mut pending) = (TARGET.load(Ordering::SeqCst), PENDING.swap(0, Ordering::SeqCst));
    // SAFETY: `errno` is the calling thread's, which the interrupted code may be using, so it is restored.
    // The signal goes to a process that was started or attached to; if that has just ended, nothing happens.
    unsafe {
        let error = *libc::__errno_location();
        while pending != 0 {
            let signal = pending.trailing_zeros();
            libc::kill(pid, signal as i32);
            pending &= pending - 1;
        }
        *libc::__errno_location() = error;
    }
}
