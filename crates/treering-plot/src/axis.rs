//! Axes: where values stand, and which ones are written beside them.

/// The unit of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// A number of something.
    Count,
    /// Parts of something, shown as changes in percent.
    Change,
}

/// From which value on, which factor and which name.
type Steps = [(f64, &'static str); 4];

impl Unit {
    fn steps(self) -> Steps {
        match self {
            Self::Nanoseconds => [(1e9, " s"), (1e6, " ms"), (1e3, " µs"), (1.0, " ns")],
            Self::Bytes => [(1e9, " GB"), (1e6, " MB"), (1e3, " kB"), (1.0, " B")],
            Self::Count => [(1e12, " T"), (1e9, " G"), (1e6, " M"), (1.0, "")],
            Self::Change => [(0.01, " %"); 4],
        }
    }

    /// A value as people write it: `12.5 ms`, `8,000`, `+3 %`.
    pub fn text(self, value: f64) -> String {
        let steps = self.steps();
        let (factor, name) = steps.into_iter().find(|(factor, _)| value.abs() >= *factor).unwrap_or(steps[3]);
        let sign = match (self, value) {
            (_, ..0.0) => "−",
            (Self::Change, 0.000_05..) => "+",
            _ => "",
        };
        format!("{sign}{}{name}", digits(value.abs() / factor))
    }
}

/// At most three digits, or a whole number with commas.
fn digits(value: f64) -> String {
    let decimals = match value {
        _ if (value - value.round()).abs() < 1e-9 * value.max(1.0) => 0,
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

/// An axis from one value to another, over some pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    from: f64,
    to: f64,
    is_log: bool,
    pixels: (f64, f64),
}

impl Axis {
    /// An axis for values of 0 and more that differ by factors, with some room around them.
    pub(crate) fn logarithmic(values: impl Iterator<Item = f64>, pixels: (f64, f64)) -> Self {
        const ROOM: f64 = 1.2;
        let (from, to) = range(values.filter(|value| *value > 0.0)).unwrap_or((1.0, 10.0));
        Self { from: from / ROOM, to: to * ROOM, is_log: true, pixels }
    }

    /// An axis with some room around the values.
    pub(crate) fn linear(values: impl Iterator<Item = f64>, pixels: (f64, f64)) -> Self {
        let (from, to) = range(values).unwrap_or((0.0, 1.0));
        let room = if to > from { (to - from) * 0.08 } else { from.abs().max(1.0) * 0.05 };
        Self { from: from - room, to: to + room, is_log: false, pixels }
    }

    /// An axis from exactly one value to exactly another.
    pub(crate) fn exact(from: f64, to: f64, pixels: (f64, f64)) -> Self {
        Self { from, to: if to > from { to } else { from + 1.0 }, is_log: false, pixels }
    }

    pub(crate) fn from(&self) -> f64 {
        self.from
    }

    /// The pixel of a value; values beyond the ends stand at these.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.is_log { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let part = (scale(value) - scale(self.from)) / (scale(self.to) - scale(self.from));
        self.pixels.0 + part.clamp(0.0, 1.0) * (self.pixels.1 - self.pixels.0)
    }

    /// Round values along it, about `number` of them.
    pub(crate) fn ticks(&self, number: usize) -> Vec<f64> {
        if !self.is_log {
            return self.even(number);
        }
        // 1, 2, 5 or 1, 3 of each power of ten, or the powers alone.
        let powers = self.from.log10().floor() as i32..=self.to.log10().ceil() as i32;
        let with = |leading: &[f64]| -> Vec<f64> {
            let all =
                powers.clone().flat_map(|power| leading.iter().map(move |digit| digit * 10_f64.powi(power)));
            all.filter(|tick| (self.from..=self.to).contains(tick)).collect()
        };
        let choices = [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]].map(with);
        let fits = choices.iter().find(|ticks| ticks.len() <= number + 1).cloned();
        let ticks = fits.unwrap_or_else(|| {
            let every = choices[2].len().div_ceil(number.max(1));
            choices[2].iter().copied().step_by(every).collect()
        });
        if ticks.len() < 2 { self.even(number) } else { ticks }
    }

    fn even(&self, number: usize) -> Vec<f64> {
        let raw = (self.to - self.from) / number.max(1) as f64;
        let power = 10_f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|step| *step >= raw);
        let step = step.unwrap_or(raw);
        let first = (self.from / step).ceil() as i64;
        let last = (self.to / step).floor() as i64;
        (first..=last).map(|at| at as f64 * step).collect()
    }
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = values.filter(|value| value.is_finite());
    finite.fold(None, |range, value| {
        let (from, to) = range.unwrap_or((value, value));
        Some((f64::min(from, value), f64::max(to, value)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_unit_that_suits_them() {
        let of = [
            (Unit::Nanoseconds, 1.5e6),
            (Unit::Bytes, 19.7e6),
            (Unit::Count, 8000.0),
            (Unit::Count, 476.52e6),
        ];
        assert_eq!(of.map(|(unit, value)| unit.text(value)), ["1.5 ms", "19.7 MB", "8,000", "477 M"]);
        assert_eq!([0.03, -0.0564, 0.0].map(|change| Unit::Change.text(change)), ["+3 %", "−5.64 %", "0 %"]);
    }

    #[test]
    fn ticks_are_round_and_within_the_axis() {
        let log = Axis::logarithmic([3.5, 245.0].into_iter(), (0.0, 100.0));
        assert_eq!(log.ticks(4), [3.0, 10.0, 30.0, 100.0]);
        let wide = Axis::logarithmic([1.0, 1e12].into_iter(), (0.0, 100.0));
        assert!(wide.ticks(4).len() <= 5, "{:?}", wide.ticks(4));
        let linear = Axis::linear([472e6, 510e6].into_iter(), (0.0, 100.0));
        assert_eq!(linear.ticks(5), [470e6, 480e6, 490e6, 500e6, 510e6]);
        // No value, one value, and values below 0 have an axis as well.
        for values in [&[][..], &[7.0], &[-0.03, 0.05]] {
            let axis = Axis::linear(values.iter().copied(), (0.0, 100.0));
            assert!(axis.ticks(4).len() >= 2, "{values:?}");
            assert!(values.iter().all(|value| (0.0..=100.0).contains(&axis.at(*value))));
        }
    }
}
