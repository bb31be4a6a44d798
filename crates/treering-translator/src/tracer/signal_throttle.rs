//! Throttles signals, so that a thread makes progress however fast they come.
//!
//! A counted program handles a signal more slowly: the tracer stops the thread four times for each. If the next
//! signal of a timer has come by then, the kernel would deliver it before the thread has executed anything, and so on
//! for ever. So after a handler, the thread runs for as long as the handler took before it gets the next signal that
//! no sender waits for. Meanwhile one signal of each kind waits, and others of its kind are merged with it, as the
//! kernel merges pending signals (`signal(7)`); real-time signals all wait. A signal without a handler never waits. A
//! waiting signal whose handler has been removed when it is due is dropped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Instant;

use crate::sys::remote_syscall::HeldSignal;
use crate::sys::{self, Origin, SignalInfo};
use treering_proc::status;

/// The first real-time signal: these are queued, not merged. The C library keeps two of them for itself.
pub(crate) const FIRST_REAL_TIME: i32 = 32;

/// When a thread may get the next signal, and the signals that wait for that.
#[derive(Debug, Default)]
pub(crate) struct SignalThrottle {
    begun: Option<Instant>,
    until: Option<Instant>,
    waiting: Vec<Waiting>,
    /// How many signals were merged since a handler began.
    merged: u32,
}

#[derive(Debug)]
struct Waiting {
    held: HeldSignal,
    due: Instant,
}

/// The fate of a signal that has come.
#[derive(Debug)]
pub(crate) enum Admission {
    /// It is delivered.
    Now,
    /// It is delivered, and the handler gets this information.
    As(SignalInfo),
    /// It waits until this time, and is then sent again.
    At(Instant),
    /// Another signal of its kind waits already.
    Merged,
}

impl SignalThrottle {
    /// The tracer begins to deliver a signal.
    pub(crate) fn begin(&mut self) {
        self.begun = Some(Instant::now());
        self.merged = 0;
    }

    /// The signal's handler begins, and may never return.
    pub(crate) fn enter(&mut self) {
        if let Some(begun) = self.begun {
            let now = Instant::now();
            self.until = Some(now + (now - begun));
        }
    }

    /// The signal's handler has returned.
    pub(crate) fn end(&mut self) {
        self.enter();
        self.begun = None;
    }

    /// The fate of a signal that we sent again; nothing for any other signal.
    pub(crate) fn again(&mut self, signal: i32, info: &SignalInfo) -> Option<Admission> {
        info.is_sent_again().then(|| self.take(signal).map_or(Admission::Merged, Admission::As))
    }

    /// The fate of a signal for a thread of a process.
    pub(crate) fn admit(&mut self, held: HeldSignal, pid: i32) -> Admission {
        let (now, signal) = (Instant::now(), held.signal);
        let until = self.until.filter(|&until| now < until);
        let same = self.waiting.iter().find(|waiting| waiting.held.signal == signal);
        let same = same.filter(|_| signal < FIRST_REAL_TIME).map(|waiting| waiting.due);
        if until.is_none() && same.is_none() {
            return Admission::Now;
        }
        match held.info.origin() {
            Origin::Outside => {}
            // A process that signals itself may rely on the signal having come.
            Origin::Process(sender) if sender != pid && sender != own_number(pid) => {}
            Origin::Process(_) | Origin::Thread => return Admission::Now,
        }
        match (same, until) {
            (Some(due), _) => {
                let overdue = if due <= now { self.take(signal) } else { None };
                overdue.map_or(Admission::Merged, Admission::As)
            }
            (None, Some(due)) => {
                self.waiting.push(Waiting { held, due });
                Admission::At(due)
            }
            (None, None) => Admission::Now,
        }
    }

    /// A signal was merged. If signals may stop the thread so often that it executes nothing: the time up to which it is to
    /// run without them.
    pub(crate) fn starved_until(&mut self) -> Option<Instant> {
        /// A handler takes four stops, and the thread is to run for that long.
        const FEW: u32 = 2;
        self.merged += 1;
        self.until.filter(|&until| self.merged >= FEW && Instant::now() < until)
    }

    /// Takes over the signals that wait for a thread that has ended. Returns them, with the times at which
    /// they are to be sent to this thread.
    pub(crate) fn inherit(&mut self, from: Self) -> Vec<(i32, Instant)> {
        let sent = from.waiting.iter().map(|waiting| (waiting.held.signal, waiting.due)).collect();
        self.waiting.extend(from.waiting);
        sent
    }

    /// The signals that wait.
    pub(crate) fn into_waiting(self) -> impl Iterator<Item = HeldSignal> {
        self.waiting.into_iter().map(|waiting| waiting.held)
    }

    fn take(&mut self, signal: i32) -> Option<SignalInfo> {
        let at = self.waiting.iter().position(|waiting| waiting.held.signal == signal)?;
        Some(self.waiting.remove(at).held.info)
    }
}

/// The number of a process in its own namespace, which may differ from ours.
fn own_number(pid: i32) -> i32 {
    status::inner_process(pid).map_or(pid, u32::cast_signed)
}

/// A thread of ours that sends signals again when they are due.
#[derive(Debug, Default)]
pub(crate) struct DelayedSignals {
    requests: Option<mpsc::Sender<Request>>,
    cancelled: Arc<AtomicBool>,
}

/// The process, the thread, the signal, and the time to send it.
type Request = (i32, i32, i32, Instant);

