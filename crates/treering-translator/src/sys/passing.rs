//! Signals that reach this process but are meant for the program.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

/// The process, or the negative number of the process group, that gets the signals; 0 while there is none.
static TARGET: AtomicI32 = AtomicI32::new(0);
/// Signals that came and were not passed on yet, each as the bit of its number.
static PENDING: AtomicU64 = AtomicU64::new(0);
/// Whether a terminal has asked this process to stop, and it has not done so.
static IS_ASKED: AtomicBool = AtomicBool::new(false);
/// Whether the program has stopped, and this process has not: the next request stops it at once.
static PROGRAM_STANDS: AtomicBool = AtomicBool::new(false);

/// The senders whose signals are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Senders {
    /// All: the process that gets the signals is not in our process group.
    All,
    /// Other processes. A terminal sends its signals to all of a process group, and so to the program as well.
    Processes,
}

/// Has this process pass a signal on to what [`pass_on_to`] names, also if the signal comes before that.
/// It uses no waiting thread: starting and ending one takes a hundredth of the time of a program that does nothing.
///
/// # Errors
/// There is no such signal, or it cannot be handled.
pub fn pass_on(signal: i32, senders: Senders) -> io::Result<()> {
    let handler = match senders {
        Senders::All => passed_on as extern "C" fn(i32, *const libc::siginfo_t),
        Senders::Processes => passed_on_from_process,
    };
    set_action(signal, handler as usize)
}

/// Names the process that signals are passed on to, and passes on those that have come. A negative number names a
/// process group, as for kill(2). With `None` later signals wait for the next process; say so once it has ended.
pub fn pass_on_to(target: Option<i32>) {
    TARGET.store(target.unwrap_or(0), Ordering::SeqCst);
    send_pending();
}

/// If a terminal or the program asks their process group to stop (Ctrl-Z), has this process stop only after the program that
/// it counts: the program may handle the signal, and cannot run without its tracer. With `false` it stops at once, as usual.
/// If it ignores the signal, it goes on doing so.
///
/// # Errors
/// The signal cannot be handled.
pub fn stop_with_program(with_program: bool) -> io::Result<()> {
    match with_program {
        true => heed_request(asked_to_stop as extern "C" fn(i32, *const libc::siginfo_t) as usize),
        false => heed_request(libc::SIG_DFL),
    }
}

/// If a terminal asks their process group to stop (Ctrl-Z), has this process stop only after the first of its children that does,
/// which may put the terminal in order before: the shell has the terminal once this process has stopped. Without children it
/// stops at once. For a process that traces none of them; [`stop_with_program`] ends it.
///
/// # Errors
/// The signals cannot be handled.
pub fn stop_after_children() -> io::Result<()> {
    heed_request(asked_beside_children as extern "C" fn(i32, *const libc::siginfo_t) as usize)?;
    set_action(libc::SIGCHLD, child_changed as extern "C" fn(i32, *const libc::siginfo_t) as usize)
}

/// Sets the action for a terminal's request to stop. If this process ignores it, it goes on doing so.
fn heed_request(action: usize) -> io::Result<()> {
    // SAFETY: the kernel writes one action.
    let before = unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGTSTP, std::ptr::null(), &raw mut before) != 0 {
            return Err(io::Error::last_os_error());
        }
        before.sa_sigaction
    };
    if before == libc::SIG_IGN { Ok(()) } else { set_action(libc::SIGTSTP, action) }
}

/// Sets the action for a signal: a default one, or a handler that takes the signal's information.
fn set_action(signal: i32, action: usize) -> io::Result<()> {
    // SAFETY: the kernel reads one action. Handlers here call only async-signal-safe functions, and with `SA_SIGINFO` the kernel
    // calls them with these arguments.
    unsafe {
        let mut new: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = action;
        new.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
        libc::sigaddset(&raw mut new.sa_mask, libc::SIGCHLD);
        match libc::sigaction(signal, &raw const new, std::ptr::null_mut()) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Whether a terminal has asked this process and the program to stop, and this process has not done so.
pub(crate) fn is_asked_to_stop() -> bool {
    IS_ASKED.load(Ordering::SeqCst)
}

/// A request to stop, if there is one, is answered without this process having stopped.
pub(crate) fn end_request_to_stop() {
    IS_ASKED.store(false, Ordering::SeqCst);
}

/// Whether the program has stopped while this process goes on. The next request then stops this process at once: the program
/// does nothing before that, and other processes that were asked may never stop.
pub(crate) fn program_stands(stands: bool) {
    PROGRAM_STANDS.store(stands, Ordering::SeqCst);
}

/// Whether a process is in this one's process group, so that a terminal asks both to stop.
pub(crate) fn is_in_our_group(pid: i32) -> bool {
    // SAFETY: the calls take and return numbers.
    unsafe { libc::getpgid(pid) == libc::getpgrp() }
}

/// Whether a process is in a group of its own which has the terminal that this process was started from, as an interactive
/// shell is.
pub(crate) fn took_terminal(pid: i32) -> bool {
    // SAFETY: the calls take and return numbers.
    unsafe {
        let group = libc::getpgid(pid);
        group != libc::getpgrp() && on_terminal(|terminal| libc::tcgetpgrp(terminal)) == Some(group)
    }
}

/// Stops this process by a signal, as it stopped the program. The shell continues only the process group that it has started,
/// so a program in another one is continued by this process, which gives it the terminal as well.
pub(crate) fn stop_by(signal: i32, program: i32) {
    IS_ASKED.store(false, Ordering::SeqCst);
    // SAFETY: the kernel writes and reads one action and one set of signals. The action of SIGSTOP cannot be changed, and need
    // not. The other calls take numbers; all are async-signal-safe.
    unsafe {
        let (mut usual, mut before): (libc::sigaction, libc::sigaction) =
            (std::mem::zeroed(), std::mem::zeroed());
        usual.sa_sigaction = libc::SIG_DFL;
        let is_changed = libc::sigaction(signal, &raw const usual, &raw mut before) == 0;
        // The signal is blocked in its own handler.
        let (mut set, mut mask): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, &raw mut mask);
        libc::raise(signal);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, std::ptr::null_mut());
        if is_changed {
            libc::sigaction(signal, &raw const before, std::ptr::null_mut());
        }
        let group = libc::getpgid(program);
        if group > 0 && group != libc::getpgrp() {
            on_terminal(|terminal| {
                if libc::tcgetpgrp(terminal) == libc::getpgrp() {
                    libc::tcsetpgrp(terminal, group);
                }
            });
            libc::kill(-group, libc::SIGCONT);
        }
    }
}

