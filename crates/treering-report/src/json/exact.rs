//! Exact counts beside costs that were sampled.

use std::collections::BTreeMap;

use serde::Serialize;
use treering_analysis::{Arc, ExactCost};
use treering_profile::FunctionId;

/// The counts of an exact metric for a function or an arc.
#[derive(Serialize)]
pub(super) struct ExactObject {
    #[serde(skip_serializing_if = "Option::is_none")]
    self_cost: Option<u64>,
    total_cost: Option<u64>,
}

pub(super) fn exact_of_function(exact: &[ExactCost], function: FunctionId) -> BTreeMap<String, ExactObject> {
    let object = |of: &ExactCost| ExactObject {
        self_cost: of.self_cost(function),
        total_cost: of.total_cost(function),
    };
    let known = |object: &ExactObject| object.self_cost.or(object.total_cost).is_some();
    exact.iter().map(|of| (of.name.clone(), object(of))).filter(|(_, object)| known(object)).collect()
}

pub(super) fn exact_of_arc(exact: &[ExactCost], arc: &Arc) -> BTreeMap<String, ExactObject> {
    let known = exact.iter().filter_map(|of| Some((of.name.clone(), of.arc(arc.caller, arc.callee)?)));
    known.map(|(name, cost)| (name, ExactObject { self_cost: None, total_cost: Some(cost) })).collect()
}
