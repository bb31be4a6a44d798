//! Runs what a benchmark measures.

use std::hint::black_box;

use nix::time::{ClockId, clock_gettime};
use treering_runtime::counting;

/// Runs what a benchmark measures, as often as the harness wants.
#[derive(Debug)]
pub struct Bencher {
    calls: u64,
    purpose: Purpose,
    /// The processor time of all calls, once they have run.
    nanoseconds: Option<f64>,
}

/// Why a benchmark runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To be timed.
    Time,
    /// To be counted: one call before it warms up.
    Count,
}

impl Bencher {
    pub(crate) fn new(calls: u64, purpose: Purpose) -> Self {
        Self { calls, purpose, nanoseconds: None }
    }

    /// Calls `work`. Its result is dropped with the time of the call, and no compiler may leave it out.
    pub fn iter<T>(&mut self, mut work: impl FnMut() -> T) {
        if self.purpose == Purpose::Count {
            drop(black_box(work()));
        }
        let start = processor_time();
        counting::start();
        for _ in 0..self.calls {
            drop(black_box(work()));
        }
        counting::stop();
        self.nanoseconds = Some(processor_time() - start);
    }

    /// Calls `work`, each time with an input of its own that `prepare` makes. Neither making inputs nor dropping results is
    /// measured.
    pub fn iter_with<I, T>(&mut self, mut prepare: impl FnMut() -> I, mut work: impl FnMut(I) -> T) {
        /// As many inputs are there at once.
        const BATCH: u64 = 1024;
        if self.purpose == Purpose::Count {
            drop(black_box(work(prepare())));
        }
        let (mut left, mut all) = (self.calls, 0.0);
        while left > 0 {
            let inputs: Vec<I> = (0..left.min(BATCH)).map(|_| prepare()).collect();
            let mut results = Vec::with_capacity(inputs.len());
            let start = processor_time();
            counting::start();
            for input in inputs {
                results.push(black_box(work(black_box(input))));
            }
            counting::stop();
            all += processor_time() - start;
            left -= left.min(BATCH);
        }
        self.nanoseconds = Some(all);
    }

    /// The processor time of a call in nanoseconds; nothing where the benchmark measured nothing.
    pub(crate) fn nanoseconds_a_call(&self) -> Option<f64> {
        self.nanoseconds.map(|all| all / self.calls.max(1) as f64)
    }
}

/// The processor time of all threads of this process so far, in nanoseconds.
fn processor_time() -> f64 {
    // Linux has this clock always.
    let now = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("the process has a clock");
    now.tv_sec() as f64 * 1e9 + now.tv_nsec() as f64
}
