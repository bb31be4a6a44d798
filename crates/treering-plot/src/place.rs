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

/// Moves texts up that would lie on each other. All are `width` wide and `height` high.
pub(crate) fn stacked(places: &[(f64, f64)], width: f64, height: f64) -> Vec<(f64, f64)> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|&a, &b| places[b].1.total_cmp(&places[a].1));
    let mut moved = places.to_vec();
    for (done, &at) in order.iter().enumerate() {
        // Those that are placed, from below.
        for &other in &order[..done] {
            let ((x, y), (placed_x, placed_y)) = (moved[at], moved[other]);
            if (x - placed_x).abs() < width && (y - placed_y).abs() < height {
                moved[at].1 = placed_y - height;
            }
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_on_each_other_are_stacked() {
        let stacked = |places: &[(f64, f64)]| stacked(places, 100.0, 16.0);
        assert_eq!(stacked(&[(0.0, 50.0), (200.0, 50.0)]), [(0.0, 50.0), (200.0, 50.0)]);
        assert_eq!(stacked(&[(0.0, 50.0), (20.0, 52.0)]), [(0.0, 36.0), (20.0, 52.0)]);
        assert_eq!(
            stacked(&[(0.0, 50.0), (0.0, 50.0), (0.0, 50.0)]),
            [(0.0, 50.0), (0.0, 34.0), (0.0, 18.0)]
        );
    }

    #[test]
    fn names_that_are_near_are_moved_apart() {
        assert_eq!(apart(&[10.0, 50.0], 14.0), [10.0, 50.0]);
        assert_eq!(apart(&[20.0, 20.0], 14.0), [13.0, 27.0]);
        assert_eq!(apart(&[], 14.0), Vec::<f64>::new());
    }
}
