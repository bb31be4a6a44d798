//! How costs become digits, the same way all over a table.

use treering_analysis::{Basis, Measure};
use treering_profile::Unit;

use crate::number::{Quanta, grouped};
use crate::options::Amount;

/// How costs become digits, the same way all over a table: in which unit, how many decimals.
///
/// The last digit shown is one *quantum*. Tables round to quanta first, so that what is shown
/// can be made to add up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// The size of a quantum, in the metric's unit or in samples.
    quantum: f64,
    decimals: usize,
    /// The unit in headings: `s`, `%`.
    pub(crate) unit: &'static str,
    samples: bool,
}

impl Scale {
    /// The scale for a table of costs of up to `basis.run`.
    pub(crate) fn of(basis: &Basis, unit: Unit, amount: Amount) -> Self {
        let whole = basis.run.cost as f64;
        match (amount, unit) {
            (Amount::Percent, _) => {
                // Samples do not support more than one decimal; exact numbers do.
                let decimals = if basis.samples.is_some() { 1 } else { 2 };
                let steps = 100.0 * 10_f64.powi(decimals as i32);
                Self { quantum: (whole / steps).max(f64::MIN_POSITIVE), decimals, unit: "%", samples: false }
            }
            (Amount::Samples, _) => Self { quantum: 1.0, decimals: 0, unit: "samples", samples: true },
            (Amount::Natural, Unit::Nanoseconds) => {
                let (unit, quantum) = match basis.run.cost {
                    1_000_000_000.. => ("s", 1e6),
                    1_000_000.. => ("ms", 1e3),
                    1_000.. => ("µs", 1.0),
                    _ => return Self { quantum: 1.0, decimals: 0, unit: "ns", samples: false },
                };
                Self { quantum, decimals: 3, unit, samples: false }
            }
            (Amount::Natural, Unit::Bytes) => Self { quantum: 1.0, decimals: 0, unit: "B", samples: false },
            (Amount::Natural, _) => Self { quantum: 1.0, decimals: 0, unit: "", samples: false },
        }
    }

    /// How many quanta a cost is, before rounding. Counts stay as they are, also those above 2^53.
    pub(crate) fn quanta(&self, measure: Measure) -> Quanta {
        let number = if self.samples { measure.samples } else { measure.cost };
        if self.quantum == 1.0 {
            return Quanta { whole: number, rest: 0.0 };
        }
        Quanta::from(number as f64 / self.quantum)
    }

    /// How many quanta a cost is, rounded.
    pub(crate) fn rounded(&self, measure: Measure) -> u64 {
        self.quanta(measure).rounded()
    }

    /// A rounded number of quanta as digits.
    pub(crate) fn digits(&self, quanta: u64) -> String {
        let scale = 10_u64.pow(self.decimals as u32);
        let whole = grouped(quanta / scale);
        if self.decimals == 0 {
            return whole;
        }
        format!("{whole}.{:0width$}", quanta % scale, width = self.decimals)
    }

    /// A cost as digits.
    pub(crate) fn text(&self, measure: Measure) -> String {
        self.digits(self.rounded(measure))
    }

    /// A column's heading: `self s`, `% self`.
    pub(crate) fn heading(&self, what: &str) -> String {
        match self.unit {
            "" => what.to_owned(),
            "%" => format!("% {what}"),
            unit => format!("{what} {unit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn basis(cost: u64, samples: Option<u64>) -> Basis {
        let run = Measure::new(cost, samples.unwrap_or(0));
        let metric = treering_profile::MetricId::new(0);
        Basis {
            metric,
            samples: samples.map(|_| metric),
            run,
            runs: vec![run],
            correction: None,
            weights: None,
        }
    }

    fn show(run: Basis, unit: Unit, amount: Amount, cost: u64) -> String {
        let scale = Scale::of(&run, unit, amount);
        format!("{} {}", scale.text(Measure::new(cost, 7)), scale.unit)
    }

    #[test]
    fn the_unit_suits_the_whole_run() {
        let ns = |run, cost| show(basis(run, None), Unit::Nanoseconds, Amount::Natural, cost);
        assert_eq!(ns(5_000_000_000, 12_345_678), "0.012 s");
        assert_eq!(ns(5_000_000, 12_345), "0.012 ms");
        assert_eq!(ns(5_000, 12), "0.012 µs");
        assert_eq!(ns(500, 12), "12 ns");
        assert_eq!(show(basis(5000, None), Unit::Count, Amount::Natural, 4321), "4,321 ");
        let large = (1 << 53) + 1;
        assert_eq!(show(basis(large, None), Unit::Count, Amount::Natural, large), "9,007,199,254,740,993 ");
    }

    #[test]
    fn percent_has_as_many_decimals_as_the_numbers_support() {
        assert_eq!(show(basis(3000, Some(30)), Unit::Count, Amount::Percent, 1000), "33.3 %");
        assert_eq!(show(basis(3000, None), Unit::Count, Amount::Percent, 1000), "33.33 %");
        assert_eq!(show(basis(3000, Some(30)), Unit::Count, Amount::Samples, 1000), "7 samples");
        assert_eq!(show(basis(0, None), Unit::Count, Amount::Percent, 0), "0.00 %");
    }
}
