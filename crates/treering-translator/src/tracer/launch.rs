//! Launches traced programs, and the process that serves as an alarm clock.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use treering_proc::Inherited;

use crate::sys::{STACK_SIZE, Stop, kill, limit, seize, set_limit, stop_of, tell_again};

/// Everything that a new process needs. It uses the data in place, as it shares our memory up to `execve`.
/// Copying the page tables for so short a time, and then our pages one by one as we write to them, would take
/// longer than everything else that it does.
pub(crate) struct Launch {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    fixed_addresses: bool,
    fixed_stack: bool,
    nothing: Option<OwnedFd>,
}

/// The size to which the stack may grow where that is held: the usual limit.
const FIXED_STACK: u64 = 8 << 20;

impl Launch {
    /// The program's file, its arguments with its name first, and the variables as `NAME=VALUE`.
    pub(crate) fn new(program: CString, arguments: Vec<CString>, environment: Vec<CString>) -> Self {
        Self { program, arguments, environment, fixed_addresses: false, fixed_stack: false, nothing: None }
    }

    /// Has everything loaded at the same addresses in every run.
    pub(crate) fn fix_addresses(&mut self) {
        self.fixed_addresses = true;
    }

    /// Gives the program's stack the usual limit, as far as it may have that.
    pub(crate) fn fix_stack(&mut self) {
        self.fixed_stack = true;
    }

    /// Gives the program an open `/dev/null` as its standard input and output.
    pub(crate) fn silence(&mut self, nothing: OwnedFd) {
        self.nothing = Some(nothing);
    }

    /// Starts a process that waits to be traced, traces it, and lets it become the program.
    ///
    /// Returns its id; it runs up to the event of `execve`. If that fails, it writes the error's number to
    /// the returned pipe and exits. The data that it uses until then is never freed, because nothing tells us
    /// when it has become the program.
    pub(crate) fn start(self) -> io::Result<(i32, OwnedFd)> {
        const STACK: usize = 64 << 10;
        let (go_read, go_write) = pipe()?;
        let (error_read, error_write) = pipe()?;
        let pointers = |texts: &[CString]| {
            let all = texts.iter().map(|text| text.as_ptr());
            all.chain(std::iter::once(std::ptr::null())).collect::<Vec<_>>()
        };
        let beginning = Box::leak(Box::new(Beginning {
            program: self.program.as_ptr(),
            arguments: pointers(&self.arguments),
            environment: pointers(&self.environment),
            nothing: self.nothing.as_ref().map(OwnedFd::as_raw_fd),
            fixed_addresses: self.fixed_addresses,
            go: [go_read.as_raw_fd(), go_write.as_raw_fd()],
            error: error_write.as_raw_fd(),
            inherited: Inherited::get(),
            mask: no_signals(),
            stack: Vec::with_capacity(STACK / 16),
            _texts: self,
        }));
        let fixed_stack = beginning._texts.fixed_stack;
        let all = &mut no_signals();
        let data = &raw mut *beginning;
        // SAFETY: the data for the process is never moved, freed or changed. The process has a stack of its
        // own, which grows downwards from an aligned end. It runs none of our signal handlers: signals are
        // blocked until it has removed them. Its descriptors are its own copies.
        let pid = unsafe {
            libc::sigfillset(all);
            libc::pthread_sigmask(libc::SIG_SETMASK, all, &raw mut (*data).mask);
            let stack = (*data).stack.as_mut_ptr().add(STACK / 16);
            let pid = libc::clone(become_program, stack.cast(), libc::CLONE_VM | libc::SIGCHLD, data.cast());
            let error = io::Error::last_os_error();
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const (*data).mask, std::ptr::null_mut());
            if pid < 0 {
                return Err(error);
            }
            pid
        };
        if let Err(error) = seize(pid) {
            if let Ok(Some(end @ Stop::Killed(_))) = stop_of(pid) {
                // The process was killed before it could be traced; whoever waits for it is told how it ended.
                tell_again(pid, end);
                return Ok((pid, error_read));
            }
            kill(pid);
            return Err(error);
        }
        if fixed_stack && let Ok([_, most]) = limit(pid, STACK_SIZE) {
            let _ = set_limit(pid, STACK_SIZE, [FIXED_STACK.min(most), most]);
        }
        // SAFETY: writes one byte to a pipe that is open.
        unsafe { libc::write(go_write.as_raw_fd(), [1_u8].as_ptr().cast(), 1) };
        Ok((pid, error_read))
    }
}

/// The data that a new process uses.
struct Beginning {
    program: *const libc::c_char,
    arguments: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
    nothing: Option<i32>,
    fixed_addresses: bool,
    /// A pipe. The process continues when it can read a byte from the first end; we write it to the second.
    go: [i32; 2],
    error: i32,
    inherited: Inherited,
    /// The signals that are to be blocked in the program.
    mask: libc::sigset_t,
    stack: Vec<u128>,
    _texts: Launch,
}

/// Becomes the program; the process does nothing else. It makes system calls only, and does not read `errno`,
/// which it shares with its parent.
extern "C" fn become_program(data: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the parent passes a `Beginning`, and does not touch it any more.
    let beginning = unsafe { &*data.cast::<Beginning>() };
    // SAFETY: system calls on memory that is valid for them.
    unsafe {
        for signal in (1..=libc::SIGSYS).chain(libc::SIGRTMIN()..=libc::SIGRTMAX()) {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut action);
            let is_handled = ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction);
            if is_handled {
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &raw const action, std::ptr::null_mut());
            }
        }
        beginning.inherited.restore();
        libc::sigprocmask(libc::SIG_SETMASK, &raw const beginning.mask, std::ptr::null_mut());
        if beginning.fixed_addresses {
            libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
        }
        if let Some(nothing) = beginning.nothing {
            libc::dup2(nothing, 0);
            libc::dup2(nothing, 1);
        }
        let mut byte = 0_u8;
        libc::close(beginning.go[1]);
        if libc::read(beginning.go[0], (&raw mut byte).cast(), 1) == 1 {
            let (arguments, environment) = (beginning.arguments.as_ptr(), beginning.environment.as_ptr());
            let error = execute(beginning.program, arguments, environment);
            libc::write(beginning.error, (&raw const error).cast(), 4);
        }
        libc::_exit(127);
    }
}

/// Calls `execve`, which returns only to report an error: its number.
///
/// # Safety
/// As `execve`.
unsafe fn execute(
    program: *const libc::c_char,
    arguments: *const *const libc::c_char,
    environment: *const *const libc::c_char,
) -> i32 {
    let result: i64;
    // SAFETY: the caller keeps the rules of `execve`; the kernel changes these registers only.
    unsafe {
        std::arch::asm!("syscall", inlateout("rax") libc::SYS_execve => result, in("rdi") program,
            in("rsi") arguments, in("rdx") environment, lateout("rcx") _, lateout("r11") _);
    }
    -result as i32
}

fn no_signals() -> libc::sigset_t {
    // SAFETY: a signal set is plain bytes, and is initialised at once.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        set
    }
}

/// Starts a process that only waits, until the given time is over or it gets a signal that ends it; [`wait`]
/// then reports its end.
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
        // A signal that one of our handlers caught would be lost; the child has these handlers at first.
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const ending, &raw mut before);
        let forked = match libc::fork() {
            0 => {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // Signals from the terminal must not reach it.
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
    // SAFETY: the kernel writes two new descriptors, which nothing else owns.
    unsafe {
        match libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) {
            0 => Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
