//! Medians and spreads of few numbers.

/// Where some measurements lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) least: f64,
    /// A quarter of them lie below.
    pub(super) low: f64,
    /// Half of them lie below.
    pub(super) median: f64,
    /// A quarter of them lie above.
    pub(super) high: f64,
    pub(super) greatest: f64,
}

impl Spread {
    /// The quartiles, interpolated between neighbours; `None` for no measurements.
    pub(super) fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let at = |quantile: f64| {
            let place = quantile * last as f64;
            let (below, part) = (place.floor() as usize, place.fract());
            sorted[below] + (sorted[(below + 1).min(last)] - sorted[below]) * part
        };
        Some(Self {
            least: sorted[0],
            low: at(0.25),
            median: at(0.5),
            high: at(0.75),
            greatest: sorted[last],
        })
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = f.precision().unwrap_or(2);
        write!(f, "{:.digits$} ({:.digits$}-{:.digits$})", self.median, self.low, self.high)
    }
}

/// The median; not a number for none.
pub(super) fn median(values: &[f64]) -> f64 {
    Spread::of(values).map_or(f64::NAN, |spread| spread.median)
}

/// The geometric mean; `None` for no values.
pub(super) fn geometric_mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (sum / values.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_of_few_numbers() {
        assert_eq!(Spread::of(&[]), None);
        let one = Spread { least: 2.0, low: 2.0, median: 2.0, high: 2.0, greatest: 2.0 };
        assert_eq!(Spread::of(&[2.0]), Some(one));
        let five = Spread::of(&[5.0, 1.0, 3.0, 2.0, 4.0]);
        assert_eq!(five, Some(Spread { least: 1.0, low: 2.0, median: 3.0, high: 4.0, greatest: 5.0 }));
        assert_eq!(five.map(|spread| spread.to_string()), Some("3.00 (2.00-4.00)".to_owned()));
    }

    #[test]
    fn means_are_geometric() {
        assert_eq!(geometric_mean(&[]), None);
        assert!((geometric_mean(&[1.0, 4.0]).unwrap_or(0.0) - 2.0).abs() < 1e-12);
    }
}
