//! Sums up samples.

/// The usual numbers of several samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The arithmetic mean.
    pub mean: f64,
    /// The standard deviation of the samples; nothing for a single one.
    pub deviation: Option<f64>,
    /// The median.
    pub median: f64,
    /// The least sample.
    pub least: f64,
    /// The greatest sample.
    pub greatest: f64,
}

impl Summary {
    /// The statistics of some samples; nothing if there are none.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        let (&least, &greatest) =
            (samples.iter().min_by(|a, b| a.total_cmp(b))?, samples.iter().max_by(|a, b| a.total_cmp(b))?);
        let count = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / count;
        let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
        let deviation = (samples.len() > 1).then(|| (squares / (count - 1.0)).sqrt());
        Some(Self { mean, deviation, median: median(&mut sorted), least, greatest })
    }
}

/// How much more the second of two costs, as a part of the first, and between which bounds that lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The change: 0.01 for +1 %.
    pub change: f64,
    /// The lower bound of the interval of 99 %.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

impl Estimate {
    /// How often rounds are drawn.
    const DRAWS: usize = 4000;

    /// The part of the draws that lies beyond each bound.
    const BEYOND: f64 = 0.005;

    /// The change from base to head, each of which has one sample of each round; the base may have several such sets.
    /// Nothing if they have none, or not equally many, or the base cost nothing.
    ///
    /// It is that of the means without the slowest third: other programs can only slow a run down, and what they do so
    /// is left out, while a mean of many runs varies less than their median.
    ///
    /// The interval is a bootstrap of percentiles: rounds are drawn with replacement, a round as a whole, so that what
    /// slows down a whole round cancels (B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap", 1993, chapter
    /// 13). It is expanded for few rounds, of which the percentiles are too narrow (T. C. Hesterberg, "What Teachers
    /// Should Know About the Bootstrap", 2015, section 5.1).
    pub fn of_change(base: &[&[f64]], head: &[f64], seed: u64) -> Option<Self> {
        let rounds = head.len();
        if rounds == 0 || base.is_empty() || base.iter().any(|of| of.len() != rounds) {
            return None;
        }
        let change_of = |base: &mut [f64], head: &mut [f64]| {
            let of_base = fast_mean(base);
            (of_base > 0.0).then(|| fast_mean(head) / of_base - 1.0)
        };
        let change = change_of(&mut base.concat(), &mut head.to_vec())?;
        if rounds == 1 {
            return Some(Self { change, low: f64::NEG_INFINITY, high: f64::INFINITY });
        }
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut of_base, mut of_head) = (Vec::new(), Vec::new());
        let mut changes = Vec::with_capacity(Self::DRAWS);
        for _ in 0..Self::DRAWS {
            of_base.clear();
            of_head.clear();
            for _ in 0..rounds {
                let round = random.usize(..rounds);
                of_base.extend(base.iter().map(|of| of[round]));
                of_head.push(head[round]);
            }
            changes.extend(change_of(&mut of_base, &mut of_head));
        }
        changes.sort_by(f64::total_cmp);
        let at = |part: f64| {
            changes.get((part * (changes.len().saturating_sub(1)) as f64).round() as usize).copied()
        };
        let bound = |part: f64| Some(change + expansion(rounds) * (at(part)? - change));
        // Nothing costs less than nothing.
        let low = bound(Self::BEYOND)?.max(-1.0);
        Some(Self { change, low, high: bound(1.0 - Self::BEYOND)? })
    }

    /// Whether 0 is within the interval.
    pub fn holds_none(&self) -> bool {
        self.low <= 0.0 && self.high >= 0.0
    }
}

/// The mean without the slowest third; changes the order of the samples.
fn fast_mean(samples: &mut [f64]) -> f64 {
    let kept = (samples.len() * 2).div_ceil(3);
    if kept < samples.len() {
        samples.select_nth_unstable_by(kept, f64::total_cmp);
    }
    samples[..kept].iter().sum::<f64>() / kept as f64
}

/// By how much percentiles of so many rounds, two or more, are too narrow: the quantile of Student's t distribution instead of the normal
/// one, and the spread of a sample instead of that of all rounds. The quantile is the expansion of M. Abramowitz and I.
/// A. Stegun, "Handbook of Mathematical Functions", 1964, 26.7.5.
fn expansion(rounds: usize) -> f64 {
    /// The quantile of the normal distribution that 0.5 % lie beyond.
    const NORMAL: f64 = 2.575_829_3;
    let (z, freedom) = (NORMAL, (rounds - 1) as f64);
    let student = z
        + (z.powi(3) + z) / (4.0 * freedom)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * freedom.powi(2))
        + (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / (384.0 * freedom.powi(3));
    student / z * (rounds as f64 / freedom).sqrt()
}

