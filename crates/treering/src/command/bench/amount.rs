//! Amounts as people read them: `245 ms`, `12.6 MB`, `476.4 M`.

use treering_archive::{Unit, metric};

/// A factor, and what stands behind numbers that are divided by it.
type Scale = (f64, &'static str);

const TIMES: [Scale; 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
const SIZES: [Scale; 5] = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")];
const COUNTS: [Scale; 5] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];

/// The scale in which a value has one to three digits before the point.
pub fn scale(value: f64, unit: Unit) -> Scale {
    let scales: &[Scale] = match unit {
        Unit::Ns => &TIMES,
        Unit::Bytes => &SIZES,
        Unit::Count => &COUNTS,
    };
    let fits = |scale: &&Scale| value.abs() >= scale.0;
    *scales.iter().find(fits).unwrap_or(&scales[scales.len() - 1])
}

/// A value with its unit, in three digits; counts have a fourth, as they are exact.
pub fn amount(value: f64, unit: Unit) -> String {
    let (factor, name) = scale(value, unit);
    let digits = if unit == Unit::Count { 4 } else { 3 };
    format!("{} {name}", significant(value / factor, digits)).trim_end().to_owned()
}

/// A number with so many digits, of which the last ones are never before the point. A 0 before the point is one of them,
/// and others behind it are not: `0.0031` has three.
pub fn significant(value: f64, digits: usize) -> String {
    const MOST: usize = 15;
    let size = value.abs();
    if size > 0.0 && size < 0.1 {
        let zeros = (-size.log10().floor()) as usize - 1;
        return format!("{value:.*}", (digits - 1 + zeros).min(MOST));
    }
    let before = if size < 10.0 { 1 } else { size.log10().floor() as usize + 1 };
    let is_whole = value == value.trunc() && before <= digits;
    if is_whole { format!("{value:.0}") } else { format!("{value:.*}", digits.saturating_sub(before)) }
}

/// The title of a metric: `CPU time`.
pub fn title(name: &str) -> &str {
    match name {
        metric::CPU => "CPU time",
        metric::WALL => "wall time",
        other => other,
    }
}

/// A relative change: `+3.2 %`, `−0.4 %`.
pub fn percent(change: f64) -> String {
    let percent = change * 100.0;
    if !percent.is_finite() {
        return "?".to_owned();
    }
    let digits = if percent.abs() >= 100.0 { 0 } else { 1 };
    let text = format!("{:.*}", digits, percent.abs());
    let is_shown = !text.trim_matches(['0', '.']).is_empty();
    let sign = match percent {
        percent if percent < 0.0 && is_shown => "−",
        percent if percent > 0.0 && is_shown => "+",
        _ => "",
    };
    format!("{sign}{text} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_three_digits_and_a_unit() {
        let times = [245.21e6, 3.474e6, 999.96e3, 12.0, 0.3, 61e9, 0.0].map(|ns| amount(ns, Unit::Ns));
        assert_eq!(times, ["245 ms", "3.47 ms", "1000 µs", "12 ns", "0.30 ns", "61 s", "0 ns"]);
        assert_eq!([12_600_000.0, 512.0].map(|bytes| amount(bytes, Unit::Bytes)), ["12.6 MB", "512 B"]);
        let rates = [0.0031, 0.05, 1.2e-7].map(|rate| amount(rate, Unit::Count));
        assert_eq!(rates, ["0.00310", "0.0500", "0.000000120"]);
        assert_eq!(amount(0.004, Unit::Ns), "0.0040 ns");
        assert_eq!([476_392_437.0, 7.0].map(|count| amount(count, Unit::Count)), ["476.4 M", "7"]);
    }

    #[test]
    fn changes_have_a_sign_unless_they_round_to_nothing() {
        let changes = [0.0321, -0.004, 0.0, -0.0001, 1.5, f64::NAN].map(percent);
        assert_eq!(changes, ["+3.2 %", "−0.4 %", "0.0 %", "0.0 %", "+150 %", "?"]);
    }
}
