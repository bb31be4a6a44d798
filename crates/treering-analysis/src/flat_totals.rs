//! Totals of profiles that have no contexts.

use std::collections::HashMap;

use treering_profile::{FunctionId, MetricId, Profile, RecursionRule};

use crate::basis::Basis;
use crate::contexts::{NodeFunctions, TreeArcs};
use crate::graph::CallGraph;
use crate::identity::Identity;
use crate::interval::Interval;
use crate::walk::Tally;

/// Where the total costs of functions come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TotalSource {
    /// They are derived from self costs, by the tree or by arcs.
    #[default]
    Derived,
    /// They were measured for each function: the profile is flat. No callees are known that they
    /// could be divided among.
    Measured,
    /// They are not known: the profile is flat, and totals were measured in another metric; or this metric was counted by
    /// function, beside stacks of another. Self costs stand in their place.
    Missing,
    /// They are not known: the profile has arcs without measured costs. The callees' cost is apportioned by calls
    /// instead, as gprof does, and may be off by any amount.
    Apportioned,
    /// They are known within bounds: some contexts were folded, as the tree was too large. Where total costs are asked
    /// for, the least is given, and [`FunctionCost::total_interval`](crate::FunctionCost) has both.
    Bounded,
}

impl TotalSource {
    /// Whether totals are known.
    pub fn is_known(self) -> bool {
        matches!(self, Self::Derived | Self::Measured)
    }

    /// The totals of a profile which has arcs but no tree.
    pub(crate) fn of_arcs(profile: &Profile, metric: MetricId) -> Self {
        // The cost of a function's calls of itself is part of its cost.
        let is_call = |arc: &&treering_profile::Arc| arc.caller != Profile::ROOT && arc.caller != arc.callee;
        let mut calls = profile.arcs.iter().filter(is_call).peekable();
        let measured =
            |arc: &treering_profile::Arc| arc.total_costs.iter().any(|(known, _)| *known == metric);
        if calls.peek().is_some() && calls.all(measured) { Self::Derived } else { Self::Apportioned }
    }

    /// The totals of a profile, by its tree, its arcs or its functions.
    pub fn of(profile: &Profile, metric: MetricId) -> Self {
        let measured = |of: &treering_profile::Activations| of.metric == metric;
        match profile.recursion {
            _ if profile.is_arcs_only() => Self::of_arcs(profile, metric),
            RecursionRule::Flat if profile.activations.as_ref().is_some_and(measured) => Self::Measured,
            RecursionRule::Flat => Self::Missing,
            _ if profile.has_no_stacks_of(metric) => Self::Missing,
            _ if Folded::of(profile, metric).is_some() => Self::Bounded,
            _ => Self::Derived,
        }
    }
}

/// The cost spent in contexts that were folded.
pub(crate) struct Folded {
    /// In all.
    pub(crate) cost: u64,
    /// By function.
    pub(crate) self_costs: HashMap<FunctionId, u64>,
}

impl Folded {
    /// Nothing if no contexts were folded, or they cost nothing.
    pub(crate) fn of(profile: &Profile, metric: MetricId) -> Option<Self> {
        let folded = profile.functions.iter().map(|(id, _)| id).find(|&id| profile.is_folded(id))?;
        let tree = &profile.tree;
        let mut self_costs: HashMap<FunctionId, u64> = HashMap::new();
        for node in tree.nodes() {
            let is_below = tree.parent(node).is_some_and(|parent| tree.function(parent) == folded);
            let cost = tree.self_cost(metric, node);
            if is_below && cost > 0 {
                *self_costs.entry(tree.function(node)).or_default() += cost;
            }
        }
        let cost = self_costs.values().sum();
        (cost > 0).then_some(Self { cost, self_costs })
    }

    /// How much more a function may have cost in total than its nodes say: what was spent in folded contexts, but for
    /// what is below its own nodes already.
    fn above(&self, profile: &Profile, function: FunctionId) -> u64 {
        if profile.is_folded(function) {
            return 0;
        }
        self.cost.saturating_sub(self.self_costs.get(&function).copied().unwrap_or(0))
    }

    /// With the costs of functions that count as one added up.
    fn by_representative(self, identity: &Identity) -> Self {
        let mut self_costs: HashMap<FunctionId, u64> = HashMap::new();
        for (function, cost) in self.self_costs {
            *self_costs.entry(identity.representative(function)).or_default() += cost;
        }
        Self { self_costs, ..self }
    }
}

/// The cost spent in contexts that were folded, as the tree was too large; nothing if none were.
pub fn folded_cost(profile: &Profile, metric: MetricId) -> Option<u64> {
    Folded::of(profile, metric).map(|folded| folded.cost)
}

/// Gives total costs their bounds where contexts were folded.
pub(crate) fn bound_totals(graph: &mut CallGraph, profile: &Profile, identity: &Identity) {
    let Some(folded) = Folded::of(profile, graph.basis.metric) else { return };
    let folded = folded.by_representative(identity);
    graph.totals = TotalSource::Bounded;
    let share = |cost: u64| cost as f64 / graph.basis.run.cost.max(1) as f64;
    for cost in &mut graph.functions {
        let low = cost.total_cost.cost;
        let most = low.saturating_add(folded.above(profile, cost.function));
        cost.total_interval = Some(Interval { low: share(low), high: share(most).min(1.0) });
    }
}

/// Puts the measured totals of a flat profile in the place of those that its tree would give.
///
/// The total of a function is the sum over its threads; at least its self cost, and at most the
/// run cost, which a total that holds the call bias may exceed when self costs were corrected.
pub(crate) fn measure_totals(
    tally: &mut Tally,
    profile: &Profile,
    functions: &NodeFunctions,
    arcs: &TreeArcs,
    basis: &Basis,
) -> TotalSource {
    if profile.recursion != RecursionRule::Flat {
        return if profile.has_no_stacks_of(basis.metric) {
            TotalSource::Missing
        } else {
            TotalSource::Derived
        };
    }
    let Some(activations) = profile.activations.as_ref().filter(|of| of.metric == basis.metric) else {
        return TotalSource::Missing;
    };
    let mut totals = vec![0_u64; tally.totals.len()];
    for (node, statistics) in activations.nodes.filled() {
        let total = &mut totals[functions.function(node) as usize];
        *total = total.saturating_add(statistics.total);
    }
    let root = Profile::ROOT.raw();
    for (at, total) in totals.into_iter().enumerate().filter(|&(at, _)| at != root as usize) {
        let own = tally.self_costs[at].cost;
        tally.totals[at].cost = total.max(own).min(basis.run.cost.max(own));
    }
    for (arc, &(caller, callee)) in tally.arcs.iter_mut().zip(&arcs.ends) {
        if caller == root {
            arc.total = tally.totals[callee as usize];
            arc.from_caller.total = arc.total;
        }
    }
    TotalSource::Measured
}
