//! The page's header, as plain JSON: it is there before anything is inflated.

use serde_json::{Value, json};
use treering_analysis::{Basis, Measure, TotalSource};
use treering_profile::{MetricId, Run};

use crate::changes;
use crate::functions::Functions;
use crate::page::View;
use crate::time;

/// The page's head.
pub(crate) fn head(view: &View<'_>, functions: &Functions, tab: &str, notes: Vec<String>) -> Value {
    let profile = view.profile();
    let metadata = &profile.metadata;
    let metrics: Vec<Value> = profile.metrics().map(|(metric, _)| describe(view, metric)).collect();
    let all_notes: Vec<&str> =
        metadata.notes.iter().map(|note| note.0.as_str()).chain(notes.iter().map(String::as_str)).collect();
    json!({
        "title": view.title,
        "version": env!("CARGO_PKG_VERSION"),
        "collector": metadata.collector,
        "machine": metadata.machine,
        "parameters": metadata.parameters,
        "runs": profile.runs.iter().map(run).collect::<Vec<_>>(),
        "baseRuns": view.base_runs,
        "verdict": view.changes.as_ref().map(|changes| changes::verdict(changes, functions)),
        "losses": metadata.losses,
        "lossesUnknown": metadata.losses.unknown,
        "notes": all_notes,
        "unfinished": metadata.unfinished,
        "benchmark": metadata.benchmark,
        "callBias": metadata.call_bias,
        "facts": view.facts,
        "metrics": metrics,
        "metric": view.metric.index(),
        "shape": view.shape().as_str(),
        "nodes": profile.tree.len(),
        "functions": functions.len(),
        "threads": profile.threads.len(),
        "time": view.timeline().map(|timeline| time::head(profile, timeline)),
        "hasCalls": profile.tree.has_calls() || profile.arcs.iter().any(|arc| arc.calls > 0),
        "countsApart": profile.has_counts_apart() && view.base_runs.is_none(),
        "noSource": !view.with_source,
        "noBlocks": view.compared.as_ref().and_then(|compared| compared.blocks.as_ref().err()),
        "isPart": view.compared.as_ref().is_some_and(|compared| !compared.is_whole),
        "tab": tab,
    })
}

fn run(run: &Run) -> Value {
    json!({
        "command": run.command, "start_unix_ns": run.start_unix_ns, "wall_ns": run.duration_ns,
        "cpu_ns": run.cpu_ns, "end": run.end,
    })
}

fn describe(view: &View<'_>, metric: MetricId) -> Value {
    let profile = view.profile();
    let known = &profile.metrics[metric.index()];
    let basis = view.basis(metric);
    let sampling = known.sampling.as_ref();
    let (now, base) = sides(view.base_runs.as_deref(), &basis);
    let has_costs = profile.cost_metrics().any(|(id, _)| id == metric);
    let weights = known.weights().map(|weights| {
        json!({
            "squares": weights.squares, "unseen": weights.unseen, "per": weights.per, "hidden": weights.hidden,
            "knownCost": weights.of_known_cost,
        })
    });
    json!({
        "name": known.name, "unit": known.unit, "level": !has_costs,
        "samples": basis.samples.map(|samples| samples.index()),
        "period": sampling.and_then(|sampling| sampling.period),
        "jittered": sampling.and_then(|sampling| sampling.jittered),
        "weights": weights,
        "runCost": now.cost, "runSamples": now.samples, "runSquares": now.squares, "runUnseen": now.unseen,
        "baseCost": base.cost, "baseSamples": base.samples, "baseSquares": base.squares, "baseUnseen": base.unseen,
        "rawCost": basis.correction.map(|correction| correction.raw_cost),
        "totals": totals(TotalSource::of(profile, metric)),
    })
}

/// The page's words for how total costs are known.
fn totals(source: TotalSource) -> &'static str {
    match source {
        TotalSource::Derived | TotalSource::Measured => "known",
        TotalSource::Apportioned => "estimated",
        TotalSource::Bounded => "at least",
        TotalSource::Missing => "unknown",
    }
}

/// The costs of the new runs, and those of the base in a difference.
fn sides(base_runs: Option<&[bool]>, basis: &Basis) -> (Measure, Measure) {
    let Some(base_runs) = base_runs else { return (basis.run, Measure::default()) };
    let sum = |wanted: bool| -> Measure {
        let runs = basis.runs.iter().zip(base_runs).filter(|&(_, &base)| base == wanted);
        runs.map(|(run, _)| *run).sum()
    };
    (sum(false), sum(true))
}
