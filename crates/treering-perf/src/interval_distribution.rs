//! The probability that an age of a thread is sampled, and the weight of its sample.

use crate::jitter::Jitter;

/// How the one interval is drawn that a thread or process keeps for life.
///
/// The kernel lets us redraw the intervals of events that we opened, not of those that a thread
/// inherits when it is made: its first sample falls when it has run for one interval T, the others
/// each T later. The weights T that this suggests are wrong for short lives: most of a life that is
/// shorter than T is never seen, and the expected sum of the weights, E[T⌊L/T⌋], is less than L
/// for any distribution of T.
///
/// The weights that are right consider how often an age is sampled. Age t is sampled by those T of which t is a multiple: with
/// a density f of T, by T = t/k at a rate of f(t/k)/k, for all k ≥ 1 (Horvitz and Thompson, 1952). None is for ages below the
/// least T, which no sample can fall into. The weights of all these must add up to 1, which leaves open how they differ.
/// They are in proportion to T, as a thread has another T on each processor that it comes to: its time on one must not cost
/// more than its time on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntervalDistribution {
    /// All the same, as users may ask for.
    Fixed,
    /// The interval of the parent's event when the thread was made: uniform between half and one and a half of the mean,
    /// but longer ones are met more often, in proportion to their length.
    LengthBiased,
    /// Drawn for threads that inherit it: uniform in a range that the lowest bit of the interval tells.
    Template,
}

/// The range of intervals for threads that live long, as shares of the mean.
const NARROW: (f64, f64) = (0.5, 1.5);

/// The range for threads that live shortly, so that few are too short to be seen. One of these that
/// lives long after all is sampled at up to ten times the rate, which is why it is not used for all.
const WIDE: (f64, f64) = (0.1, 1.9);

/// If an age is a multiple of more possible intervals than this, an integral replaces the sum.
const MANY: f64 = 60.0;

impl IntervalDistribution {
    /// An interval for threads that live shortly or not.
    pub(crate) fn draw_template(jitter: &mut Jitter, mean: u64, wide: bool) -> u64 {
        let (low, high) = if wide { WIDE } else { NARROW };
        jitter.draw_between(mean, low, high) & !1 | u64::from(wide)
    }

    /// The shortest and longest interval that a thread that inherited `interval` could have got.
    fn range(self, interval: u64) -> (f64, f64) {
        match self {
            Self::Fixed => (1.0, 1.0),
            Self::Template if interval & 1 == 1 => WIDE,
            Self::Template | Self::LengthBiased => NARROW,
        }
    }

    /// How long a thread with `interval` runs at least before a sample can fall into it.
    pub(crate) fn first_possible(self, interval: u64, mean: u64) -> u64 {
        (self.range(interval).0 * mean as f64) as u64
    }

    /// The same for a thread that no sample fell into, so that its interval is not known, only the range that it was drawn
    /// from.
    pub(crate) fn first_possible_of_unseen(self, wide: bool, mean: u64) -> u64 {
        self.first_possible(u64::from(wide), mean)
    }

    /// The weight of sample number `number`, from 1, in a thread with `interval`.
    pub(crate) fn weight(self, interval: u64, number: u64, mean: u64) -> u64 {
        if self == Self::Fixed {
            return mean;
        }
        let (low, high) = self.range(interval);
        let number = number as f64;
        let age = number * interval as f64 / mean as f64;
        let (first, last) = ((age / high).ceil().max(1.0), (age / low).floor());
        let density = 1.0 / (high - low);
        // How often it is sampled at this multiple of an interval, times the interval. Length-biased intervals are met in
        // proportion to their length.
        let each = |k: f64| if self == Self::LengthBiased { age * age / k.powi(3) } else { age / (k * k) };
        let sampled = if last > MANY {
            let whole = if self == Self::LengthBiased { (high * high - low * low) / 2.0 } else { high - low };
            density * whole
        } else {
            density * (first as u64..=last as u64).map(|k| each(k as f64)).sum::<f64>()
        };
        // Rounding must not lose the multiple that was seen, nor an interval that was set late.
        let sampled = sampled.max(density * each(number));
        (interval as f64 / sampled).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean weight of samples in lives of `life` means, over many drawn intervals.
    fn mean_seen(intervals: IntervalDistribution, wide: bool, life: f64) -> f64 {
        const MEAN: u64 = 1_000_000;
        const ROUNDS: u32 = 40_000;
        let mut jitter = Jitter::new(7);
        let mut seen = 0.0;
        for _ in 0..ROUNDS {
            let interval = IntervalDistribution::draw_template(&mut jitter, MEAN, wide);
            let samples = (life * MEAN as f64 / interval as f64) as u64;
            // A longer interval is met more often.
            let met = if intervals == IntervalDistribution::LengthBiased {
                interval as f64 / MEAN as f64
            } else {
                1.0
            };
            let weights = (1..=samples).map(|number| intervals.weight(interval, number, MEAN) as f64);
            seen += met * weights.sum::<f64>();
        }
        seen / f64::from(ROUNDS) / MEAN as f64
    }

    #[test]
    fn weights_add_up_to_the_part_of_a_life_that_can_be_seen() {
        for life in [0.3_f64, 0.8, 1.0, 2.2, 10.0, 40.0] {
            let check = |intervals, wide, least: f64| {
                let (expected, found) = ((life - least).max(0.0), mean_seen(intervals, wide, life));
                let within = 0.02 + 0.02 * life;
                assert!(
                    (found - expected).abs() < within,
                    "{intervals:?} {wide} {life}: {found}, not {expected}"
                );
            };
            check(IntervalDistribution::Template, true, WIDE.0);
            check(IntervalDistribution::Template, false, NARROW.0);
            check(IntervalDistribution::LengthBiased, false, NARROW.0);
        }
    }

    #[test]
    fn late_samples_have_the_weight_of_their_interval() {
        let weight = |intervals: IntervalDistribution, interval: u64| {
            intervals.weight(interval, 100_000, 1_000_000) as f64 / interval as f64
        };
        for interval in [500_000, 1_000_000, 1_400_000, 1_400_001] {
            let weight = weight(IntervalDistribution::Template, interval);
            assert!((weight - 1.0).abs() < 1e-4, "{interval}: {weight}");
        }
        assert_eq!(weight(IntervalDistribution::LengthBiased, 600_000), 1.0);
        assert_eq!(IntervalDistribution::Fixed.weight(5, 3, 1000), 1000);
    }
}
