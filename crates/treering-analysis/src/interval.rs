//! Confidence intervals of shares, and the quantiles they need.

/// Bounds between which a share of the run lies with 95 % confidence; both in 0..=1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

/// The 97.5 % quantile of the normal distribution.
const Z95: f64 = 1.959_963_984_540_054;

impl Interval {
    /// The bounds in the unit of `whole`, rounded to the nearest.
    pub fn of_cost(self, whole: u64) -> (u64, u64) {
        let scale = |share: f64| (share * whole as f64).round() as u64;
        (scale(self.low), scale(self.high))
    }

    /// The smallest interval that holds both.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// Whether `share` lies within the bounds.
    pub fn contains(self, share: f64) -> bool {
        (self.low..=self.high).contains(&share)
    }
}

/// The 95 % interval of a share that was found to be `share` of `samples` independent samples.
///
/// E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927:
/// unlike the textbook's p ± 2σ it holds for shares near 0 and 1 and for few samples. Nothing
/// is known without samples. Samples of unequal weight are fewer in effect than their number, so
/// the number need not be whole.
pub fn wilson(share: f64, samples: f64) -> Option<Interval> {
    if samples <= 0.0 {
        return None;
    }
    let n = samples;
    let z2 = Z95 * Z95;
    let centre = share + z2 / (2.0 * n);
    let half = Z95 * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z2 / n;
    // Rounding must not push the bounds past the share when it is 0 or 1.
    let low = ((centre - half) / scale).clamp(0.0, share);
    let high = ((centre + half) / scale).clamp(share, 1.0);
    Some(Interval { low, high })
}

/// The 95 % interval of the mean of shares measured in independent runs, by Student's t
/// distribution; nothing for fewer than two.
pub fn student(shares: &[f64]) -> Option<Interval> {
    let half = mean_margin(shares)?;
    let mean = mean(shares);
    Some(Interval { low: (mean - half).clamp(0.0, 1.0), high: (mean + half).clamp(0.0, 1.0) })
}

/// How far the mean of a quantity may be from that of independent measurements, with 95 % confidence, by Student's t
/// distribution; nothing for fewer than two.
pub fn mean_margin(measurements: &[f64]) -> Option<f64> {
    let deviation = standard_deviation(measurements)?;
    let count = measurements.len();
    Some(t_975(count - 1) * deviation / (count as f64).sqrt())
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The standard deviation estimated from a sample (divisor n − 1); nothing for fewer than two.
pub(crate) fn standard_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// The 97.5 % quantile of Student's t distribution, within 0.1 %.
///
/// A table up to 10 degrees of freedom, then the expansion of Cornish and Fisher around the
/// normal quantile (Abramowitz and Stegun, 26.7.5).
pub fn t_975(freedom: usize) -> f64 {
    const TABLE: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    if let Some(&t) = freedom.checked_sub(1).and_then(|at| TABLE.get(at)) {
        return t;
    }
    let (z, v) = (Z95, freedom as f64);
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / v + second / (v * v) + third / v.powi(3)
}

/// The 99.9 % quantile of chi squared over its degrees of freedom, within 4 %.
///
/// E. B. Wilson and M. M. Hilferty, "The distribution of chi-square", 1931.
pub(crate) fn chi_squared_999_over_freedom(freedom: usize) -> f64 {
    const Z999: f64 = 3.090_232;
    let spread = 2.0 / (9.0 * freedom as f64);
    (1.0 - spread + Z999 * spread.sqrt()).powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64, within: f64) {
        assert!((found - expected).abs() <= within, "{found} is not within {within} of {expected}");
    }

    /// The margin is scipy's `t.interval(0.95, 4, scale=sem)`.
    #[test]
    fn the_margin_of_a_mean_is_that_of_another_implementation() {
        let margin = mean_margin(&[10.1, 10.4, 9.8, 10.0, 10.7]).expect("five measurements");
        close(margin, 0.438_989, 1e-3);
        assert_eq!(mean_margin(&[10.0]), None);
    }

    #[test]
    fn wilson_agrees_with_published_values() {
        // Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I.
        let of = |k: u64, n: u64| wilson(k as f64 / n as f64, n as f64).expect("n is positive");
        let (a, b) = (of(81, 263), of(15, 148));
        close(a.low, 0.2553, 5e-5);
        close(a.high, 0.3662, 5e-5);
        close(b.low, 0.0624, 5e-5);
        close(b.high, 0.1605, 5e-5);
        let (none, few) = (of(0, 20), of(1, 29));
        close(none.low, 0.0, 0.0);
        close(none.high, 0.1611, 5e-5);
        close(few.low, 0.0061, 5e-5);
        close(few.high, 0.1718, 5e-5);
    }

    #[test]
    fn wilson_holds_the_truth_in_nineteen_of_twenty_cases() {
        for (share, samples) in [(0.25, 158), (0.01, 1000), (0.9, 60)] {
            let (mut log_choose, mut covered) = (0.0_f64, 0.0);
            for found in 0..=samples {
                let (k, n) = (found as f64, samples as f64);
                let probability = log_choose + k * f64::ln(share) + (n - k) * f64::ln(1.0 - share);
                let interval = wilson(k / n, samples as f64).expect("there are samples");
                covered += if interval.contains(share) { probability.exp() } else { 0.0 };
                log_choose += ((n - k) / (k + 1.0)).ln();
            }
            close(covered, 0.95, 0.025);
        }
    }

    #[test]
    fn without_samples_there_is_no_interval() {
        assert_eq!(wilson(0.0, 0.0), None);
        assert_eq!(student(&[0.5]), None);
    }

    #[test]
    fn quantiles_agree_with_tables() {
        close(t_975(2), 4.303, 1e-3);
        close(t_975(11), 2.201, 1e-3);
        close(t_975(30), 2.042, 1e-3);
        close(t_975(1000), 1.962, 1e-3);
        close(chi_squared_999_over_freedom(2), 13.816 / 2.0, 0.3);
        close(chi_squared_999_over_freedom(10), 29.588 / 10.0, 0.03);
    }

    #[test]
    fn the_mean_of_runs_has_the_textbook_interval() {
        let interval = student(&[0.2, 0.25, 0.3]).expect("three runs");
        // SD 0.05, t(2) = 4.303: half-width 4.303 * 0.05 / sqrt(3).
        close(interval.low, 0.25 - 0.12421, 1e-4);
        close(interval.high, 0.25 + 0.12421, 1e-4);
    }
}
