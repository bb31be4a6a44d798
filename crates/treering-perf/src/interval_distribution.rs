//! The probability that a moment in the life of a thread is sampled, and the weight of its sample.

use crate::jitter::Jitter;

/// How the one interval is drawn that a thread or process keeps for life.
///
/// The kernel lets us redraw the intervals of events that we opened, not of those that a thread
/// inherits when it is made: its first sample falls when it has run for one interval T, the others
/// each T later. The weights T that this suggests are wrong for short lives: most of a life that is
/// shorter than T is never seen, and the expected sum of the weights, E[T⌊L/T⌋], is less than L
/// for any law of T.
///
/// The weights that are right are one over how often a moment is sampled. At age t it is by those
/// T of which t is a multiple: with a density f of T, ρ(t) = Σ f(t/k)/k over all k ≥ 1 (Horvitz and
/// Thompson, 1952). That is 0 for ages below the least T, which no sample can fall into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Law {
    /// All the same, as users may ask for.
    Fixed,
    /// What the parent's event had at the moment, which is uniform between half and one and a half
    /// of the mean, but longer ones are met more often.
    OfTheMoment,
    /// Drawn for heirs: uniform in a range that the lowest bit of the interval tells.
    Template,
}

/// The range of intervals for threads that live long, as shares of the mean.
const NARROW: (f64, f64) = (0.5, 1.5);

/// The range for threads that live shortly, so that few are too short to be seen. One of these that
/// lives long after all is sampled at up to ten times the rate, which is why it is not used for all.
const WIDE: (f64, f64) = (0.1, 1.9);

/// Beyond this many possible multiples, the sum is that of an integral.
const MANY: f64 = 60.0;

impl Law {
    /// An interval for threads that live shortly or not.
    pub(crate) fn draw_template(jitter: &mut Jitter, mean: u64, wide: bool) -> u64 {
        let (low, high) = if wide { WIDE } else { NARROW };
        jitter.draw_between(mean, low, high) & !1 | u64::from(wide)
    }

    /// The shortest and longest interval that an heir with `interval` could have got.
    fn range(self, interval: u64) -> (f64, f64) {
        match self {
            Self::Fixed => (1.0, 1.0),
            Self::Template if interval & 1 == 1 => WIDE,
            Self::Template | Self::OfTheMoment => NARROW,
        }
    }

    /// How long a thread with `interval` runs at least before a sample can fall into it.
    pub(crate) fn first_possible(self, interval: u64, mean: u64) -> u64 {
        (self.range(interval).0 * mean as f64) as u64
    }

    /// The same for a thread that no sample fell into, when such intervals are drawn as for
    /// others.
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
        // Intervals of the moment are met in proportion to their length.
        let each = |k: f64| if self == Self::OfTheMoment { age / (k * k) } else { 1.0 / k };
        let often = if last > MANY {
            let whole = if self == Self::OfTheMoment { high - low } else { (high / low).ln() };
            density * whole
        } else {
            density * (first as u64..=last as u64).map(|k| each(k as f64)).sum::<f64>()
        };
        // Rounding must not lose the multiple that was seen, nor an interval that was set late.
        let often = often.max(density * each(number));
        (mean as f64 / often).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean weight of samples in lives of `life` means, over many drawn intervals.
    fn mean_seen(law: Law, wide: bool, life: f64) -> f64 {
        const MEAN: u64 = 1_000_000;
        const ROUNDS: u32 = 40_000;
        let mut jitter = Jitter::new(7);
        let mut seen = 0.0;
        for _ in 0..ROUNDS {
            let interval = Law::draw_template(&mut jitter, MEAN, wide);
            let samples = (life * MEAN as f64 / interval as f64) as u64;
            // A longer interval of the moment is met more often.
            let met = if law == Law::OfTheMoment { interval as f64 / MEAN as f64 } else { 1.0 };
            let weights = (1..=samples).map(|number| law.weight(interval, number, MEAN) as f64);
            seen += met * weights.sum::<f64>();
        }
        seen / f64::from(ROUNDS) / MEAN as f64
    }

    #[test]
    fn weights_add_up_to_the_part_of_a_life_that_can_be_seen() {
        for life in [0.3_f64, 0.8, 1.0, 2.2, 10.0, 40.0] {
            let check = |law, wide, least: f64| {
                let (expected, found) = ((life - least).max(0.0), mean_seen(law, wide, life));
                let within = 0.02 + 0.02 * life;
                assert!((found - expected).abs() < within, "{law:?} {wide} {life}: {found}, not {expected}");
            };
            check(Law::Template, true, WIDE.0);
            check(Law::Template, false, NARROW.0);
            check(Law::OfTheMoment, false, NARROW.0);
        }
    }

    #[test]
    fn late_samples_stand_for_what_their_rate_says() {
        let weight = |interval: u64, number| Law::Template.weight(interval, number, 1_000_000) as f64;
        // A density of 1 over the width, and ln(high / low) over it at great ages.
        assert!((weight(1_000_000, 100_000) - 1e6 / 3_f64.ln()).abs() < 1e4);
        assert!((weight(1_000_001, 100_000) - 1.8e6 / 19_f64.ln()).abs() < 1e4);
        assert_eq!(Law::Fixed.weight(5, 3, 1000), 1000);
    }
}
