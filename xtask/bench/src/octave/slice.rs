//! Slices of work, each compared with the ones before and behind it.
//!
//! The speed of a machine moves by more than what is measured, but little within some hundredths of
//! a second. So a slice with profiling stands between two of the same work without, and what counts
//! is its ratio to their mean; the median over hundreds of such pairs is not moved by those during
//! which the speed changed.

use std::collections::BTreeMap;

/// The times of a slice, and its calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Slice {
    cpu_s: f64,
    calls: f64,
    wall_s: f64,
    self_s: f64,
}

/// A slice with profiling, and the mean of its neighbours without.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
    /// Processor time.
    pub(super) cpu_s: f64,
    /// The same of the neighbours.
    pub(super) base_cpu_s: f64,
    /// Calls recorded.
    pub(super) calls: f64,
    /// By the clock.
    pub(super) wall_s: f64,
    /// The same of the neighbours.
    pub(super) base_wall_s: f64,
    /// The sum of the self times recorded.
    pub(super) self_s: f64,
}

impl Pair {
    /// Processor time added, as a share of that without profiling.
    pub(super) fn added(&self) -> f64 {
        self.cpu_s / self.base_cpu_s - 1.0
    }

    /// The same in seconds.
    pub(super) fn added_s(&self) -> f64 {
        self.cpu_s - self.base_cpu_s
    }
}

/// All pairs by workload and mode.
#[derive(Debug, Default)]
pub(super) struct Slices {
    pairs: BTreeMap<(String, usize), Vec<Pair>>,
    rounds: usize,
}

impl Slices {
    /// Reads the output of the script. Slices of mode 0 are without profiling.
    pub(super) fn read(text: &str) -> Self {
        let mut slices = Self::default();
        let mut lines: Vec<(usize, &str, Slice)> = Vec::new();
        for line in text.lines() {
            if line.starts_with("round ") {
                slices.add_round(&lines);
                lines.clear();
            } else if let Some(slice) = read_line(line) {
                lines.push(slice);
            }
        }
        slices
    }

    fn add_round(&mut self, lines: &[(usize, &str, Slice)]) {
        for three in lines.windows(3) {
            let [(before_mode, before_name, before), (mode, name, slice), (after_mode, after_name, after)] =
                three
            else {
                continue;
            };
            if *mode == 0
                || (*before_mode, *after_mode) != (0, 0)
                || before_name != name
                || after_name != name
            {
                continue;
            }
            let pair = Pair {
                cpu_s: slice.cpu_s,
                base_cpu_s: (before.cpu_s + after.cpu_s) / 2.0,
                calls: slice.calls,
                wall_s: slice.wall_s,
                base_wall_s: (before.wall_s + after.wall_s) / 2.0,
                self_s: slice.self_s,
            };
            self.pairs.entry(((*name).to_owned(), *mode)).or_default().push(pair);
        }
        self.rounds += 1;
    }

    /// How many rounds were whole.
    pub(super) fn rounds(&self) -> usize {
        self.rounds
    }

    /// All pairs by workload and mode.
    pub(super) fn pairs(&self) -> &BTreeMap<(String, usize), Vec<Pair>> {
        &self.pairs
    }

    /// The pairs of a workload in a mode.
    pub(super) fn of(&self, workload: &str, mode: usize) -> &[Pair] {
        self.pairs.get(&(workload.to_owned(), mode)).map_or(&[], Vec::as_slice)
    }
}

fn read_line(line: &str) -> Option<(usize, &str, Slice)> {
    let mut words = line.split_whitespace();
    let (mode, workload) = (words.next()?.parse().ok()?, words.next()?);
    let mut number = || words.next()?.parse::<f64>().ok();
    let (cpu_s, calls, wall_s, self_s) = (number()?, number()?, number()?, number()?);
    (cpu_s > 0.0 && wall_s > 0.0).then_some((mode, workload, Slice { cpu_s, calls, wall_s, self_s }))
}

/// A median with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    pub(super) median: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Estimate {
    /// The interval between the two values whose ranks hold the true median in 95 of 100 cases,
    /// whatever the distribution: n/2 -+ 0.98 sqrt(n) (Conover, "Practical Nonparametric
    /// Statistics", 1999, 3.2). Nothing for no values.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let half = sorted.len() as f64 / 2.0;
        let reach = 0.98 * (sorted.len() as f64).sqrt();
        let (low, high) = ((half - reach).floor().max(0.0) as usize, (half + reach).ceil() as usize);
        let median = (sorted[last / 2] + sorted[sorted.len() / 2]) / 2.0;
        Some(Self { median, low: sorted[low.min(last)], high: sorted[high.min(last)] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_compared_with_its_neighbours_of_the_same_work() {
        let slices = Slices::read(
            "0 loop 1.0 0 1.0 0\n2 loop 2.2 10 2.4 1.5\n0 loop 3.0 0 3.0 0\n3 fib 1 1 1 1\n0 fib 1 0 1 0\nround 1\n\
             0 loop 1.0 0 1.0 0\n2 loop 1.1 10 1.0 1.0\n",
        );
        assert_eq!((slices.rounds(), slices.pairs().len()), (1, 1));
        let [pair] = slices.of("loop", 2) else { panic!("{slices:?}") };
        assert!((pair.added() - 0.1).abs() < 1e-12 && (pair.added_s() - 0.2).abs() < 1e-12);
        assert_eq!((pair.calls, pair.self_s, pair.base_wall_s), (10.0, 1.5, 2.0));
    }

    #[test]
    fn the_interval_holds_the_median_in_95_of_100_cases() {
        let mut state = 7_u64;
        let mut number = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / f64::from(1_u32 << 31)
        };
        let mut held = 0;
        for _ in 0..2000 {
            let values: Vec<f64> = (0..100).map(|_| number()).collect();
            let found = Estimate::of(values.into_iter()).expect("values");
            held += u32::from(found.low <= 0.5 && 0.5 <= found.high);
        }
        assert!((1860..=1980).contains(&held), "{held} of 2000");
        assert_eq!(Estimate::of(std::iter::empty()), None);
    }
}
