//! How the cost of a call grows with the size of its argument.

use crate::detail::SizeBucket;
use crate::interval::t_975;

/// A power law fitted to the mean costs of calls: cost = a · size^exponent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// The exponent: 1 for a cost proportional to the size, 2 for its square.
    pub exponent: f64,
    /// Between which bounds the exponent lies with 95 % confidence, as far as costs follow a
    /// power law.
    pub low: f64,
    /// See `low`.
    pub high: f64,
}

/// How many buckets with cost a fit needs: with two any line fits, and nothing tells how well.
const LEAST_BUCKETS: usize = 3;

impl Growth {
    /// Fits the exponent to buckets of sizes by weighted least squares of log(cost of a call)
    /// against log(size), in O(buckets).
    ///
    /// A bucket stands for the geometric middle of its sizes; bucket 0, of sizes 0 and 1, is left
    /// out. It weighs as much as the square root of its calls: buckets with few calls have the
    /// larger errors, but much of the error is of kinds that more calls do not make smaller. The
    /// bounds are those of Student's t for the residuals (N. R. Draper and H. Smith, "Applied
    /// regression analysis", 1966). Nothing for fewer than three buckets.
    pub fn of(sizes: &[SizeBucket]) -> Option<Self> {
        let points: Vec<Point> = sizes.iter().filter_map(Point::of).collect();
        let degrees = points.len().checked_sub(LEAST_BUCKETS - 1).filter(|&left| left > 0)?;
        let sum =
            |of: &dyn Fn(&Point) -> f64| points.iter().map(|point| point.weight * of(point)).sum::<f64>();
        let weight = sum(&|_| 1.0);
        let (x, y) = (sum(&|point| point.size) / weight, sum(&|point| point.cost) / weight);
        let spread = sum(&|point| (point.size - x).powi(2));
        let exponent = sum(&|point| (point.size - x) * (point.cost - y)) / spread;
        let left = sum(&|point| (point.cost - y - exponent * (point.size - x)).powi(2));
        let half = t_975(degrees) * (left / degrees as f64 / spread).sqrt();
        Some(Self { exponent, low: exponent - half, high: exponent + half }).filter(Self::is_finite)
    }

    fn is_finite(&self) -> bool {
        self.exponent.is_finite() && self.low.is_finite() && self.high.is_finite()
    }
}

/// A bucket on logarithmic scales.
struct Point {
    size: f64,
    cost: f64,
    weight: f64,
}

impl Point {
    fn of(bucket: &SizeBucket) -> Option<Self> {
        if bucket.bucket == 0 || bucket.calls == 0 || bucket.total_cost == 0 {
            return None;
        }
        let size = (f64::from(bucket.bucket) + 0.5) * core::f64::consts::LN_2;
        Some(Self { size, cost: bucket.mean().ln(), weight: (bucket.calls as f64).sqrt() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(rows: &[(u8, u64, u64)]) -> Vec<SizeBucket> {
        rows.iter().map(|&(bucket, calls, total_cost)| SizeBucket { bucket, calls, total_cost }).collect()
    }

    /// Buckets of one call each that costs the size to a power, each off by a ratio.
    fn law(power: i32, off: &[f64]) -> Vec<SizeBucket> {
        let cost = |bucket: u8, off: f64| (1e4 * f64::from(1 << bucket).powi(power) * off) as u64;
        let rows: Vec<_> = (1..).zip(off).map(|(bucket, &off)| (bucket, 1, cost(bucket, off))).collect();
        buckets(&rows)
    }

    #[test]
    fn powers_are_recovered() {
        for power in [0, 1, 2, 3] {
            let growth = Growth::of(&law(power, &[1.0; 8])).expect("eight buckets");
            assert!((growth.exponent - f64::from(power)).abs() < 1e-3, "{power}: {growth:?}");
            assert!(growth.low <= growth.exponent && growth.exponent <= growth.high);
        }
    }

    #[test]
    fn the_bounds_hold_the_truth_and_widen_with_the_errors() {
        let little = Growth::of(&law(2, &[1.02, 0.97, 1.01, 0.99, 1.03, 0.98])).expect("six buckets");
        let much = Growth::of(&law(2, &[1.5, 0.6, 1.2, 0.8, 1.6, 0.7])).expect("six buckets");
        for growth in [little, much] {
            assert!(growth.low < 2.0 && 2.0 < growth.high, "{growth:?}");
        }
        assert!(much.high - much.low > 5.0 * (little.high - little.low));
    }

    #[test]
    fn many_calls_weigh_more_than_few() {
        let mut sizes = law(1, &[1.0; 6]);
        for bucket in &mut sizes {
            bucket.calls *= 10_000;
            bucket.total_cost *= 10_000;
        }
        // One call of the largest size was interrupted for long.
        sizes.push(SizeBucket { bucket: 7, calls: 1, total_cost: 10_000 * 128 * 50 });
        let growth = Growth::of(&sizes).expect("seven buckets");
        assert!((growth.exponent - 1.0).abs() < 0.1, "{growth:?}");
    }

    #[test]
    fn too_little_is_not_fitted() {
        assert_eq!(Growth::of(&[]), None);
        assert_eq!(Growth::of(&buckets(&[(0, 5, 10), (1, 5, 20), (2, 5, 40)])), None);
        assert_eq!(Growth::of(&buckets(&[(1, 5, 0), (2, 0, 0), (3, 1, 9), (4, 1, 9)])), None);
    }
}
