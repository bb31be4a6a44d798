//! Medians and spreads of few numbers.

/// The middle half of some measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    /// A quarter of them lie below.
    pub(super) low: f64,
    /// Half of them lie below.
    pub(super) median: f64,
    /// A quarter of them lie above.
    pub(super) high: f64,
}

impl Spread {
    /// The quartiles, interpolated between neighbours; nothing for no measurements.
    pub(super) fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let at = |quantile: f64| {
            let place = quantile * last as f64;
            let (below, part) = (place.floor() as usize, place.fract());
            sorted[below] + (sorted[(below + 1).min(last)] - sorted[below]) * part
        };
        Some(Self { low: at(0.25), median: at(0.5), high: at(0.75) })
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2} ({:.2}-{:.2})", self.median, self.low, self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_of_few_numbers() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[2.0]), Some(Spread { low: 2.0, median: 2.0, high: 2.0 }));
        let five = Spread::of(&[5.0, 1.0, 3.0, 2.0, 4.0]);
        assert_eq!(five, Some(Spread { low: 2.0, median: 3.0, high: 4.0 }));
        assert_eq!(five.map(|spread| spread.to_string()), Some("3.00 (2.00-4.00)".to_owned()));
    }
}
