//! The table of prof as JSON.

use serde::Serialize;
use treering_analysis::{CallGraph, FlatRow, SortKey, flat};
use treering_profile::Profile;

use super::{Place, RunObject, bounds, place, run, text};
use crate::options::Options;

/// The table of prof as JSON: `run` and `functions`, the largest first.
pub fn prof_json(profile: &Profile, graph: &CallGraph, options: &Options) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        view: &'static str,
        run: RunObject<'a>,
        functions: Vec<ProfObject<'a>>,
    }
    let rows = flat(profile, graph, options.sort.unwrap_or(SortKey::SelfCost));
    let shown = rows.iter().filter(|row| graph.basis.share(row.cost.self_cost.cost) >= options.min_share);
    let functions = shown.take(options.limit.unwrap_or(usize::MAX)).map(|row| object(profile, graph, row));
    text(&Document { view: "prof", run: run(profile, &graph.basis), functions: functions.collect() })
}

#[derive(Serialize)]
struct ProfObject<'a> {
    #[serde(flatten)]
    place: Place<'a>,
    self_share: f64,
    self_cost: u64,
    self_low: Option<u64>,
    self_high: Option<u64>,
    running_sum: u64,
    calls: Option<u64>,
    self_cost_per_call: Option<f64>,
}

fn object<'a>(profile: &'a Profile, graph: &CallGraph, row: &FlatRow<'_>) -> ProfObject<'a> {
    let own = row.cost.self_cost.cost;
    let calls = row.cost.calls.map(|calls| calls.all).filter(|&calls| calls > 0);
    let (self_low, self_high) = bounds(row.cost.self_interval, graph.basis.run.cost);
    ProfObject {
        place: place(profile, row.cost.function),
        self_share: graph.basis.share(own),
        self_cost: own,
        self_low,
        self_high,
        running_sum: row.running_sum,
        calls,
        self_cost_per_call: calls.filter(|_| graph.has_averages()).map(|calls| own as f64 / calls as f64),
    }
}
