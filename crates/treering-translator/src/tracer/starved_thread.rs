//! Threads that execute nothing because signals stop them faster than the tracer can resume them.
//!
//! The kernel stops a traced thread for each signal, also for one that is merged with a waiting one. A timer whose
//! interval is shorter than such a stop takes would have the thread stop for ever. So the signal is blocked until the
//! waiting one is due, or until the thread stops for another reason: it makes no system call that would tell, inherit or
//! restore the changed mask.

use std::io;
use std::time::{Duration, Instant};

use crate::sys::{self, Stop};
use crate::tracer::state::Tracer;

/// The longest time for which other threads' stops wait.
const MOST: Duration = Duration::from_millis(5);

impl Tracer {
    /// Resumes a thread whose signal was merged with a waiting one. If that happens often, the thread runs for a while
    /// with the signal blocked.
    pub(crate) fn resume_merged(&mut self, tid: i32, signal: i32) -> io::Result<()> {
        match self.threads.get_mut(&tid).and_then(|thread| thread.throttle.starved_until()) {
            Some(until) => run_without(tid, signal, until.min(Instant::now() + MOST)),
            None => sys::resume(tid, 0),
        }
    }
}

/// Runs a thread with a signal blocked. Its next stop is handed to the event loop.
fn run_without(tid: i32, signal: i32, until: Instant) -> io::Result<()> {
    const PAUSE: Duration = Duration::from_micros(50);
    let mask = sys::signal_mask(tid)?;
    sys::set_signal_mask(tid, mask | 1 << (signal - 1))?;
    sys::resume_to_call(tid, 0)?;
    let stop = loop {
        match sys::stop_of(tid) {
            Ok(None) if Instant::now() < until => std::thread::sleep(PAUSE),
            Ok(None) => {
                sys::interrupt(tid)?;
                break sys::wait(tid)?.map(|(_, stop)| stop);
            }
            stop => break stop.ok().flatten(),
        }
    };
    let Some(stop) = stop else { return Ok(()) };
    if !matches!(stop, Stop::Exited(_) | Stop::Killed(_)) {
        sys::set_signal_mask(tid, mask)?;
    }
    sys::tell_again(tid, stop);
    Ok(())
}
