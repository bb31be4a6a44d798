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
    /// The process that gets the signals; nothing once all children have ended.
    helper: Option<i32>,
    /// The process that ends when it is time to tell of the children; nothing once it has.
    timer: Option<i32>,
    /// Whether the children have got a signal.
    is_asked: bool,
}

impl Outlasting {
    /// The program has ended before its children. Without a helper, as where there may be no more processes, the run ends
    /// with the last of them.
    pub(super) fn begin(tracer: &Tracer, tell: Tell<'_>) -> Self {
        let timer = start_alarm(Some(UNTOLD)).ok();
        Self { helper: new_helper(tracer, tell), timer, is_asked: false }
    }

    /// The processes that are no children of the program.
    pub(super) fn helpers(&self) -> impl Iterator<Item = i32> {
        self.helper.into_iter().chain(self.timer)
    }

    /// One of these processes has ended.
    pub(super) fn helper_ended(&mut self, tid: i32, stop: Stop, tracer: &Tracer, tell: Tell<'_>) {
        let left = tracer.processes();
        if self.timer == Some(tid) {
            self.timer = None;
            if !tracer.is_done() {
                tell(Progress::GoesOn(&left));
            }
            return;
        }
        self.helper = None;
        if tracer.is_done() {
            return;
        }
        if let Stop::Killed(signal) = stop {
            left.iter().for_each(|&pid| end(pid, signal, self.is_asked));
            self.is_asked = true;
        }
        self.helper = new_helper(tracer, tell);
    }
}

/// Starts a process that gets the signals from now on.
fn new_helper(tracer: &Tracer, tell: Tell<'_>) -> Option<i32> {
    let helper = start_alarm(None).ok()?;
    // The signals for a process that was attached to reach another helper already.
    if tracer.attached.is_none() {
        tell(Progress::HasEnded(helper));
    }
    Some(helper)
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
