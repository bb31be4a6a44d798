//! Changes as digits, the same way all over a table.

use treering_compare::{Difference, Sides};
use treering_profile::Unit;

use crate::number::grouped;

/// In which unit changes are shown, and with how many decimals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amounts {
    per: f64,
    decimals: usize,
    suffix: &'static str,
}

impl Amounts {
    /// The amounts for a table of changes of up to `largest`.
    pub(super) fn of(unit: Unit, largest: u128) -> Self {
        let (per, decimals, suffix) = match unit {
            Unit::Nanoseconds => match largest {
                1_000_000_000.. => (1e9, 3, " s"),
                1_000_000.. => (1e6, 3, " ms"),
                1_000.. => (1e3, 3, " µs"),
                _ => (1.0, 0, " ns"),
            },
            Unit::Bytes => (1.0, 0, " B"),
            _ => match largest {
                1_000_000_000_000.. => (1e9, 3, "G"),
                1_000_000.. => (1e6, 3, "M"),
                _ => (1.0, 0, ""),
            },
        };
        Self { per, decimals, suffix }
    }

    /// The amounts for the changes of a difference.
    pub(super) fn of_changes(difference: &Difference) -> Self {
        let functions = difference.functions.iter().map(|row| row.self_cost.change().unsigned_abs());
        let largest = functions.max().unwrap_or(0).max(difference.run.change().unsigned_abs());
        Self::of(difference.unit, largest)
    }

    /// The amounts for the costs of both runs.
    pub(super) fn of_runs(difference: &Difference) -> Self {
        Self::of(difference.unit, u128::from(difference.run.base.cost.max(difference.run.head.cost)))
    }

    /// A change with its sign and unit; `0` for none.
    pub(super) fn signed(&self, change: i128) -> String {
        if change == 0 {
            return "0".to_owned();
        }
        let sign = if change < 0 { '−' } else { '+' };
        format!("{sign}{}{}", self.digits(change.unsigned_abs() as f64), self.suffix)
    }

    /// The bounds of a change.
    pub(super) fn interval(&self, (low, high): (f64, f64)) -> String {
        let bound = |bound: f64| {
            let sign = if bound < 0.0 { '−' } else { '+' };
            format!("{sign}{}", self.digits(bound.abs()))
        };
        format!("[{}, {}]{}", bound(low), bound(high), self.suffix)
    }

    /// Both costs, and their unit.
    pub(super) fn both(&self, costs: Sides<u64>) -> String {
        let Sides { base, head } = costs.map(|cost| self.digits(cost as f64));
        let unit = match self.suffix {
            "" => String::new(),
            suffix => format!(" {}", suffix.trim_start()),
        };
        format!("{base} → {head}{unit}")
    }

    fn digits(&self, number: f64) -> String {
        let number = number / self.per;
        if self.decimals == 0 {
            return grouped(number.round() as u64);
        }
        let scaled = (number * 10_f64.powi(self.decimals as i32)).round() as u64;
        let per = 10_u64.pow(self.decimals as u32);
        format!("{}.{:0width$}", grouped(scaled / per), scaled % per, width = self.decimals)
    }
}

/// How often something was called in both: one number where that is the same.
pub(super) fn calls(calls: Sides<u64>) -> String {
    if calls.base == calls.head {
        return grouped(calls.base);
    }
    format!("{} → {}", grouped(calls.base), grouped(calls.head))
}

/// More or fewer of something that is counted.
pub(super) fn signed_count(change: i128) -> String {
    Amounts { per: 1.0, decimals: 0, suffix: "" }.signed(change)
}

/// A change as a part of the base, with its sign: `+0.73 %`. Nothing where it would be shown as 0, or the base is 0.
pub(super) fn percent(share: Option<f64>, decimals: usize) -> Option<String> {
    let percent = share? * 100.0;
    let least = 0.5 / 10_f64.powi(decimals as i32);
    if percent.abs() < least {
        return None;
    }
    let sign = if percent < 0.0 { '−' } else { '+' };
    Some(format!("{sign}{:.decimals$} %", percent.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_a_sign_and_the_unit_that_suits_the_table() {
        let counts = Amounts::of(Unit::Count, 4_156_000);
        assert_eq!([4_156_204, -971_000, 0].map(|change| counts.signed(change)), ["+4.156M", "−0.971M", "0"]);
        assert_eq!(Amounts::of(Unit::Count, 54).signed(-54), "−54");
        let times = Amounts::of(Unit::Nanoseconds, 2_000_000);
        assert_eq!(times.signed(1_250_000), "+1.250 ms");
        assert_eq!(times.interval((-250_000.0, 1_000_000.0)), "[−0.250, +1.000] ms");
        assert_eq!(counts.both(Sides { base: 476_392_000, head: 479_882_000 }), "476.392 → 479.882 M");
        assert_eq!(calls(Sides { base: 8, head: 32_019 }), "8 → 32,019");
        assert_eq!(percent(Some(0.0073), 2).as_deref(), Some("+0.73 %"));
        assert_eq!(percent(Some(-0.00001), 2), None);
    }
}
