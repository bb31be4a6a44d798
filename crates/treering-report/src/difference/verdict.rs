//! The first line: how much, and why.

use treering_compare::{Against, Cause, Difference, FunctionChange, Parts, Reason, Sides};

use crate::name::fit;
use crate::number::{cost, grouped, plural, whole_cost};
use crate::printable::printable;

use super::amounts::{Amounts, calls, percent};

/// Whether the head costs more than the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It does.
    More,
    /// It costs less.
    Less,
    /// Both cost the same, or differ by less than [`Verdict::FLOOR`] for sure.
    Same,
    /// It cannot be told.
    Undecided,
}

impl Outcome {
    /// The word for it in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::More => "more",
            Self::Less => "less",
            Self::Same => "same",
            Self::Undecided => "undecided",
        }
    }
}

/// The conclusion from a difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Whether the head costs more.
    pub outcome: Outcome,
    /// The change as a part of the base; nothing where the base cost nothing.
    pub change: Option<f64>,
    /// Between which parts of the base the true change lies; nothing where both are exact, or nothing is known of how
    /// much runs differ.
    pub interval: Option<(f64, f64)>,
    /// How much, and why, in one sentence.
    pub text: String,
}

impl Verdict {
    /// Differences of sampled or timed runs below this part of the base count as none.
    pub const FLOOR: f64 = 0.02;

    /// The verdict of a difference.
    pub fn of(difference: &Difference) -> Self {
        let change = difference.relative_change();
        let base = difference.run.base.cost as f64;
        let interval =
            difference.run_interval.filter(|_| base > 0.0).map(|(low, high)| (low / base, high / base));
        let outcome = outcome(difference, interval);
        Self { outcome, change, interval, text: text(difference, outcome, interval) }
    }
}

fn outcome(difference: &Difference, interval: Option<(f64, f64)>) -> Outcome {
    let by_sign = match difference.apart.left_change {
        1.. => Outcome::More,
        0 => Outcome::Same,
        _ => Outcome::Less,
    };
    let floor = if difference.is_exact { 0.0 } else { Verdict::FLOOR };
    let change = difference.relative_change().map_or(f64::INFINITY, f64::abs);
    match interval {
        None if difference.is_exact => by_sign,
        None => Outcome::Undecided,
        Some((low, high)) if (low > 0.0 || high < 0.0) && change >= floor => by_sign,
        Some((low, high)) if low >= -floor && high <= floor => Outcome::Same,
        Some(_) => Outcome::Undecided,
    }
}

/// Says that functions were set apart.
const BEYOND_CHANCE: &str = " beyond what runs of base differ by";

fn text(difference: &Difference, outcome: Outcome, interval: Option<(f64, f64)>) -> String {
    let metric = printable(&difference.metric);
    let changed = difference.functions.iter().filter(|row| row.self_cost.change() != 0).count();
    if difference.run.change() == 0
        && difference.apart.functions.is_empty()
        && (difference.is_exact || changed == 0)
    {
        let both = format!("{} {metric} in both", whole_cost(difference.unit, difference.run.base.cost));
        let count = difference.pairing.groups.len() as u64 - 1;
        let functions = plural(count, "function");
        let all = if count == 1 { "the one function".to_owned() } else { format!("all {functions}") };
        return match changed {
            // Few samples are equal by chance.
            0 if outcome == Outcome::Undecided => format!("undecided: {both}, {all} equal"),
            0 => format!("no difference: {both}, {all} equal"),
            _ => format!("no change of the run: {both}; {} of {functions} differ", grouped(changed as u64)),
        };
    }
    let amounts = Amounts::of_changes(difference);
    let decimals = if difference.is_exact { 2 } else { 1 };
    let much = percent(difference.relative_change(), decimals);
    let mut much = much.unwrap_or_else(|| amounts.signed(difference.apart.left_change));
    much += &format!(" {metric}");
    if !difference.apart.functions.is_empty() {
        much += BEYOND_CHANCE;
    }
    if let Some((low, high)) = interval {
        much += &format!(" [{:+.1}, {:+.1}]", low * 100.0, high * 100.0).replace('-', "−");
    }
    let head = match outcome {
        Outcome::Undecided => format!("undecided: {much}"),
        Outcome::Same if !difference.is_exact => format!("same within 2 %: {much}"),
        _ => much,
    };
    match (&difference.cause, difference.is_exact) {
        (Some(cause), _) => format!("{head}: {}", reason(difference, cause)),
        (None, true) => match first_beyond_chance(difference) {
            Some(first) if difference.functions.iter().all(|row| row.split.is_none()) => {
                format!("{head}: mostly {}, {}", name(&first.name), amounts.signed(first.self_cost.change()))
            }
            _ => format!("{head}: no call and no function explains a tenth of it"),
        },
        (None, false) => match difference.functions.first().filter(|row| row.certainty.is_certain) {
            Some(first) => {
                let bounds = first
                    .certainty
                    .interval
                    .map_or(String::new(), |interval| format!(" {}", amounts.interval(interval)));
                format!(
                    "{head}: mostly {}, {}{bounds}",
                    name(&first.name),
                    amounts.signed(first.self_cost.change())
                )
            }
            None => format!("{head}: no function changed by more than chance"),
        },
    }
}

