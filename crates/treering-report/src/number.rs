//! Numbers as people read them.

use treering_profile::Unit;

/// A number with commas between groups of three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share as percent with one decimal, without the sign.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// A duration with the unit that suits it: `5.020 s`, `1.250 ms`.
pub(crate) fn duration(nanoseconds: f64) -> String {
    match nanoseconds {
        ns if ns >= 0.999_999_5e9 => format!("{:.3} s", ns / 1e9),
        ns if ns >= 0.999_999_5e6 => format!("{:.3} ms", ns / 1e6),
        ns if ns >= 0.999_5e3 => format!("{:.3} µs", ns / 1e3),
        ns => format!("{ns:.0} ns"),
    }
}

/// A cost in its metric's unit, to the last digit: a floating point number would round those beyond 2^53.
pub(crate) fn whole_cost(unit: Unit, whole: u64) -> String {
    match unit {
        Unit::Nanoseconds => duration(whole as f64),
        Unit::Bytes => format!("{} B", grouped(whole)),
        _ => grouped(whole),
    }
}

/// A cost in its metric's unit, with the unit where it has a name.
pub(crate) fn cost(unit: Unit, cost: f64) -> String {
    match unit {
        Unit::Nanoseconds => duration(cost),
        Unit::Bytes => format!("{} B", grouped(cost.round() as u64)),
        _ if cost < 100.0 && cost.fract() != 0.0 => format!("{cost:.2}"),
        _ => grouped(cost.round() as u64),
    }
}

/// `count` and the noun, which gets an s unless there is one.
pub fn plural(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(count))
}

/// A number of 0 or more: its whole part, exactly, and the rest below 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quanta {
    pub(crate) whole: u64,
    pub(crate) rest: f64,
}

impl Quanta {
    pub(crate) fn rounded(self) -> u64 {
        self.whole.saturating_add(u64::from(self.rest >= 0.5))
    }
}

impl From<f64> for Quanta {
    fn from(number: f64) -> Self {
        let number = number.max(0.0);
        Self { whole: number as u64, rest: number.fract() }
    }
}

/// Rounds `parts` to whole numbers that add up to `whole`, by largest remainder.
///
/// `whole` should be the sum of `parts`, rounded; each result is then less than one away from
/// its part, or two where two sums had to be made to agree.
pub(crate) fn apportion(parts: &[Quanta], whole: u64) -> Vec<u64> {
    let mut rounded: Vec<u64> = parts.iter().map(|part| part.whole).collect();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by(|&a, &b| parts[b].rest.total_cmp(&parts[a].rest));
    let sum = rounded.iter().fold(0, |sum: u64, part| sum.saturating_add(*part));
    if parts.is_empty() {
        return rounded;
    }
    for &at in order.iter().cycle().take(whole.saturating_sub(sum).min(2 * parts.len() as u64) as usize) {
        rounded[at] += 1;
    }
    let mut excess = sum.saturating_sub(whole);
    for &at in order.iter().rev() {
        let taken = excess.min(1).min(rounded[at]);
        rounded[at] -= taken;
        excess -= taken;
    }
    rounded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three_digits() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn durations_choose_their_unit() {
        let of = [5.02e9, 999_999_999.0, 1.25e6, 2_500.0, 17.0, 0.0].map(duration);
        assert_eq!(of, ["5.020 s", "1.000 s", "1.250 ms", "2.500 µs", "17 ns", "0 ns"]);
    }

    #[test]
    fn rounded_parts_add_up_to_the_rounded_whole() {
        let of = |parts: &[f64], whole| {
            apportion(&parts.iter().copied().map(Quanta::from).collect::<Vec<_>>(), whole)
        };
        assert_eq!(of(&[1.4, 1.4, 1.2], 4), [2, 1, 1]);
        assert_eq!(of(&[0.3, 0.3, 0.3], 1), [1, 0, 0]);
        assert_eq!(of(&[2.0, 1.1], 2), [1, 1]);
        assert_eq!(of(&[], 0), [0_u64; 0]);
    }
}
