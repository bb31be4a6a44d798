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

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;

use crate::sys::{self, Ticks};

/// After this many stops of one thread in a row, the thread is bound ...
const STREAK: u32 = 8;
/// ... if all of them came within this time.
const SHORT: Duration = Duration::from_millis(8);
/// How often the stops of a bound thread are checked ...
const PERIOD: Duration = Duration::from_millis(4);
/// ... and the number of stops below which it is released.
const FEWEST: u32 = 8;

/// Keeps track of the bound thread, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Affinity {
    pair: Option<Pair>,
    /// Interrupts the tracer's waiting, so that it releases a thread that no longer stops.
    ticks: Option<Ticks>,
    /// The thread that stopped last, how many times in a row, and since when.
    streak: Option<(i32, u32, Instant)>,
    /// The kernel refused to bind a thread, so none is bound any more.
    denied: bool,
}

/// A thread and the tracer, bound to one processor.
#[derive(Debug)]
struct Pair {
    thread: i32,
    tracer: i32,
    /// The processor that both are bound to.
    both: CpuSet,
    /// The processors that the thread may use when it is not bound.
    of_thread: CpuSet,
    /// The processors that the tracer may use when it is not bound.
    of_tracer: CpuSet,
    /// The thread's stops since the last check, and when that check was.
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
            // A thread that has ended meanwhile says nothing about other threads.
            Err(error) => self.denied = error != Errno::ESRCH,
        }
        if self.pair.is_some() && self.start_ticks().is_err() {
            self.denied = true;
            self.part();
        }
    }

    /// Restores the processors of the bound thread and of the tracer.
    pub(crate) fn part(&mut self) {
        self.let_go();
        self.streak = None;
    }

    /// Gives a new thread its parent's own processors: it begins with those that its parent was bound to.
    pub(crate) fn born(&mut self, parent: i32, child: i32) {
        if let Some(pair) = self.pair.as_ref().filter(|pair| pair.thread == parent) {
            // A child that has already ended needs none.
            let _ = set_processors(child, &pair.of_thread);
            self.let_go();
        }
    }

    /// The timer has fired: releases the bound thread if it has hardly stopped since the last check.
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
        // Another process may have moved the thread meanwhile, and that choice stays. A thread that has ended
        // needs none.
        if processors(pair.thread).is_ok_and(|now| now == pair.both) {
            let _ = set_processors(pair.thread, &pair.of_thread);
        }
        let _ = set_processors(pair.tracer, &pair.of_tracer);
    }
}

impl Drop for Affinity {
    fn drop(&mut self) {
        self.let_go();
    }
}

impl Pair {
    /// Nothing if the thread may not run on the tracer's processor.
    fn bind(thread: i32) -> nix::Result<Option<Self>> {
        let tracer = sys::own_thread();
        let (of_thread, of_tracer) = (processors(thread)?, processors(tracer)?);
        let here = sched_getcpu()?;
        if of_thread.is_set(here) != Ok(true) {
            return Ok(None);
        }
        let mut both = CpuSet::new();
        both.set(here)?;
        set_processors(tracer, &both)?;
        if let Err(error) = set_processors(thread, &both) {
            let _ = set_processors(tracer, &of_tracer);
            return Err(error);
        }
        Ok(Some(Self { thread, tracer, both, of_thread, of_tracer, stops: FEWEST, since: Instant::now() }))
    }
}

/// The processors that a thread may run on.
fn processors(thread: i32) -> nix::Result<CpuSet> {
    sched_getaffinity(Pid::from_raw(thread))
}

/// Restricts a thread to these processors.
fn set_processors(thread: i32, processors: &CpuSet) -> nix::Result<()> {
    sched_setaffinity(Pid::from_raw(thread), processors)
}
