//! Statistics of single calls.

use treering_runtime::events::Measured;

/// Statistics of the times of single activations, with all that they called; in nanoseconds.
///
/// Recursive activations within others are among them. Those still open are not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Statistics {
    /// How many activations were timed.
    pub(crate) timed: u64,
    least_ns: u64,
    greatest_ns: u64,
    mean_ns: f64,
    /// The sum of the squared differences from the mean.
    squares: f64,
    /// How many took less than twice the shortest until then, so were most likely not interrupted;
    /// those before a much shorter one are not among them.
    calm: u64,
    calm_total_ns: f64,
}

impl Statistics {
    /// Those of a node as they were measured.
    pub(crate) fn of(measured: &Measured) -> Self {
        Self {
            timed: measured.record.timed,
            least_ns: measured.least_ns,
            greatest_ns: measured.greatest_ns,
            mean_ns: measured.mean_ns,
            squares: measured.squares,
            calm: measured.calm,
            calm_total_ns: measured.calm_total_ns as f64,
        }
    }

    /// Takes what measuring cost out of each activation: means become true, while the least, the
    /// greatest and the deviation stay as measured, for what single activations called is not known.
    pub(crate) fn correct(&mut self, each_ns: f64) {
        self.mean_ns = (self.mean_ns - each_ns).max(0.0);
        self.calm_total_ns = (self.calm_total_ns - self.calm as f64 * each_ns).max(0.0);
    }

    /// Takes in the activations of another node (Chan, Golub and LeVeque, "Updating formulae and a
    /// pairwise algorithm for computing sample variances", 1979). What was calm there stays calm if
    /// the least of both lie between the same powers of two; otherwise only what was calm where the
    /// least is lower.
    pub(crate) fn merge(&mut self, other: &Self) {
        if other.timed == 0 {
            return;
        }
        if self.timed == 0 {
            *self = *other;
            return;
        }
        let (ours, theirs) = (self.timed as f64, other.timed as f64);
        let apart = other.mean_ns - self.mean_ns;
        self.mean_ns = (self.mean_ns * ours + other.mean_ns * theirs) / (ours + theirs);
        self.squares += other.squares + apart * apart * (ours * theirs / (ours + theirs));
        let (ours, theirs) = (self.least_ns.leading_zeros(), other.least_ns.leading_zeros());
        if ours < theirs {
            (self.calm, self.calm_total_ns) = (0, 0.0);
        }
        if ours <= theirs {
            self.calm = self.calm.saturating_add(other.calm);
            self.calm_total_ns += other.calm_total_ns;
        }
        self.least_ns = self.least_ns.min(other.least_ns);
        self.greatest_ns = self.greatest_ns.max(other.greatest_ns);
        self.timed = self.timed.saturating_add(other.timed);
    }

    /// The mean, that of calm activations, the least, the greatest and the standard deviation, in
    /// seconds, each where it is known.
    pub(crate) fn seconds(&self) -> [Option<f64>; 5] {
        let known = |ns: f64, is_known: bool| is_known.then_some(ns * 1e-9);
        let any = self.timed > 0;
        [
            known(self.mean_ns, any),
            known((self.calm_total_ns / self.calm as f64).min(self.mean_ns), self.calm > 0),
            known(self.least_ns as f64, any),
            known(self.greatest_ns as f64, any),
            known((self.squares / (self.timed as f64 - 1.0)).sqrt(), self.timed > 1),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: &[u64]) -> Statistics {
        let mean_ns = times.iter().sum::<u64>() as f64 / times.len() as f64;
        let least_ns = times.iter().copied().min().unwrap_or(0);
        let calm: Vec<u64> = times.iter().copied().filter(|&ns| ns < 2 * least_ns).collect();
        Statistics {
            timed: times.len() as u64,
            least_ns,
            greatest_ns: times.iter().copied().max().unwrap_or(0),
            mean_ns,
            squares: times.iter().map(|&ns| (ns as f64 - mean_ns).powi(2)).sum(),
            calm: calm.len() as u64,
            calm_total_ns: calm.iter().sum::<u64>() as f64,
        }
    }

    fn merged(parts: &[&[u64]]) -> Statistics {
        let mut all = Statistics::default();
        parts.iter().for_each(|part| all.merge(&of(part)));
        all
    }

    #[test]
    fn parts_together_are_as_if_they_had_been_one() {
        let all = of(&[100, 110, 190, 900, 120, 130]);
        for parts in
            [&[&[100_u64, 110, 190, 900][..], &[120, 130]][..], &[&[120, 130], &[900, 190, 110, 100]]]
        {
            let joined = merged(parts);
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs();
            for (joined, whole) in joined.seconds().into_iter().zip(all.seconds()) {
                assert!(close(joined.unwrap(), whole.unwrap()), "{joined:?} {whole:?} of {parts:?}");
            }
            assert_eq!((joined.timed, joined.calm), (6, 5));
        }
    }

    #[test]
    fn the_mean_of_calm_activations_is_never_above_the_mean() {
        // A function that is slow in one context and quick in another one.
        let all = merged(&[&[100_000, 110_000, 120_000], &[100, 300, 110, 900]]);
        assert_eq!(all, merged(&[&[100, 300, 110, 900], &[100_000, 110_000, 120_000]]));
        assert_eq!((all.calm, all.calm_total_ns), (2, 210.0));
        let [mean, calm, ..] = merged(&[&[130, 250, 250, 250], &[140, 140, 300]]).seconds();
        assert!(calm.unwrap() <= mean.unwrap());
    }

    #[test]
    fn what_was_not_timed_adds_nothing() {
        let mut one = of(&[500]);
        one.merge(&Statistics::default());
        assert_eq!(one, of(&[500]));
        assert_eq!(Statistics::default().seconds(), [None; 5]);
        assert_eq!(one.seconds().map(|number| number.is_some()), [true, true, true, true, false]);
    }

    #[test]
    fn the_cost_of_measuring_is_in_means_only() {
        let mut corrected = of(&[100, 120, 400]);
        corrected.correct(30.0);
        let [mean, calm, least, greatest, _] = corrected.seconds().map(|number| number.unwrap() * 1e9);
        let rounded = [mean, calm, least, greatest].map(|ns| ns.round() as i64);
        assert_eq!(rounded, [177, 80, 100, 400]);
        corrected.correct(1e6);
        assert_eq!(corrected.seconds()[0], Some(0.0), "never below nothing");
    }
}