impl DelayedSignals {
    /// Schedules a signal. Returns whether it will be sent.
    pub(crate) fn send(&mut self, request: Request) -> bool {
        if self.requests.is_none() {
            let (sender, requests) = mpsc::channel();
            let cancelled = Arc::clone(&self.cancelled);
            let body = move || requests.iter().for_each(|request| send_when_due(request, &cancelled));
            self.requests = std::thread::Builder::new().spawn(body).is_ok().then_some(sender);
        }
        self.requests.as_ref().is_some_and(|sender| sender.send(request).is_ok())
    }

    /// Cancels all scheduled signals.
    pub(crate) fn cancel(&mut self) {
        self.cancelled.store(true, Ordering::SeqCst);
    }
}

fn send_when_due((pid, tid, signal, due): Request, cancelled: &AtomicBool) {
    std::thread::sleep(due.saturating_duration_since(Instant::now()));
    if cancelled.load(Ordering::SeqCst) {
        return;
    }
    sys::send_again(pid, tid, signal);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const PID: i32 = 77;

    fn timer(signal: i32) -> HeldSignal {
        HeldSignal { signal, info: SignalInfo::of_kernel() }
    }

    fn resting() -> SignalThrottle {
        let begun = Instant::now().checked_sub(Duration::from_secs(100));
        let mut rest = SignalThrottle { begun, ..SignalThrottle::default() };
        rest.end();
        rest
    }

    #[test]
    fn a_signal_waits_for_as_long_as_the_last_one_took() {
        let mut rest = resting();
        let Admission::At(due) = rest.admit(timer(libc::SIGALRM), PID) else { panic!("{rest:?}") };
        let wait = (due - Instant::now()).as_secs_f64();
        assert!((95.0..=101.0).contains(&wait), "{wait}");
        assert!(matches!(rest.admit(timer(libc::SIGALRM), PID), Admission::Merged));
        assert!(matches!(rest.admit(timer(libc::SIGPROF), PID), Admission::At(_)));
    }

    #[test]
    fn a_thread_that_merged_signals_stop_again_and_again_runs_without_them() {
        let mut rest = resting();
        assert_eq!(rest.starved_until(), None);
        assert_eq!(rest.starved_until(), rest.until);
        rest.begin();
        assert_eq!(rest.starved_until(), None);
    }

    #[test]
    fn signals_come_at_once_where_none_was_handled() {
        assert!(matches!(SignalThrottle::default().admit(timer(libc::SIGALRM), PID), Admission::Now));
    }

    #[test]
    fn a_fault_never_waits() {
        let fault = HeldSignal { signal: libc::SIGSEGV, info: SignalInfo::of_kernel().with_code(1) };
        assert!(matches!(resting().admit(fault, PID), Admission::Now));
    }

    #[test]
    fn signals_of_a_process_to_itself_never_wait() {
        let own = std::process::id().cast_signed();
        let sent = |to| {
            let info = SignalInfo::sent_again(libc::SIGALRM).with_code(libc::SI_USER).with_sender(own);
            resting().admit(HeldSignal { signal: libc::SIGALRM, info }, to)
        };
        assert!(matches!(sent(own), Admission::Now));
        assert!(matches!(sent(1), Admission::At(_)));
        assert_eq!(own_number(own), own);
    }

    #[test]
    fn signals_sent_again_are_delivered_once_with_their_first_data() {
        let mut rest = resting();
        let again = SignalInfo::sent_again(libc::SIGALRM);
        let first = HeldSignal { signal: libc::SIGALRM, info: SignalInfo::of_kernel().with_address(5) };
        assert!(matches!(rest.admit(first, PID), Admission::At(_)));
        let Some(Admission::As(info)) = rest.again(libc::SIGALRM, &again) else { panic!("{rest:?}") };
        assert_eq!(info.address(), 5);
        assert!(matches!(rest.again(libc::SIGALRM, &again), Some(Admission::Merged)));
        assert!(rest.again(libc::SIGALRM, &first.info).is_none());
    }

    #[test]
    fn real_time_signals_are_not_merged() {
        let mut rest = resting();
        let signal = libc::SIGRTMIN() + 2;
        assert!(matches!(rest.admit(timer(signal), PID), Admission::At(_)));
        assert!(matches!(rest.admit(timer(signal), PID), Admission::At(_)));
        assert_eq!(rest.waiting.len(), 2);
    }

    #[test]
    fn signals_waiting_for_a_thread_that_ends_go_to_another_thread() {
        let (mut ended, mut other) = (resting(), SignalThrottle::default());
        let Admission::At(due) = ended.admit(timer(libc::SIGTERM), PID) else { panic!("{ended:?}") };
        assert_eq!(other.inherit(ended), [(libc::SIGTERM, due)]);
        let again = SignalInfo::sent_again(libc::SIGTERM);
        assert!(matches!(other.again(libc::SIGTERM, &again), Some(Admission::As(_))));
    }

    #[test]
    fn one_that_is_overdue_comes_with_the_next() {
        let mut rest = resting();
        assert!(matches!(rest.admit(timer(libc::SIGALRM), PID), Admission::At(_)));
        rest.waiting[0].due = Instant::now();
        assert!(matches!(rest.admit(timer(libc::SIGALRM), PID), Admission::As(_)));
        assert!(rest.waiting.is_empty());
    }
}
