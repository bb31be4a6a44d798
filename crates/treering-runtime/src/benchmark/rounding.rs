//! Rounding that keeps sums.

/// Each part as a whole number of steps, so that they add up to exactly `target` steps.
///
/// Every part is rounded down, and the steps that are then missing go to the parts that lost
/// most (largest remainder), so no part is off by a step or more when the parts add up to about
/// the target. A part of nothing stays nothing; if all are, they add up to nothing.
pub(crate) fn to_sum(parts: &[u64], step: u64, target: u64) -> Vec<u64> {
    let step = step.max(1);
    let mut steps: Vec<u64> = parts.iter().map(|part| part / step).collect();
    let sum = steps.iter().fold(0_u64, |sum, &part| sum.saturating_add(part));
    let mut order: Vec<usize> = (0..parts.len()).filter(|&at| parts[at] > 0).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(parts[at] % step));
    if sum <= target {
        let more = (target - sum).min(MOST_CORRECTIONS) as usize;
        order.iter().cycle().take(more).for_each(|&at| steps[at] += 1);
    } else {
        let less = (sum - target).min(MOST_CORRECTIONS);
        (0..less).for_each(|_| take_one(&mut steps, &order));
    }
    steps
}

/// Far above what rounding can cause: a target that is unrelated to the parts must not keep us.
const MOST_CORRECTIONS: u64 = 100_000;

/// Takes a step from the part that gained most and has one.
fn take_one(steps: &mut [u64], order: &[usize]) {
    if let Some(&at) = order.iter().rev().find(|&&at| steps[at] > 0) {
        steps[at] -= 1;
    }
}

/// The nearest number of steps.
pub(crate) fn nearest(value: u64, step: u64) -> u64 {
    let step = step.max(1);
    value / step + u64::from(value % step >= step.div_ceil(2))
}

/// Shares of a whole in tenths of a percent, which add up to 1000 if the parts make up the whole.
pub(crate) fn per_mille(parts: &[u64], whole: u64) -> Vec<u64> {
    let sum: u128 = parts.iter().map(|&part| u128::from(part)).sum();
    // Parts of parts that are exact: 64 bits hold 2^64 / 1000 of a whole only.
    let scale = |part: u64| (u128::from(part) * 1_000_000_000 / u128::from(whole.max(1))) as u64;
    let target = nearest(scale(sum.min(u128::from(u64::MAX)) as u64), 1_000_000);
    to_sum(&parts.iter().map(|&part| scale(part)).collect::<Vec<_>>(), 1_000_000, target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_parts_add_up_to_the_rounded_sum() {
        assert_eq!(to_sum(&[333, 333, 334], 100, 10), [3, 3, 4]);
        assert_eq!(to_sum(&[50, 50, 50], 100, 2), [1, 1, 0]);
        assert_eq!(to_sum(&[0, 99], 100, 1), [0, 1]);
        assert_eq!(to_sum(&[], 100, 5), []);
    }

    #[test]
    fn a_target_below_the_parts_takes_steps_away() {
        assert_eq!(to_sum(&[100, 240], 100, 2), [0, 2]);
        assert_eq!(to_sum(&[160], 100, 3), [3]);
    }

    #[test]
    fn shares_add_up_to_a_hundred_percent() {
        assert_eq!(per_mille(&[1, 1, 1], 3), [334, 333, 333]);
        assert_eq!(per_mille(&[u64::MAX / 2, u64::MAX / 2 + 1], u64::MAX), [500, 500]);
        assert_eq!(per_mille(&[0, 0], 0), [0, 0]);
    }
}
