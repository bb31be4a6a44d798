//! The notes for a reader of a run whose calls were timed: the cost of measuring, the losses, and the program's own
//! notes.

use treering_analysis::{Basis, Correction};
use treering_profile::{Benchmark, CallBias, Losses, Metadata, Profile, Unit};

use crate::number::{percent, plural, whole_cost};
use crate::printable::printable;

/// `sort: sorts numbers (n = 3, seed = 7)`, and the results.
pub(crate) fn benchmark_lines(metadata: &Metadata) -> Vec<(&'static str, String)> {
    let Some(benchmark) = &metadata.benchmark else { return Vec::new() };
    let mut lines = vec![("bench", named(benchmark))];
    if !benchmark.results.is_empty() {
        lines.push(("results", list(&benchmark.results)));
    }
    lines
}

fn named(benchmark: &Benchmark) -> String {
    let mut text = printable(&benchmark.name).into_owned();
    if !benchmark.description.is_empty() {
        text += &format!(": {}", printable(&benchmark.description));
    }
    if !benchmark.parameters.is_empty() {
        text += &format!(" ({})", list(&benchmark.parameters));
    }
    text
}

fn list(values: &[(String, String)]) -> String {
    let each = values.iter().map(|(name, value)| format!("{} = {}", printable(name), printable(value)));
    each.collect::<Vec<_>>().join(", ")
}

/// The meaning of the costs, and the cost of measuring them.
pub(crate) fn metric_lines(profile: &Profile, basis: &Basis) -> Vec<(&'static str, String)> {
    let metric = &profile.metrics[basis.metric.index()];
    let amount = |whole: u64| whole_cost(metric.unit, whole);
    let run = amount(basis.run.cost);
    let (mut lines, bias) = match basis.correction {
        Some(Correction { raw_cost, removed, bias }) => {
            let share = percent(removed as f64 / basis.run.cost.max(1) as f64);
            let metric =
                format!("{}, {run} in all, corrected; {} as measured", metric.name, amount(raw_cost));
            let overhead =
                format!("{} of measuring subtracted ({share} % of the corrected time)", amount(removed));
            (vec![("metric", metric), ("overhead", overhead)], Some(bias))
        }
        None => (vec![("metric", format!("{}, {run} in all", metric.name))], None),
    };
    let unused = profile.metadata.call_bias.filter(|_| bias.is_none() && metric.unit == Unit::Nanoseconds);
    lines.extend(bias.map(|bias| ("bias", bias_text(&bias))));
    lines.extend(unused.map(|bias| ("bias", format!("{}; not subtracted", bias_text(&bias)))));
    lines
}

/// `3.00 ns a call: 0.50 inside, 2.50 outside, spread 0.25; up to 17.75 where a call does nothing`.
fn bias_text(bias: &CallBias) -> String {
    let CallBias { inside_ns, outside_ns, spread_ns, .. } = bias;
    let empty = bias.empty_inside_ns + bias.empty_outside_ns;
    format!(
        "{:.2} ns a call: {inside_ns:.2} inside, {outside_ns:.2} outside, spread {spread_ns:.2}; \
         up to {empty:.2} where a call does nothing",
        bias.pair_ns()
    )
}

/// Lost call events, if there are any.
pub(crate) fn lost_events(losses: &Losses) -> Option<String> {
    let Losses { unbalanced_leaves, branched_leaves, clock_steps_back, dropped_events, .. } = *losses;
    let parts = [
        (dropped_events > 0).then(|| format!("{} dropped", plural(dropped_events, "event"))),
        (unbalanced_leaves > 0).then(|| format!("{} without an enter", plural(unbalanced_leaves, "leave"))),
        (branched_leaves > 0).then(|| {
            format!("{} of a leaf not timed, with calls of their own", plural(branched_leaves, "activation"))
        }),
        (clock_steps_back > 0)
            .then(|| format!("the clock stepped back {}", plural(clock_steps_back, "time"))),
    ];
    let told: Vec<String> = parts.into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// Remarks on activations that did not end as they should.
pub(crate) fn unwound(losses: &Losses) -> Option<String> {
    let unwound = losses.unwound_activations;
    let text = || format!("{} left by an exception or a long jump", plural(unwound, "activation"));
    (unwound > 0).then(text)
}
