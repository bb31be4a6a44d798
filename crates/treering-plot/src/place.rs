//! Places of names that would lie on each other.

/// Moves heights apart, so that each is at least `least` from the next; their order stays.
pub(crate) fn apart(heights: &[f64], least: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    order.sort_by(|&a, &b| heights[a].total_cmp(&heights[b]));
    let mut moved = heights.to_vec();
    for pair in order.windows(2) {
        moved[pair[1]] = moved[pair[1]].max(moved[pair[0]] + least);
    }
    // Half of what they moved down they move up again.
    let shift = order.last().map_or(0.0, |&last| (moved[last] - heights[last]) / 2.0);
    moved.iter().map(|height| height - shift).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_near_are_moved_apart() {
        assert_eq!(apart(&[10.0, 50.0], 14.0), [10.0, 50.0]);
        assert_eq!(apart(&[20.0, 20.0], 14.0), [13.0, 27.0]);
        assert_eq!(apart(&[], 14.0), Vec::<f64>::new());
    }
}
