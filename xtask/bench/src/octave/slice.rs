//! Slices of work, each compared with the ones before and behind it.
//!
//! The speed of a machine moves by more than what is measured, but little within some hundredths of
//! a second. So a slice with profiling stands between two of the same work without, and what counts
//! is its ratio to their mean; the median over hundreds of such pairs is not moved by those during
//! which the speed changed.

use std::collections::BTreeMap;

use crate::measure::runs;

/// A slice with profiling, and the mean of its neighbours without.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    /// Processor time.
    cpu_s: f64,
    /// The same of the neighbours.
    base_cpu_s: f64,
    /// Calls recorded.
    pub(super) calls: f64,
    /// By the clock, without profiling.
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
#[derive(Debug)]
pub(super) struct Slices(pub(super) BTreeMap<(String, usize), Vec<Pair>>);

impl Slices {
    /// Reads the output of the script.
    pub(super) fn read(printed: &str) -> Result<Self, String> {
        let mut slices = BTreeMap::<_, Vec<Pair>>::new();
        for (workload, mode, [cpu_s, base_cpu_s, calls, base_wall_s, self_s]) in runs(printed)? {
            let mode = mode.parse().map_err(|_| format!("{mode} is no number of a mode"))?;
            let pair = Pair { cpu_s, base_cpu_s, calls, base_wall_s, self_s };
            slices.entry((workload.to_owned(), mode)).or_default().push(pair);
        }
        Ok(Self(slices))
    }

    /// The pairs of a workload in a mode.
    pub(super) fn of(&self, workload: &str, mode: usize) -> &[Pair] {
        self.0.get(&(workload.to_owned(), mode)).map_or(&[], Vec::as_slice)
    }
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
