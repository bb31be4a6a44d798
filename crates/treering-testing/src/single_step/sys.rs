//! The system calls of stepping: `ptrace(2)`, `wait4(2)`, `personality(2)`.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

use libc::{c_int, c_long, c_uint, c_void, pid_t};

/// Where registers are in the kernel's `struct user`, in bytes: `regs.rip`, `regs.rax`, and
/// `regs.orig_rax`, which holds the number of a system call.
pub(super) const RIP: usize = 16 * 8;
pub(super) const RAX: usize = 10 * 8;

/// The event of a traced thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It stopped at a signal; a `SIGTRAP` may be a finished step.
    Signal(c_int),
    /// A `PTRACE_EVENT`.
    Event(c_int),
    /// It ended by itself, with this status.
    Exited(c_int),
    /// A signal ended it.
    Killed(c_int),
}

/// Starts a program that stops at its first instruction, traced by the calling thread, at the same
/// addresses in every run.
pub(super) fn spawn_traced(command: &mut Command) -> io::Result<Child> {
    let prepare = || {
        // SAFETY: both calls take numbers only, and are safe between fork and exec.
        let traced = unsafe {
            libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0)
        };
        if traced == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: `prepare` makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(prepare) }.spawn()
}

/// Waits for any thread that the calling thread traces.
pub(super) fn wait_for_any() -> io::Result<(pid_t, Stop)> {
    let mut status = 0;
    // SAFETY: `status` is a valid integer to write to.
    let tid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD) };
    if tid < 0 {
        return Err(io::Error::last_os_error());
    }
    let stop = if libc::WIFEXITED(status) {
        Stop::Exited(libc::WEXITSTATUS(status))
    } else if libc::WIFSIGNALED(status) {
        Stop::Killed(libc::WTERMSIG(status))
    } else if status >> 16 != 0 {
        Stop::Event(status >> 16)
    } else {
        Stop::Signal(libc::WSTOPSIG(status))
    };
    Ok((tid, stop))
}

/// Asks for stops at the start of threads and processes and at exec, and that nothing outlives
/// the tracer.
pub(super) fn follow_all(tid: pid_t) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_EXITKILL;
    request(libc::PTRACE_SETOPTIONS, tid, 0, options as usize).map(drop)
}

/// Lets a stopped thread execute one instruction, with a signal unless it is 0.
pub(super) fn step(tid: pid_t, signal: c_int) -> io::Result<()> {
    request(libc::PTRACE_SINGLESTEP, tid, 0, signal as usize).map(drop)
}

/// A register of a stopped thread, by where it is in `struct user`.
pub(super) fn register(tid: pid_t, offset: usize) -> io::Result<u64> {
    // The C library returns the word, and tells -1 from an error by errno.
    // SAFETY: errno is this thread's own.
    unsafe { *libc::__errno_location() = 0 };
    match request(libc::PTRACE_PEEKUSER, tid, offset, 0) {
        Ok(word) => Ok(word.cast_unsigned()),
        Err(error) if error.raw_os_error() == Some(0) => Ok(u64::MAX),
        Err(error) => Err(error),
    }
}

/// The `si_code` of the signal that a thread stopped at; nothing when it stopped with its group.
pub(super) fn signal_code(tid: pid_t) -> Option<c_int> {
    // SAFETY: all zeros is a valid siginfo_t, which the kernel then fills in.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let to = std::ptr::from_mut(&mut info).cast::<c_void>();
    // SAFETY: `to` points to a siginfo_t.
    let got = unsafe { libc::ptrace(libc::PTRACE_GETSIGINFO, tid, 0, to) };
    (got == 0).then_some(info.si_code)
}

/// The kernel's number for an event: that of a new thread, for instance.
pub(super) fn event_message(tid: pid_t) -> io::Result<u64> {
    let mut message: u64 = 0;
    let to = std::ptr::from_mut(&mut message).cast::<c_void>();
    // SAFETY: `to` points to a long.
    let got = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, 0, to) };
    if got == 0 { Ok(message) } else { Err(io::Error::last_os_error()) }
}

fn request(what: c_uint, tid: pid_t, address: usize, data: usize) -> io::Result<c_long> {
    // SAFETY: the requests made take numbers; `address` is an offset and not followed here.
    let result = unsafe { libc::ptrace(what, tid, address, data) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
