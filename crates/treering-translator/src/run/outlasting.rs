//! Children that are counted and go on when the program has ended.
//!
//! They cannot be let go: the kernel would refuse the calls that the tracer has to see. A signal ends them instead, which
//! ends a helper process first: [`wait`](crate::sys::wait) reports its end, and by which signal.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use treering_proc::status::has_signal;

use crate::run::{Progress, Tell};
use crate::sys::Stop;
use crate::tracer::launch::start_alarm;
use crate::tracer::state::Tracer;

/// How long children may go on before that is told: those of most programs end at once.
const UNTOLD: Duration = Duration::from_secs(1);

/// Children that have outlasted the program.
pub(super) struct Outlasting {
    /// The process that gets the signals.
    pub(super) helper: i32,
    /// Whether the children have got one.
    is_asked: bool,
}

impl Outlasting {
    /// The program has ended before its children. Without a helper, as where there may be no more processes, the run ends
    /// with the last of them.
    pub(super) fn begin(tracer: &Tracer, tell: Tell<'_>) -> Option<Self> {
        Self { helper: 0, is_asked: false }.with_helper(Some(UNTOLD), tracer, tell)
    }

    /// The helper has ended: by a signal, or because it is time to tell.
    pub(super) fn helper_ended(mut self, stop: Stop, tracer: &Tracer, tell: Tell<'_>) -> Option<Self> {
        if tracer.is_done() {
            return None;
        }
        let left = tracer.processes();
        match stop {
            Stop::Killed(signal) => {
                left.iter().for_each(|&pid| end(pid, signal, self.is_asked));
                self.is_asked = true;
            }
            _ => tell(Progress::GoesOn(&left)),
        }
        self.with_helper(None, tracer, tell)
    }

    fn with_helper(self, after: Option<Duration>, tracer: &Tracer, tell: Tell<'_>) -> Option<Self> {
        let helper = start_alarm(after).ok()?;
        // The signals for a process that was attached to reach another helper already.
        if tracer.attached.is_none() {
            tell(Progress::HasEnded(helper));
        }
        Some(Self { helper, ..self })
    }
}

/// Passes a signal on to a process. A shell has its background jobs ignore SIGINT.
fn end(pid: i32, signal: i32, is_asked: bool) {
    let signal = match Signal::try_from(signal) {
        _ if is_asked => Signal::SIGKILL,
        Ok(signal) if !has_signal(pid, "SigIgn", signal as i32) => signal,
        _ => Signal::SIGTERM,
    };
    // A process that has ended needs none.
    let _ = kill(Pid::from_raw(pid), signal);
}
