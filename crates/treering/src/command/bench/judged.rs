//! The change of one metric between two runs, and how sure it is.

use treering_archive::{Manifest, Measured, Unit, median, metric};
use treering_measure::{Estimate, Judgement, LEAST_ROUNDS, Outcome};

use super::amount::percent;
use crate::arguments::is_beyond;

/// The change of a metric, always from base to head.
#[derive(Clone, Debug)]
pub struct Judged {
    pub base: f64,
    pub head: f64,
    pub unit: Unit,
    pub outcome: Outcome,
    /// The change as a part of the base; nothing from 0 to something.
    pub change: Option<f64>,
    /// Where the change lies with 99 % confidence; nothing of counts and of single values.
    pub interval: Option<(f64, f64)>,
    /// Whether both were measured at different times, of which the interval tells nothing.
    pub is_incomparable: bool,
    /// The rounds of the side that has fewer.
    pub rounds: usize,
}

/// Whether a metric is a time, which only one machine's runs in one session have in common.
pub fn is_time(name: &str) -> bool {
    [metric::CPU, metric::WALL].contains(&name)
}

/// The metric by the user's name for it: `time` is the processor time, or the wall time of runs that have no other.
pub fn metric_of<'a>(name: &'a str, runs: &[&Manifest]) -> &'a str {
    let all_have = |name: &str| runs.iter().all(|run| run.samples.contains_key(name));
    match name {
        "time" if all_have(metric::CPU) || !all_have(metric::WALL) => metric::CPU,
        "time" => metric::WALL,
        other => other,
    }
}

/// The change of a metric that both runs have.
pub fn judge(name: &str, base: &Manifest, head: &Manifest, floor: f64) -> Option<Judged> {
    let sides = (base.samples.get(name)?, head.samples.get(name)?);
    let (first, second) = (median(&sides.0.values)?, median(&sides.1.values)?);
    let change = match first {
        0.0 => (second == 0.0).then_some(0.0),
        _ => Some((second - first) / first.abs()),
    };
    let rounds = sides.0.values.len().min(sides.1.values.len());
    let is_one_session = base.session == head.session && !base.session.is_empty();
    let is_incomparable = is_time(name) && !is_one_session;
    let of = |outcome, interval| Judged {
        base: first,
        head: second,
        unit: sides.1.unit,
        outcome,
        change,
        interval,
        is_incomparable,
        rounds,
    };
    if name == metric::INSTRUCTIONS {
        return Some(of(of_counts(sides, second - first), None));
    }
    let Some(estimate) = estimate(sides) else {
        // Without an interval, only no change at all is certain. Times that are equal may be so by chance: clocks have steps.
        let is_certain = change == Some(0.0) && !is_incomparable;
        return Some(of(if is_certain { Outcome::Same } else { Outcome::Undecided }, None));
    };
    let outcome = match is_incomparable {
        true => Outcome::Undecided,
        false => Judgement::of(estimate, None, floor, rounds).outcome,
    };
    let interval = Some((estimate.low, estimate.high));
    Some(Judged { change: Some(estimate.change), ..of(outcome, interval) })
}

/// A change of counts is a change, but not where it is within four times of what counts of one program differ by.
fn of_counts((base, head): (&Measured, &Measured), change: f64) -> Outcome {
    const FACTOR: f64 = 4.0;
    let own = spread(&base.values).max(spread(&head.values));
    match change {
        0.0 if own == 0.0 => Outcome::Same,
        _ if change.abs() <= FACTOR * own => Outcome::Undecided,
        _ if change > 0.0 => Outcome::More,
        _ => Outcome::Less,
    }
}

/// By how much the values differ at most.
fn spread(values: &[f64]) -> f64 {
    let least = values.iter().copied().reduce(f64::min).unwrap_or(0.0);
    values.iter().copied().reduce(f64::max).unwrap_or(0.0) - least
}

fn estimate((base, head): (&Measured, &Measured)) -> Option<Estimate> {
    let rounds = base.values.len().min(head.values.len());
    // The same pairs give the same interval.
    const SEED: u64 = 1;
    if rounds < LEAST_ROUNDS {
        return None;
    }
    Estimate::of_change(&[&base.values[..rounds]], &head.values[..rounds], SEED)
}

