//! Waits for time to pass, or for a signal.

use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::failure::{Context as _, Failure};

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The time has passed.
    Time,
    /// The terminal has another size.
    Resized,
    /// The user wants the shell for a while.
    Suspended,
    /// It is to end.
    Ended,
}

/// The signal for a program that ignores the first one.
const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Does something in a thread that signals reach as they reach any program: one that it starts can be ended
/// by them.
pub fn beside_waits<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    let open_to_signals = || {
        let mut set = SigSet::empty();
        ENDING.into_iter().for_each(|signal| set.add(signal));
        // Where it fails, the program that is started has to be ended otherwise.
        let _ = set.thread_unblock();
        act()
    };
    let joined = std::thread::scope(|scope| scope.spawn(open_to_signals).join());
    joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Signals that end a wait instead of the program.
#[derive(Debug)]
pub struct Waiting {
    signals: SignalFd,
}

impl Waiting {
    /// From now on signals end waits; those that stop the program only where there is a terminal
    /// to be put in order before.
    pub fn new(is_terminal: bool) -> Result<Self, Failure> {
        let mut set = SigSet::empty();
        let always = ENDING;
        let on_terminal = [Signal::SIGWINCH, Signal::SIGTSTP];
        always
            .into_iter()
            .chain(on_terminal.into_iter().filter(|_| is_terminal))
            .for_each(|signal| set.add(signal));
        let cannot = "cannot wait for signals";
        set.thread_block().context(cannot)?;
        let signals = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC);
        Ok(Self { signals: signals.context(cannot)? })
    }

    /// Waits until a moment or a signal.
    pub fn until(&self, end: Instant) -> Result<Wake, Failure> {
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let mut ready = [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
            match poll(&mut ready, timeout(left)) {
                Ok(0) if left.is_zero() => return Ok(Wake::Time),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(Failure::new(format_args!("cannot wait: {error}"))),
            }
            if let Ok(Some(signal)) = self.signals.read_signal() {
                return Ok(meaning(signal.ssi_signo));
            }
        }
    }
}

/// In whole milliseconds, rounded up so that waiting does not become a loop.
fn timeout(left: Duration) -> PollTimeout {
    let milliseconds = left.as_nanos().div_ceil(1_000_000);
    PollTimeout::try_from(milliseconds).unwrap_or(PollTimeout::MAX)
}

fn meaning(signal: u32) -> Wake {
    match i32::try_from(signal).ok().and_then(|number| Signal::try_from(number).ok()) {
        Some(Signal::SIGWINCH) => Wake::Resized,
        Some(Signal::SIGTSTP) => Wake::Suspended,
        _ => Wake::Ended,
    }
}

/// Stops this program until it is told to go on, as the signal would have done.
pub fn suspend() {
    // It cannot fail for a signal that exists.
    let _ = raise(Signal::SIGSTOP);
}
