//! The conclusion from counts and times.

use treering_measure::{Estimate, Outcome as Times};
use treering_report::{Outcome, Verdict as Counts, grouped};

use crate::arguments::is_beyond;

use super::Comparison;
use super::exact::Exact;
use super::timed::Timed;

/// The conclusion.
pub(super) struct Verdict {
    pub(super) outcome: Outcome,
    /// The first line.
    pub(super) text: String,
    /// Whether instructions and time have changed in opposite directions.
    pub(super) disagrees: bool,
    pub(super) status: u8,
}

impl Verdict {
    pub(super) fn of(comparison: &Comparison) -> Self {
        match (&comparison.exact, &comparison.timed) {
            (Some(exact), None) => Self::of_counts(exact, comparison.limit),
            (None, Some(timed)) => Self::of_times(timed, comparison.limit),
            (Some(exact), Some(timed)) => Self::of_both(exact, timed, comparison.limit),
            (None, None) => {
                Self { outcome: Outcome::Undecided, text: String::new(), disagrees: false, status: 3 }
            }
        }
    }

    fn of_counts(exact: &Exact, limit: Option<f64>) -> Self {
        let outcome = exact_outcome(exact);
        let status = match outcome {
            Outcome::Undecided => 3,
            _ => u8::from(exact_is_beyond(exact, limit)),
        };
        Self { outcome, text: exact_text(exact), disagrees: false, status }
    }

    fn of_times(timed: &Timed, limit: Option<f64>) -> Self {
        let outcome = of_times(timed.judgement.outcome);
        let (change, limit) = (timed.change, limit.unwrap_or(f64::INFINITY));
        let status = match outcome {
            Outcome::More if is_beyond(change.change, limit) => 1,
            Outcome::Undecided if limit.is_finite() && !is_beyond(change.high, limit) => 0,
            Outcome::Undecided => 3,
            _ => 0,
        };
        Self { outcome, text: time_text(timed), disagrees: false, status }
    }

    /// Instructions decide; times only say whether they agree.
    fn of_both(exact: &Exact, timed: &Timed, limit: Option<f64>) -> Self {
        let counts = Self::of_counts(exact, limit);
        let disagrees = matches!(
            (counts.outcome, of_times(timed.judgement.outcome)),
            (Outcome::More, Outcome::Less) | (Outcome::Less, Outcome::More)
        );
        if !disagrees {
            return counts;
        }
        let much = counts.text.split(": ").next().unwrap_or_default();
        let text = format!("{much}, {}: they disagree", time_text(timed));
        let status = if counts.status == 1 { 1 } else { 3 };
        Self { outcome: Outcome::Undecided, text, disagrees, status }
    }

    /// The outcome of times; none where they contradict the counts.
    pub(super) fn time_outcome(&self, timed: &Timed) -> Outcome {
        if self.disagrees { Outcome::Undecided } else { of_times(timed.judgement.outcome) }
    }
}

fn of_times(outcome: Times) -> Outcome {
    match outcome {
        Times::More => Outcome::More,
        Times::Less => Outcome::Less,
        Times::Same => Outcome::Same,
        Times::Undecided => Outcome::Undecided,
    }
}

/// The outcome of counts, without what two runs of the base differ by.
pub(super) fn exact_outcome(exact: &Exact) -> Outcome {
    match exact.difference.apart.left_change {
        _ if exact.difference.apart.is_all() => Outcome::Same,
        _ if exact.compilers.is_some() => Outcome::Undecided,
        1.. => Outcome::More,
        0 => Outcome::Same,
        _ => Outcome::Less,
    }
}

/// How much more head counts, as a part of base, without what two runs of the base differ by.
pub(super) fn exact_change(exact: &Exact) -> Option<f64> {
    let change = exact.difference.relative_change();
    if exact.difference.apart.is_all() { change.map(|_| 0.0) } else { change }
}

pub(super) fn exact_is_beyond(exact: &Exact, limit: Option<f64>) -> bool {
    let is_decided = exact_outcome(exact) != Outcome::Undecided;
    is_decided && limit.is_some_and(|limit| exact_change(exact).is_none_or(|change| is_beyond(change, limit)))
}

/// The line for counts.
pub(super) fn exact_text(exact: &Exact) -> String {
    if exact.difference.apart.differing > 0 && exact.difference.apart.is_all() {
        return "no difference beyond what runs of base differ by".to_owned();
    }
    let verdict = Counts::of(&exact.difference).text;
    match &exact.compilers {
        Some(compilers) if exact_outcome(exact) == Outcome::Undecided => {
            let much = verdict.split(": ").next().unwrap_or_default();
            format!("undecided: other compiler ({} → {}), {much}", compilers.base, compilers.head)
        }
        _ => verdict,
    }
}

/// The line for times.
pub(super) fn time_text(timed: &Timed) -> String {
    let change = percent(timed.change.change);
    let bounds = interval(&timed.change);
    let floor = floor(timed);
    let rounds = grouped(timed.samples.base.len() as u64);
    match timed.judgement.outcome {
        Times::More | Times::Less => format!("{change} CPU time {bounds}"),
        Times::Same => format!("same within {floor}: CPU time {change} {bounds}, {rounds} rounds"),
        Times::Undecided => {
            format!("undecided: CPU time {change} {bounds} after {rounds} rounds, floor {floor}")
        }
    }
}

pub(super) fn floor(timed: &Timed) -> String {
    format!("{} %", (timed.floor * 1000.0).round() / 10.0)
}

/// A change with its sign: `−13.5 %`.
pub(super) fn percent(change: f64) -> String {
    format!("{} %", signed(change))
}

/// Bounds in percent: `[−14.5, −11.5]`.
pub(super) fn interval(estimate: &Estimate) -> String {
    format!("[{}, {}]", signed(estimate.low), signed(estimate.high))
}

fn signed(part: f64) -> String {
    let digits = match part.is_infinite() {
        true => "∞".to_owned(),
        false => format!("{:.1}", part.abs() * 100.0),
    };
    let sign = if part < 0.0 && digits != "0.0" { '−' } else { '+' };
    format!("{sign}{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_their_sign() {
        assert_eq!([-0.1351, 0.001, -0.0001].map(percent), ["−13.5 %", "+0.1 %", "+0.0 %"]);
        let estimate = Estimate { change: 0.0, low: -0.02, high: 0.024 };
        assert_eq!(interval(&estimate), "[−2.0, +2.4]");
        let one_round = Estimate { change: 0.0, low: f64::NEG_INFINITY, high: f64::INFINITY };
        assert_eq!(interval(&one_round), "[−∞, +∞]");
    }
}