/// Does something with the terminal that this process was started from, if there is one.
fn on_terminal<T>(act: impl FnOnce(i32) -> T) -> Option<T> {
    // SAFETY: the path ends with a zero byte, and the descriptor is ours.
    unsafe {
        let terminal = libc::open(c"/dev/tty".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOCTTY);
        if terminal < 0 {
            return None;
        }
        let done = act(terminal);
        libc::close(terminal);
        Some(done)
    }
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

extern "C" fn passed_on_from_process(signal: i32, info: *const libc::siginfo_t) {
    // SAFETY: the kernel has filled `info` in for this handler.
    // Signals that the kernel itself sends, for a terminal too, have codes above that of kill(2) (sigaction(2)).
    if unsafe { (*info).si_code } <= libc::SI_USER {
        passed_on(signal, info);
    }
}

extern "C" fn asked_to_stop(_signal: i32, info: *const libc::siginfo_t) {
    // SAFETY: the kernel has filled `info` in for this handler.
    unsafe {
        stop_if(info, || PROGRAM_STANDS.load(Ordering::SeqCst).then(|| TARGET.load(Ordering::SeqCst).max(0)));
    }
}

extern "C" fn asked_beside_children(_signal: i32, info: *const libc::siginfo_t) {
    // SAFETY: the kernel has filled `info` in for this handler, and fills in what it is asked for.
    unsafe {
        stop_if(info, || {
            let mut child: libc::siginfo_t = std::mem::zeroed();
            let states = libc::WEXITED | libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT;
            let is_none = libc::waitid(libc::P_ALL, 0, &raw mut child, states) != 0;
            (is_none || child.si_pid() != 0).then(|| child.si_pid())
        });
    }
}

/// A child has ended, stopped, or goes on.
extern "C" fn child_changed(_signal: i32, info: *const libc::siginfo_t) {
    // SAFETY: the kernel has filled `info` in for this handler. `errno` is the calling thread's, which the interrupted code may be
    // using, so it is restored.
    unsafe {
        let (error, pid) = (*libc::__errno_location(), (*info).si_pid());
        if (*info).si_code == libc::CLD_STOPPED
            && (IS_ASKED.swap(false, Ordering::SeqCst) || took_terminal(pid))
        {
            stop_by((*info).si_status(), pid);
        }
        *libc::__errno_location() = error;
    }
}

/// Stops this process at once if another process has sent the request to it alone, or if a program has stopped, whose number
/// is told. Otherwise the request is left to whoever notices that it stops.
///
/// # Safety
/// The kernel has filled `info` in.
unsafe fn stop_if(info: *const libc::siginfo_t, stopped: impl FnOnce() -> Option<i32>) {
    // SAFETY: as the caller says; the field of the union is read as a plain number. `errno` is as above.
    unsafe {
        let error = *libc::__errno_location();
        // A program may stop its whole group as a terminal does. Others need not have sent the signal to the program as well.
        let is_of_other = (*info).si_code <= libc::SI_USER && !is_in_our_group((*info).si_pid());
        // In this order: a program that stops meanwhile finds the request.
        IS_ASKED.store(true, Ordering::SeqCst);
        let stopped = stopped();
        if (is_of_other || stopped.is_some()) && IS_ASKED.swap(false, Ordering::SeqCst) {
            stop_by(libc::SIGTSTP, stopped.unwrap_or(0));
        }
        *libc::__errno_location() = error;
    }
}

extern "C" fn passed_on(signal: i32, _info: *const libc::siginfo_t) {
    PENDING.fetch_or(1 << signal, Ordering::SeqCst);
    send_pending();
}

fn send_pending() {
    let target = TARGET.load(Ordering::SeqCst);
    if target == 0 {
        return;
    }
    let mut pending = PENDING.swap(0, Ordering::SeqCst);
    // SAFETY: `errno` is the calling thread's, which the interrupted code may be using, so it is restored.
    // The signal goes to processes that were started or attached to; if these have just ended, nothing happens.
    unsafe {
        let error = *libc::__errno_location();
        while pending != 0 {
            let signal = pending.trailing_zeros();
            libc::kill(target, signal as i32);
            pending &= pending - 1;
        }
        *libc::__errno_location() = error;
    }
}
