//! Times loops: the median over many batches that are too short to be interrupted often.
//!
//! A virtual processor may share its core with another machine's, and is half as fast while that one is busy; reading
//! the counter is not. So a probe before and behind each batch tells whether the core was shared, and batches on a
//! shared core are left out, unless nearly all are such.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// How many batches there are, and how long one takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Batches.
    pub(crate) batches: usize,
    /// Their length.
    pub(crate) batch: Duration,
}

/// The effort of a benchmark whose figures are used.
pub(crate) const FULL: Effort = Effort { batches: 1500, batch: Duration::from_micros(45) };

/// The effort that is enough to see that the benchmark runs.
pub(crate) const QUICK: Effort = Effort { batches: 60, batch: Duration::from_micros(45) };

/// How many turns the probe has: they take some 2 µs.
const PROBE: u64 = 8000;

/// How much longer than the shortest a probe may take beside a batch that counts.
const DISTURBED: f64 = 1.15;

/// How many times as many batches are made at most, to find enough that count.
const PATIENCE: usize = 4;

/// The cost of one turn of a loop, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Over all batches.
    pub(crate) median: f64,
    /// The batch that a twentieth is faster than.
    pub(crate) low: f64,
    /// The batch that a twentieth is slower than.
    pub(crate) high: f64,
}

impl Effort {
    /// The effort that the program's arguments ask for.
    pub(crate) fn from_arguments() -> Self {
        if std::env::args().any(|argument| argument == "--quick") { QUICK } else { FULL }
    }

    /// The cost of one turn of `run`, which makes as many turns as it is told.
    pub(crate) fn cost(self, mut run: impl FnMut(u64)) -> Cost {
        let turns = self.turns(&mut run);
        (0..20).for_each(|_| run(turns));
        Cost::of(self.undisturbed(|| {
            let start = Instant::now();
            run(black_box(turns));
            start.elapsed().as_nanos() as f64 / turns as f64
        }))
    }

    /// The results of the batches that ran while no other process took the core, or of all batches where
    /// that is hardly ever so.
    pub(crate) fn undisturbed<T: Copy>(self, mut batch: impl FnMut() -> T) -> Vec<T> {
        let mut batches: Vec<(f64, T)> = Vec::with_capacity(self.batches);
        loop {
            let before = probe();
            let result = batch();
            batches.push((before.max(probe()), result));
            if batches.len().is_multiple_of(self.batches) {
                let alone = undisturbed(&batches);
                if alone.len() >= self.batches || batches.len() == PATIENCE * self.batches {
                    return match alone.len() * 10 >= self.batches {
                        true => alone,
                        false => batches.into_iter().map(|(_, result)| result).collect(),
                    };
                }
            }
        }
    }

    /// How many turns fill a batch.
    fn turns(self, run: &mut impl FnMut(u64)) -> u64 {
        let mut turns = 16;
        loop {
            let best = (0..5).map(|_| {
                let start = Instant::now();
                run(black_box(turns));
                start.elapsed()
            });
            let taken = best.min().unwrap_or_default().max(Duration::from_nanos(1));
            if taken * 2 > self.batch || turns > 1 << 24 {
                let wanted = turns as f64 * self.batch.as_secs_f64() / taken.as_secs_f64();
                return (wanted as u64).max(1);
            }
            turns *= 2;
        }
    }

    /// The same in several threads at once; the mean of what each finds.
    #[allow(dead_code, reason = "the peers do not use it")]
    pub(crate) fn cost_in_threads<R: FnMut(u64)>(
        self,
        threads: usize,
        make: impl Fn(usize) -> R + Sync,
    ) -> Cost {
        let barrier = std::sync::Barrier::new(threads);
        let costs: Vec<Cost> = std::thread::scope(|scope| {
            let start = |number| {
                let (barrier, make) = (&barrier, &make);
                scope.spawn(move || {
                    let run = make(number);
                    barrier.wait();
                    self.cost(run)
                })
            };
            let running: Vec<_> = (0..threads).map(start).collect();
            running.into_iter().map(|thread| thread.join().expect("the thread")).collect()
        });
        let mean = |of: fn(&Cost) -> f64| costs.iter().map(of).sum::<f64>() / threads as f64;
        Cost { median: mean(|cost| cost.median), low: mean(|cost| cost.low), high: mean(|cost| cost.high) }
    }
}

/// A loop that takes as long as the core needs for it, in nanoseconds.
fn probe() -> f64 {
    let start = Instant::now();
    for turn in 0..PROBE {
        black_box(turn);
    }
    start.elapsed().as_nanos() as f64
}

/// Waits until the core is the program's own, for a minute at most; tells whether it is.
#[allow(dead_code, reason = "the peers do not use it")]
pub(crate) fn wait_for_the_core() -> bool {
    let is_own = || (0..200).all(|_| probe() <= chain() * DISTURBED);
    let start = Instant::now();
    while !is_own() {
        if start.elapsed() > Duration::from_secs(60) {
            return false;
        }
    }
    true
}

/// As many cycles as the probe takes on a core of its own, of work that is no slower on a shared one, as
/// each step waits for the last.
#[allow(dead_code, reason = "the peers do not use it")]
fn chain() -> f64 {
    let start = Instant::now();
    let mut value = black_box(1_u64);
    for turn in 0..PROBE / 8 {
        for _ in 0..4 {
            value = (value ^ turn).wrapping_add(0x5DEE_CE66);
        }
    }
    black_box(value);
    start.elapsed().as_nanos() as f64
}

/// The results of those batches beside which no probe took longer than the shortest.
fn undisturbed<T: Copy>(batches: &[(f64, T)]) -> Vec<T> {
    let shortest = batches.iter().map(|(probe, _)| *probe).fold(f64::INFINITY, f64::min);
    let counts = |(probe, _): &&(f64, T)| *probe <= shortest * DISTURBED;
    batches.iter().filter(counts).map(|(_, result)| *result).collect()
}

impl Cost {
    fn of(mut batches: Vec<f64>) -> Self {
        batches.sort_by(f64::total_cmp);
        let at = |part: usize| batches.get(batches.len() * part / 20).copied().unwrap_or(f64::NAN);
        Self { median: at(10), low: at(1), high: at(19) }
    }

    /// As one line that [`parse`](Self::parse) reads.
    #[allow(dead_code, reason = "the peers use it")]
    pub(crate) fn line(&self, name: &str) -> String {
        format!("{name}\t{}\t{}\t{}", self.median, self.low, self.high)
    }

    /// A line of another program.
    #[allow(dead_code, reason = "the peers do not use it")]
    pub(crate) fn parse(line: &str) -> Option<(String, Self)> {
        let mut words = line.split('\t');
        let name = words.next()?.to_owned();
        let mut number = || words.next()?.trim().parse().ok();
        Some((name, Self { median: number()?, low: number()?, high: number()? }))
    }
}
