//! Times and counts as text.

/// A unit of time for a column of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    ns: u64,
    decimals: usize,
}

const UNITS: [Unit; 5] = [
    Unit { name: "ns", ns: 1, decimals: 0 },
    Unit { name: "us", ns: 1_000, decimals: 3 },
    Unit { name: "ms", ns: 1_000_000, decimals: 3 },
    Unit { name: "s", ns: 1_000_000_000, decimals: 3 },
    Unit { name: "h", ns: 3_600_000_000_000, decimals: 3 },
];

/// The smallest unit in which `largest_ns` has at most four digits before the point.
pub(crate) fn for_column(largest_ns: u64) -> Unit {
    let fits = |unit: &&Unit| largest_ns / unit.ns < 10_000;
    *UNITS.iter().find(fits).unwrap_or(&UNITS[4])
}

impl Unit {
    /// The value of one step in the last digit shown, in nanoseconds.
    pub(crate) fn step_ns(self) -> u64 {
        self.ns / 10_u64.pow(self.decimals as u32)
    }

    /// A number of steps, without the unit.
    pub(crate) fn text(self, steps: u64) -> String {
        decimal(steps, self.decimals)
    }
}

/// A number of 10^-decimals.
pub(crate) fn decimal(steps: u64, decimals: usize) -> String {
    let scale = 10_u64.pow(decimals as u32);
    match decimals {
        0 => steps.to_string(),
        _ => format!("{}.{:0decimals$}", steps / scale, steps % scale),
    }
}

/// The mean of a time over a count, with its unit and four digits; a dash where nothing was
/// counted.
pub(crate) fn average(ns: u64, count: u64) -> String {
    if count == 0 {
        return "-".into();
    }
    let mean = ns as f64 / count as f64;
    // 9,999.5 would be shown with five digits.
    let fits = |unit: &&Unit| mean / (unit.ns as f64) < limit(unit);
    let unit = UNITS.iter().find(fits).unwrap_or(&UNITS[4]);
    let value = mean / unit.ns as f64;
    let decimals = match value {
        ..9.9995 => 3,
        ..99.995 => 2,
        ..999.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {}", unit.name)
}

/// How many of a unit are shown before the next one is taken.
fn limit(unit: &Unit) -> f64 {
    if unit.name == "s" { 9_999.5 } else { 999.95 }
}

/// Nanoseconds as milliseconds with all their digits, for programs to read.
pub(crate) fn exact_ms(ns: u64) -> String {
    decimal(ns, 6)
}

/// Nanoseconds as milliseconds, to the microsecond.
pub(crate) fn ms(ns: u64) -> String {
    decimal(ns / 1_000 + u64::from(ns % 1_000 >= 500), 3)
}

/// The mean of a time over a count in milliseconds, for programs to read; 0 where nothing was
/// counted.
pub(crate) fn average_ms(ns: u64, count: u64) -> String {
    format!("{:.6}", ns as f64 / count.max(1) as f64 / 1e6)
}

/// A share in percent of a whole; 0 where the whole is 0.
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_takes_the_smallest_unit_that_fits() {
        let name = |ns| for_column(ns).name;
        assert_eq!([name(0), name(9_999), name(10_000)], ["ns", "ns", "us"]);
        assert_eq!([name(9_999_999), name(10_000_000), name(u64::MAX)], ["us", "ms", "h"]);
        assert_eq!(for_column(10_000_000_000).text(10_000), "10.000");
    }

    #[test]
    fn averages_have_four_digits_and_a_unit() {
        assert_eq!(average(7, 2), "3.500 ns");
        assert_eq!(average(999_949, 1_000), "999.9 ns");
        assert_eq!(average(999_960, 1_000), "1.000 us");
        assert_eq!(average(12_345_678, 1), "12.35 ms");
        assert_eq!(average(7_200_000_000_000, 1), "7200 s");
        assert_eq!(average(5, 0), "-");
    }

    #[test]
    fn milliseconds_are_exact_or_rounded() {
        assert_eq!(exact_ms(1_000_001), "1.000001");
        assert_eq!([ms(1_499), ms(1_500), ms(999_999_600)], ["0.001", "0.002", "1000.000"]);
    }
}
