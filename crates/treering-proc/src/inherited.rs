//! The treatment of signals and the limit of open files that this process was started with, for the programs that it
//! starts itself.
//!
//! Rust ignores SIGPIPE before `main`, and its [`Command`] gives programs the default. So all is noted earlier, by a
//! function that the loader calls.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::OnceLock;

use nix::libc;
use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use nix::sys::signal::SigSet;

/// The ignored signals, the blocked signals and the limit of open files that this process was started with.
#[derive(Clone, Copy, Debug)]
pub struct Inherited {
    /// Of each of [`CHANGED`], whether it was ignored.
    ignored: [bool; CHANGED.len()],
    blocked: Option<SigSet>,
    open_files: Option<(rlim_t, rlim_t)>,
}

/// The signals whose treatment changes here: SIGPIPE by Rust, SIGCHLD by [`keep_ended_children`].
const CHANGED: [libc::c_int; 2] = [libc::SIGPIPE, libc::SIGCHLD];

static INHERITED: OnceLock<Inherited> = OnceLock::new();

extern "C" fn note_inherited() {
    INHERITED.get_or_init(Inherited::read);
}

// SAFETY: the loader takes the entries of this section for functions, and calls each once before `main`. This one is a
// function, and needs nothing that is set up later.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_INHERITED: extern "C" fn() = note_inherited;

impl Inherited {
    /// The state in which this process was started.
    pub fn get() -> Self {
        *INHERITED.get_or_init(Self::read)
    }

    fn read() -> Self {
        Self {
            ignored: CHANGED.map(is_ignored),
            blocked: SigSet::thread_get_mask().ok(),
            open_files: getrlimit(Resource::RLIMIT_NOFILE).ok(),
        }
    }

    /// All but that SIGCHLD was ignored, for a program that waits for children.
    pub fn to_wait_with(self) -> Self {
        let [pipe, _] = self.ignored;
        Self { ignored: [pipe, false], ..self }
    }

    /// Gives all of it to this process, which is about to become another program. It makes system calls only, as it must
    /// between `fork` and `exec`.
    pub fn restore(&self) {
        for (signal, ignored) in CHANGED.into_iter().zip(self.ignored) {
            set_action(signal, if ignored { libc::SIG_IGN } else { libc::SIG_DFL });
        }
        let _ = self.open_files.map(|(current, most)| setrlimit(Resource::RLIMIT_NOFILE, current, most));
        let _ = self.blocked.map(|blocked| blocked.thread_set_mask());
    }

    /// Has a command start its program with all of it.
    pub fn give_to(self, command: &mut Command) -> &mut Command {
        let restore = move || -> io::Result<()> {
            self.restore();
            Ok(())
        };
        // SAFETY: `restore` makes system calls only: it takes no lock and allocates nothing.
        unsafe { command.pre_exec(restore) }
    }
}

/// How many bytes the first thread's stack may grow to (`ulimit -s`), if that is known.
pub fn stack_limit() -> Option<u64> {
    getrlimit(Resource::RLIMIT_STACK).ok().map(|(current, _)| current)
}

/// Has the kernel keep the status of children that end, which it does not while SIGCHLD is ignored. Programs that are
/// started with what was [inherited](Inherited) ignore it still.
pub fn keep_ended_children() {
    let [.., ignores_children] = Inherited::get().ignored;
    if ignores_children {
        set_action(libc::SIGCHLD, libc::SIG_DFL);
    }
}

/// Whether this process ignores a signal now.
pub fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: all zeros is a valid action, which the call fills; it changes nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Has this process ignore a signal.
pub fn ignore(signal: libc::c_int) {
    set_action(signal, libc::SIG_IGN);
}

/// Sets the action of a signal to ignoring it or to its default.
fn set_action(signal: libc::c_int, action: libc::sighandler_t) {
    // SAFETY: the call takes two numbers; neither is a handler.
    unsafe { libc::signal(signal, action) };
}