/// The function with the largest change that is not set apart.
fn first_beyond_chance(difference: &Difference) -> Option<&FunctionChange> {
    let mut left = difference.functions.iter().filter(|row| !difference.apart.holds(row.group));
    left.next().filter(|row| row.self_cost.change() != 0)
}

/// A name in a sentence, shortened by its structure.
fn name(name: &str) -> String {
    const ROOM: usize = 60;
    fit(&printable(name), ROOM)
}

/// The call or the function that explains most of it, and what makes up for most of that.
pub(super) fn reason(difference: &Difference, cause: &Cause) -> String {
    let but = cause.against.map_or(String::new(), |against| but(difference, against));
    why(difference, cause) + &but
}

/// `; f costs 700,000 less`.
fn but(difference: &Difference, against: Against) -> String {
    let named = |group: usize| name(&difference.pairing.groups[group].name);
    let caller = match against.caller {
        None | Some(0) => String::new(),
        Some(caller) => format!("{} → ", named(caller)),
    };
    let much = Amounts::of_changes(difference).signed(against.part);
    let much = much.trim_start_matches(['+', '−']);
    let how = if against.part < 0 { "less" } else { "more" };
    format!("; {caller}{} costs {much} {how}", named(against.function))
}

fn why(difference: &Difference, cause: &Cause) -> String {
    let named = |group: usize| name(&difference.pairing.groups[group].name);
    let callee = named(cause.function);
    let row = difference.function(cause.function);
    match cause.reason {
        Reason::Calls { caller, calls: counts, instead_of } => {
            let mut text = match caller {
                0 => callee,
                caller => format!("{} → {callee}", named(caller)),
            };
            text += &format!(", {} calls", calls(counts));
            if let Some((gone, before)) = instead_of {
                text += &format!(", instead of {}, {} → 0", named(gone), grouped(before));
            } else if counts.base > 0 && counts.head > 0 && row.is_some_and(has_equal_cost_per_call) {
                text += ", cost per call unchanged";
            }
            text
        }
        Reason::ChangedCode { caller, callee: place, calls: counts } => match caller {
            _ if place == cause.function => format!("the changed code of {callee}"),
            None => format!("the changed code of {callee}, mostly in {}", named(place)),
            Some(caller) => format!(
                "the changed code of {callee}, mostly in {} → {}, {} calls",
                named(caller),
                named(place),
                calls(counts)
            ),
        },
        Reason::CostPerCall { with } => {
            let Some((row, counts)) = row.and_then(|row| Some((row, row.calls?))) else { return callee };
            let each = |cost: u64, calls: u64| cost as f64 / calls.max(1) as f64;
            let costs = with.map_or(row.self_cost.map(|cost| cost.cost), |with| with.cost);
            let (base, head) = (each(costs.base, counts.base), each(costs.head, counts.head));
            let with = with.map_or(String::new(), |with| parts(with, named));
            let unit = |value: f64| cost(difference.unit, value);
            let calls_text = match counts {
                Sides { base, head } if base == head => format!("{} as before", plural(base, "call")),
                _ => format!("{} calls", calls(counts)),
            };
            format!("{callee}, {} → {} per call{with}, {calls_text}", unit(base), unit(head))
        }
    }
}

/// ` with f`, ` with f, 2 more and its libraries`.
fn parts(with: Parts, named: impl Fn(usize) -> String) -> String {
    let more = with.functions.saturating_sub(1);
    let others = (more > 0).then(|| format!("{more} more"));
    let libraries = with.has_libraries.then(|| "its libraries".to_owned());
    let mut parts: Vec<String> =
        with.function.map(named).into_iter().chain(others).chain(libraries).collect();
    let last = parts.pop().unwrap_or_default();
    if parts.is_empty() { format!(" with {last}") } else { format!(" with {} and {last}", parts.join(", ")) }
}

/// Whether what a call costs makes nearly nothing of the change.
fn has_equal_cost_per_call(row: &FunctionChange) -> bool {
    row.split.is_some_and(|split| split.cost_per_call.unsigned_abs() * 20 <= split.more_calls.unsigned_abs())
}
