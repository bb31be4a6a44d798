//! The conclusion from timed rounds.

use crate::statistics::Estimate;

/// Whether head costs more than base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It does.
    More,
    /// It costs less.
    Less,
    /// The difference is below the floor, for sure.
    Same,
    /// It cannot be told from these rounds.
    Undecided,
}

/// From fewer rounds nothing is concluded: chance alone puts all of five on one side in one of sixteen comparisons.
pub const LEAST_ROUNDS: usize = 8;

/// Differences below this part of the base count as none, unless somebody says otherwise.
pub const FLOOR: f64 = 0.01;

/// The conclusion, and how to come to one where there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// Whether head costs more.
    pub outcome: Outcome,
    /// How many rounds would probably settle it; nothing where it is settled, or no reasonable number would.
    pub rounds_to_settle: Option<usize>,
}

impl Judgement {
    /// Concludes from the change, that of another set of runs of the base, and the floor, a part of the base.
    ///
    /// A difference is more than chance if the interval does not hold 0, and it is neither below the floor nor below what
    /// the control, which no change has made, differs by.
    pub fn of(change: Estimate, control: Option<Estimate>, floor: f64, rounds: usize) -> Self {
        let is_beyond_control = control.is_none_or(|control| change.change.abs() > control.change.abs());
        let settled = |outcome| Self { outcome, rounds_to_settle: None };
        if rounds < LEAST_ROUNDS {
            return Self { outcome: Outcome::Undecided, rounds_to_settle: Some(LEAST_ROUNDS.max(30)) };
        }
        if !change.holds_none() && change.change.abs() >= floor && is_beyond_control {
            return settled(if change.change > 0.0 { Outcome::More } else { Outcome::Less });
        }
        if change.low >= -floor && change.high <= floor {
            return settled(Outcome::Same);
        }
        Self { outcome: Outcome::Undecided, rounds_to_settle: rounds_to_settle(change, floor, rounds) }
    }
}

/// Intervals become narrower with the root of the number of rounds.
fn rounds_to_settle(change: Estimate, floor: f64, rounds: usize) -> Option<usize> {
    const MOST: f64 = 1000.0;
    /// Nobody estimates a width exactly.
    const MARGIN: f64 = 1.3;
    let size = change.change.abs();
    let towards_none = if change.change > 0.0 { size - change.low } else { change.high - change.change };
    let away = (change.high - change.change).max(change.change - change.low);
    let (width, wanted) = if size >= floor { (towards_none, size) } else { (away, floor - size) };
    let needed = rounds as f64 * (MARGIN * width / wanted).powi(2);
    let needed = (needed / 10.0).ceil() * 10.0;
    (needed <= MOST).then_some((needed as usize).max(rounds + 5))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(change: (f64, f64, f64), control: (f64, f64, f64)) -> Outcome {
        let estimate = |(change, low, high): (f64, f64, f64)| Estimate {
            change: change / 100.0,
            low: low / 100.0,
            high: high / 100.0,
        };
        Judgement::of(estimate(change), Some(estimate(control)), 0.02, 30).outcome
    }

    /// The examples of the design, measured on real programs.
    #[test]
    fn examples_have_their_outcome() {
        assert_eq!(judge((-13.5, -14.5, -11.5), (0.1, -2.0, 2.4)), Outcome::Less);
        assert_eq!(judge((2.8, -0.4, 5.1), (0.0, -1.0, 1.0)), Outcome::Undecided);
        assert_eq!(judge((0.7, -0.5, 1.5), (0.1, -1.0, 1.0)), Outcome::Same);
        assert_eq!(judge((3.6, 0.1, 5.5), (0.1, -1.0, 1.0)), Outcome::More);
        // Below the floor, although it is more than chance; and within the floor.
        assert_eq!(judge((1.8, 0.2, 2.8), (0.0, -0.1, 0.1)), Outcome::Undecided);
        assert_eq!(judge((1.5, 1.2, 1.8), (0.0, -0.1, 0.1)), Outcome::Same);
        // The same program differs from itself as much.
        assert_eq!(judge((3.6, 0.1, 5.5), (-3.7, -5.0, 1.1)), Outcome::Undecided);
    }

    #[test]
    fn rounds_that_would_settle_it_are_named() {
        let change = Estimate { change: 0.028, low: -0.004, high: 0.051 };
        let judgement = Judgement::of(change, None, 0.02, 15);
        assert_eq!(judgement.rounds_to_settle, Some(40));
        let hopeless = Estimate { change: 0.0199, low: -0.05, high: 0.08 };
        assert_eq!(Judgement::of(hopeless, None, 0.02, 15).rounds_to_settle, None);
        let few = Judgement::of(Estimate { change: 0.5, low: 0.4, high: 0.6 }, None, 0.02, 5);
        assert_eq!(few, Judgement { outcome: Outcome::Undecided, rounds_to_settle: Some(30) });
    }
}
