//! Keeps the tracer and a thread that asks it again and again on one processor.
//!
//! A stop wakes the tracer and puts the thread to sleep, and the answer does the opposite. On two processors, each
//! wakes the other one from idle. In a virtual machine this costs more than all other work at a stop: 30 to 100 µs,
//! against 3 for a switch between two threads on one processor. So both are bound to one processor while the thread
//! asks often, as it does when it runs code for the first time.
//!
//! The program does not notice: system calls that read or set the processors of a thread come after
//! [`Affinity::part`], and children begin with the affinity that their parent had.

use std::time::{Duration, Instant};

use crate::sys::{self, Processors, Ticks};

/// A thread that stops so often without another one between is bound ...
const STREAK: u32 = 8;
/// ... if that took no longer than this.
const SHORT: Duration = Duration::from_millis(8);
/// A bound thread is looked at so often ...
const PERIOD: Duration = Duration::from_millis(4);
/// ... and let go if it has stopped less often since.
const FEWEST: u32 = 8;

/// Which thread is bound, if one is.
#[derive(Debug, Default)]
pub(crate) struct Affinity {
    pair: Option<Pair>,
    /// What interrupts the tracer's waiting, so that it lets a thread go that does not stop any more.
    ticks: Option<Ticks>,
    /// The thread that stopped last, how often it did without another one between, and since when.
    streak: Option<(i32, u32, Instant)>,
    /// Threads cannot be bound here.
    denied: bool,
}

/// A thread and the tracer, bound to one processor.
#[derive(Debug)]
struct Pair {
    thread: i32,
    tracer: i32,
    /// The processor that both are bound to.
    both: Processors,
    /// Where the thread may run otherwise.
    of_thread: Processors,
    /// Where the tracer may run otherwise.
    of_tracer: Processors,
    /// How often the thread has stopped since it was looked at, and when that was.
    stops: u32,
    since: Instant,
}

impl Affinity {
    /// A thread has stopped.
    pub(crate) fn stopped(&mut self, thread: i32) {
        if let Some(pair) = &mut self.pair {
            if pair.thread == thread {
                pair.stops += 1;
                return;
            }
            self.let_go();
        }
        match &mut self.streak {
            Some((last, stops, since)) if *last == thread => {
                *stops += 1;
                if *stops < STREAK {
                    return;
                }
                let is_short = since.elapsed() < SHORT;
                self.streak = None;
                if is_short {
                    self.pair(thread);
                }
            }
            _ => self.streak = Some((thread, 1, Instant::now())),
        }
    }

    /// Binds a stopped thread and the tracer, which is the caller, to the caller's processor.
    pub(crate) fn pair(&mut self, thread: i32) {
        if self.denied || self.pair.as_ref().is_some_and(|pair| pair.thread == thread) {
            return;
        }
        self.let_go();
        match Pair::bind(thread) {
            Ok(pair) => self.pair = pair,
            // One that is gone meanwhile says nothing of others.
            Err(error) => self.denied = error.raw_os_error() != Some(libc::ESRCH),
        }
        if self.pair.is_some() && self.start_ticks().is_err() {
            self.denied = true;
            self.part();
        }
    }

    /// Gives the bound thread and the tracer back what they had.
    pub(crate) fn part(&mut self) {
        self.let_go();
        self.streak = None;
    }

    /// A thread has made another one, which begins where its parent was bound.
    pub(crate) fn born(&mut self, parent: i32, child: i32) {
        if let Some(pair) = self.pair.as_ref().filter(|pair| pair.thread == parent) {
            // If it is gone already, it needs nothing.
            let _ = pair.of_thread.set(child);
            self.let_go();
        }
    }

    /// Nothing has stopped for a while: lets a thread go that has hardly stopped.
    pub(crate) fn look(&mut self) {
        if let Some(pair) = self.pair.as_mut().filter(|pair| pair.since.elapsed() >= PERIOD) {
            if pair.stops < FEWEST {
                return self.let_go();
            }
            (pair.stops, pair.since) = (0, Instant::now());
        }
    }

    fn start_ticks(&mut self) -> std::io::Result<()> {
        if self.ticks.is_none() {
            self.ticks = Some(Ticks::new()?);
        }
        self.ticks.as_ref().map_or(Ok(()), |ticks| ticks.start(PERIOD))
    }

    fn let_go(&mut self) {
        let Some(pair) = self.pair.take() else { return };
        self.ticks.iter().for_each(Ticks::stop);
        // Somebody else may have had it run elsewhere meanwhile; if it is gone, it needs nothing.
        if Processors::of(pair.thread).is_ok_and(|now| now == pair.both) {
            let _ = pair.of_thread.set(pair.thread);
        }
        let _ = pair.of_tracer.set(pair.tracer);
    }
}

impl Drop for Affinity {
    fn drop(&mut self) {
        self.let_go();
    }
}

impl Pair {
    /// Nothing if the thread may not run where the tracer is.
    fn bind(thread: i32) -> std::io::Result<Option<Self>> {
        let tracer = sys::own_thread();
        let (of_thread, of_tracer) = (Processors::of(thread)?, Processors::of(tracer)?);
        let here = sys::current_processor();
        let Some(both) = Processors::only(here).filter(|_| of_thread.contains(here)) else { return Ok(None) };
        both.set(tracer)?;
        if let Err(error) = both.set(thread) {
            let _ = of_tracer.set(tracer);
            return Err(error);
        }
        Ok(Some(Self { thread, tracer, both, of_thread, of_tracer, stops: FEWEST, since: Instant::now() }))
    }
}