/// The median; puts the samples in order.
fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    let middle = samples.len() / 2;
    match samples.len() % 2 {
        _ if samples.is_empty() => f64::NAN,
        0 => f64::midpoint(samples[middle - 1], samples[middle]),
        _ => samples[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: [f64; 12] = [80.6, 79.2, 83.1, 81.0, 78.4, 89.7, 80.1, 82.2, 79.9, 81.5, 75.8, 80.6];
    const HEAD: [f64; 12] = [69.7, 68.8, 72.4, 70.1, 67.5, 80.3, 69.2, 71.8, 69.9, 70.0, 65.8, 69.7];

    fn is_close(a: f64, b: f64, by: f64) {
        assert!((a - b).abs() <= by, "{a} {b}");
    }

    /// The numbers are those of Python's `statistics`.
    #[test]
    fn summaries_are_those_of_another_implementation() {
        let summary = Summary::of(&BASE).unwrap();
        is_close(summary.mean, 81.008_333_333_333_33, 1e-9);
        is_close(summary.deviation.unwrap(), 3.318_942_420_090_892_6, 1e-9);
        assert_eq!((summary.median, summary.least, summary.greatest), (80.6, 75.8, 89.7));
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[2.0]).unwrap().deviation, None);
    }

    /// The bounds are those of a million draws in NumPy, with the quantile of its SciPy.
    #[test]
    fn intervals_are_those_of_another_implementation() {
        let estimate = Estimate::of_change(&[&BASE], &HEAD, 3).unwrap();
        is_close(estimate.change, -0.133_731_906_859_659_97, 1e-9);
        is_close(estimate.low, -0.138_54, 0.0008);
        is_close(estimate.high, -0.128_18, 0.0008);

        let again: Vec<f64> = BASE.iter().rev().map(|time| time * 1.001).collect();
        let estimate = Estimate::of_change(&[&BASE, &again], &HEAD, 3).unwrap();
        is_close(estimate.change, -0.134_164_824_447_436_38, 1e-9);
        is_close(estimate.low, -0.149_26, 0.0015);
        is_close(estimate.high, -0.113_91, 0.0015);
    }

    /// Of a table of Student's t distribution.
    #[test]
    fn few_rounds_have_wider_intervals() {
        for (rounds, quantile) in [(8_usize, 3.499_5), (12, 3.105_8), (30, 2.756_4)] {
            let spread = (rounds as f64 / (rounds - 1) as f64).sqrt();
            is_close(expansion(rounds), quantile / 2.575_8 * spread, 0.004);
        }
        let one = Estimate::of_change(&[&[1.0]], &[2.0], 1).unwrap();
        assert_eq!((one.change, one.low, one.high), (1.0, f64::NEG_INFINITY, f64::INFINITY));
    }

    #[test]
    fn no_cost_shrinks_by_more_than_all_of_it() {
        let base = [2.0, 2.5, 60.0, 3.0, 45.0, 2.0, 50.0, 70.0];
        let head = [70.0, 3.0, 2.0, 55.0, 2.5, 40.0, 2.0, 65.0];
        let estimate = Estimate::of_change(&[&base], &head, 1).unwrap();
        assert!(-1.0 <= estimate.low && estimate.low < estimate.change, "{estimate:?}");
    }

    #[test]
    fn a_slow_round_of_both_is_no_change() {
        let factors = [1.0, 1.4, 0.9, 2.0, 1.1, 1.3, 0.8, 1.7, 1.2, 1.0, 1.5, 1.6];
        let slowed: Vec<f64> = BASE.iter().zip(factors).map(|(time, factor)| time * factor).collect();
        let head: Vec<f64> = slowed.iter().map(|time| time * 1.05).collect();
        let estimate = Estimate::of_change(&[&slowed], &head, 3).unwrap();
        is_close(estimate.low, 0.05, 1e-9);
        is_close(estimate.high, 0.05, 1e-9);
    }

    #[test]
    fn nothing_is_estimated_from_nothing() {
        assert_eq!(Estimate::of_change(&[], &[1.0], 1), None);
        assert_eq!(Estimate::of_change(&[&[]], &[], 1), None);
        assert_eq!(Estimate::of_change(&[&[1.0]], &[1.0, 2.0], 1), None);
        assert_eq!(Estimate::of_change(&[&[0.0]], &[1.0], 1), None);
    }
}