impl Judged {
    /// `▲`, `▼`, `?` or nothing.
    pub fn mark(&self) -> &'static str {
        match self.outcome {
            Outcome::More => "▲",
            Outcome::Less => "▼",
            Outcome::Same => " ",
            Outcome::Undecided => "?",
        }
    }

    /// `+3.2 % [+1.6, +4.3]`.
    pub fn text(&self) -> String {
        let change = self.change.map_or_else(|| "from 0".to_owned(), percent);
        let bound = |bound: f64| percent(bound).trim_end_matches(" %").to_owned();
        match self.interval {
            Some((low, high)) => format!("{change} [{}, {}]", bound(low), bound(high)),
            None => change,
        }
    }

    /// Whether the change is surely beyond a limit, surely within it, or neither.
    pub fn against(&self, limit: f64) -> Option<bool> {
        let change = self.change.unwrap_or(f64::INFINITY);
        match (self.outcome, self.interval) {
            (Outcome::Less | Outcome::Same, _) => Some(false),
            (Outcome::More, _) => Some(is_beyond(change, limit)),
            (Outcome::Undecided, Some((_, high))) if !self.is_incomparable && !is_beyond(high, limit) => {
                Some(false)
            }
            (Outcome::Undecided, _) => None,
        }
    }

    /// The outcome as a word of JSON.
    pub fn outcome_word(&self) -> &'static str {
        match self.outcome {
            Outcome::More => "more",
            Outcome::Less => "less",
            Outcome::Same => "same",
            Outcome::Undecided => "undecided",
        }
    }

    /// All of it as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "base": self.base, "head": self.head, "unit": self.unit, "change": self.change,
            "low": self.interval.map(|(low, _)| low), "high": self.interval.map(|(_, high)| high),
            "outcome": self.outcome_word(), "rounds": self.rounds,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use treering_measure::FLOOR;

    use super::*;

    fn run(session: &str, name: &str, values: &[f64]) -> Manifest {
        let measured = Measured { unit: Unit::Ns, values: values.to_vec() };
        let samples = [(name.to_owned(), measured)].into();
        Manifest { session: session.to_owned(), samples, ..Manifest::default() }
    }

    const BASE: [f64; 10] = [10.1, 10.0, 10.2, 10.1, 9.9, 10.0, 10.1, 10.0, 10.2, 10.1];

    #[test]
    fn times_of_one_session_are_judged_and_those_of_two_are_not() {
        let head = BASE.map(|value| value * 1.1);
        let judged = |session: &str| {
            judge("cpu", &run("a", "cpu", &BASE), &run(session, "cpu", &head), FLOOR).unwrap()
        };
        assert_eq!((judged("a").outcome, judged("a").mark()), (Outcome::More, "▲"));
        assert_eq!(judged("b").outcome, Outcome::Undecided);
        assert_eq!(judged("a").against(0.05), Some(true));
        assert_eq!(judged("b").against(0.05), None);
        assert_eq!(
            judge("cpu", &run("a", "cpu", &BASE), &run("a", "wall", &BASE), FLOOR).map(|of| of.base),
            None
        );
    }

    #[test]
    fn counts_are_exact_and_few_rounds_decide_nothing() {
        let of = |name: &str, base: f64, head: f64| {
            judge(name, &run("a", name, &[base]), &run("b", name, &[head]), FLOOR).unwrap()
        };
        assert_eq!(of("instructions", 1000.0, 1001.0).outcome, Outcome::More);
        assert_eq!(of("instructions", 1000.0, 1000.0).outcome, Outcome::Same);
        assert_eq!(of("instructions", 1000.0, 1001.0).against(0.01), Some(false));
        assert_eq!(of("instructions", 0.0, 5.0).text(), "from 0");
        assert_eq!(of("memory", 1000.0, 3000.0).outcome, Outcome::Undecided);
        assert_eq!(of("memory", 1000.0, 1000.0).outcome, Outcome::Same);
    }

    #[test]
    fn equal_times_of_two_sessions_decide_nothing() {
        let judged = |session: &str| {
            judge("cpu", &run("a", "cpu", &[1e7]), &run(session, "cpu", &[1e7]), FLOOR).unwrap()
        };
        assert_eq!((judged("a").outcome, judged("a").against(0.01)), (Outcome::Same, Some(false)));
        assert_eq!((judged("b").outcome, judged("b").against(0.01)), (Outcome::Undecided, None));
    }

    #[test]
    fn nothing_that_stays_nothing_is_the_same_and_signs_are_those_of_the_difference() {
        let judged = |base: f64, head: f64| {
            judge("leaks", &run("a", "leaks", &[base; 15]), &run("a", "leaks", &[head; 15]), FLOOR)
        };
        let outcome = |base: f64, head: f64| judged(base, head).unwrap().outcome;
        assert_eq!((outcome(0.0, 0.0), outcome(0.0, 3.0)), (Outcome::Same, Outcome::Undecided));
        assert_eq!(judged(0.0, 0.0).unwrap().text(), "0.0 %");
        assert_eq!(judged(-10.0, -20.0).unwrap().text(), "−100 %");
        assert_eq!(judged(-10.0, -5.0).unwrap().text(), "+50.0 %");
    }

    #[test]
    fn counts_that_differ_as_much_as_those_of_one_program_are_undecided() {
        let outcome = |base: &[f64], head: &[f64]| {
            let sides = [base, head].map(|values| run("", "instructions", values));
            judge("instructions", &sides[0], &sides[1], FLOOR).unwrap().outcome
        };
        assert_eq!(outcome(&[100.0, 100.0], &[101.0, 101.0]), Outcome::More);
        assert_eq!(outcome(&[100.0], &[99.0, 99.0]), Outcome::Less);
        assert_eq!(outcome(&[100.0, 100.0], &[100.0]), Outcome::Same);
        assert_eq!(outcome(&[100.0, 110.0], &[140.0, 145.0]), Outcome::Undecided);
        assert_eq!(outcome(&[100.0, 110.0], &[105.0]), Outcome::Undecided);
        assert_eq!(outcome(&[100.0, 110.0], &[150.0, 151.0]), Outcome::More);
    }
}
