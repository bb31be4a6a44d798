//! Functions and arcs of profiles that have no tree, as the analysis has them.

use serde_json::{Value, json};
use treering_analysis::{ArcSource, Basis, CallGraph, Presentation};
use treering_profile::Profile;

use crate::columns::Columns;
use crate::functions::Functions;

/// The call graph in one metric.
pub(crate) fn graph(profile: &Profile, basis: &Basis, functions: &Functions, columns: &mut Columns) -> Value {
    let graph = CallGraph::of(profile, basis, Presentation::Contexts);
    let number = |function| functions.known(function).unwrap_or(0);
    let of = graph.functions.iter();
    let calls = graph.has_calls();
    let mut column = |values: Vec<u64>| columns.add(&values);
    let of_functions = json!({
        "fn": column(of.clone().map(|cost| number(cost.function).into()).collect()),
        "self": column(of.clone().map(|cost| cost.self_cost.cost).collect()),
        "total": column(of.clone().map(|cost| cost.total_cost.cost).collect()),
        "calls": calls.then(|| column(of.clone().map(|cost| cost.calls.map_or(0, |calls| calls.all)).collect())),
        "recursive": calls.then(|| column(of.clone().map(|cost| cost.calls.map_or(0, |calls| calls.recursive)).collect())),
        "cycle": column(of.clone().map(|cost| cost.cycle.map_or(0, |cycle| cycle as u64 + 1)).collect()),
    });
    let arcs = graph.arcs.iter();
    let of_arcs = json!({
        "caller": column(arcs.clone().map(|arc| arc.caller.map_or(0, number).into()).collect()),
        "callee": column(arcs.clone().map(|arc| number(arc.callee).into()).collect()),
        "calls": calls.then(|| column(arcs.clone().map(|arc| arc.calls).collect())),
        "total": column(arcs.clone().map(|arc| arc.total_cost.cost).collect()),
        "fromSelf": column(arcs.clone().map(|arc| arc.from_caller.self_cost.cost).collect()),
        "fromTotal": column(arcs.clone().map(|arc| arc.from_caller.total.cost).collect()),
        "toSelf": column(arcs.clone().map(|arc| arc.to_callee.self_cost.cost).collect()),
        "toTotal": column(arcs.clone().map(|arc| arc.to_callee.total.cost).collect()),
        "apportioned": column(arcs.map(|arc| u64::from(arc.source == ArcSource::Apportioned)).collect()),
    });
    json!({ "functions": of_functions, "arcs": of_arcs })
}
