//! How far the costs of functions can be trusted where calls were timed.

use treering_profile::{CallBias, NodeId, RecursionRule, Unit};

use crate::correct::{Corrected, is_estimated, untimed};
use crate::graph::{CallGraph, FunctionCost};
use crate::identity::Identity;

/// How far the self cost of a function can be trusted where calls were timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reliability {
    /// How far the true self cost may be from the corrected one, in the unit of the metric. The
    /// sum over the function's nodes, as all of them err the same way. Nothing where nothing was
    /// corrected.
    pub uncertainty: Option<u64>,
    /// Whether the function takes so little time, by itself and for each call, that it cannot be
    /// told from the cost of measuring: calls are exact then, the time is not resolved.
    pub unresolved: bool,
    /// Whether only one of N calls was timed, so that the costs are estimates.
    pub estimated: bool,
    /// How many calls the self cost has no part of, since they were not timed. In a flat profile it is not known what to add
    /// for them; elsewhere it is estimated for all.
    pub untimed: u64,
}

/// A function whose calls take less than this many times their bias is not resolved.
const RESOLVED_FROM: f64 = 5.0;

impl CallGraph {
    /// Says of every function how far its self cost can be trusted. `part` is what the graph was
    /// made of.
    pub fn with_reliability(mut self, part: &Corrected<'_>) -> Self {
        let profile = &*part.profile;
        if profile.activations.is_none() && part.metric.is_none() || profile.is_arcs_only() {
            return self;
        }
        let corrected = part.metric == Some(self.basis.metric);
        let is_flat = profile.recursion == RecursionRule::Flat
            && profile.metrics[self.basis.metric.index()].unit == Unit::Nanoseconds;
        let identity = Identity::of(profile);
        let mut of_functions = vec![Reliability::default(); profile.functions.len()];
        for node in profile.tree.nodes() {
            let known = &mut of_functions[identity.representative(profile.tree.function(node)).index()];
            if is_estimated(profile, node) {
                known.estimated = true;
                known.untimed += if is_flat { untimed(profile, node) } else { 0 };
            }
            let uncertainty = part.uncertainty.get(node.index()).filter(|_| corrected);
            let Some(uncertainty) = uncertainty else { continue };
            known.uncertainty = Some(known.uncertainty.unwrap_or(0).saturating_add(*uncertainty));
        }
        let least = self.basis.correction.map_or(0.0, |correction| resolved_from(&correction.bias));
        for cost in &mut self.functions {
            cost.reliability = of_functions[cost.function.index()];
            let calls = cost.calls_of_self_cost();
            let each = cost.self_cost.cost as f64 / calls.max(1) as f64;
            cost.reliability.unresolved = calls > 0 && each < least;
        }
        self
    }
}

impl FunctionCost {
    /// How many calls the self cost is of; 0 where calls were not counted.
    pub fn calls_of_self_cost(&self) -> u64 {
        self.calls.map_or(0, |calls| calls.all.saturating_sub(self.reliability.untimed))
    }
}

/// How long a call takes at least that can be told from the cost of measuring it, in nanoseconds. A
/// processor hides that cost in work, but not in less than it would take by itself.
fn resolved_from(bias: &CallBias) -> f64 {
    (RESOLVED_FROM * bias.pair_ns()).max(bias.empty_inside_ns + bias.empty_outside_ns)
}

impl Corrected<'_> {
    /// Whether the self cost of a node cannot be told from the cost of measuring; see
    /// [`Reliability::unresolved`].
    pub fn is_unresolved(&self, node: NodeId) -> bool {
        let (Some(metric), Some(bias)) = (self.metric, self.profile.metadata.call_bias) else { return false };
        let calls = self.profile.tree.calls(node);
        let cost = self.profile.tree.self_cost(metric, node) as f64;
        calls > 0 && cost < resolved_from(&bias) * calls as f64
    }
}
