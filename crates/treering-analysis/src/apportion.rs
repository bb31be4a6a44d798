//! The costs of arcs in a profile without a tree, for formats that state them.

use std::collections::HashMap;

use treering_profile::{FunctionId, MetricId, Profile};

use crate::basis::Basis;
use crate::graph::{CallGraph, Presentation};
use crate::identity::Identity;

/// The same profile whose arcs have costs: those of the call graph that gprof would make of it,
/// divided among the call sites of each arc by their calls. Arcs whose cost was measured keep it, and
/// a profile that has a tree is returned as it is, as its arcs are measured from that.
pub fn with_apportioned_arcs(mut profile: Profile) -> Profile {
    if !profile.is_arcs_only() {
        return profile;
    }
    let metrics: Vec<MetricId> = profile.metrics().map(|(metric, _)| metric).collect();
    for metric in metrics {
        apportion(&mut profile, metric);
    }
    profile
}

fn apportion(profile: &mut Profile, metric: MetricId) {
    let basis = Basis::of(profile, metric);
    let identity = Identity::of(profile);
    let graph = CallGraph::of(profile, &basis, Presentation::Contexts);
    let cost = |arc: &crate::Arc| ((arc.caller, arc.callee), arc.to_callee.total.cost);
    let costs: HashMap<(Option<FunctionId>, FunctionId), u64> = graph.arcs.iter().map(cost).collect();
    let ends = |arc: &treering_profile::Arc| {
        let caller = (arc.caller != Profile::ROOT).then(|| identity.representative(arc.caller));
        (caller, identity.representative(arc.callee))
    };
    let measured = |arc: &treering_profile::Arc| {
        arc.total_costs.iter().find(|(known, _)| *known == metric).map(|(_, cost)| *cost)
    };
    // The calls without a cost, and what those with one have left for them.
    let mut left: HashMap<_, (u64, u64)> = HashMap::new();
    for arc in &profile.arcs {
        let key = ends(arc);
        let (calls, cost) = left.entry(key).or_insert((0, costs.get(&key).copied().unwrap_or(0)));
        match measured(arc) {
            Some(known) => *cost = cost.saturating_sub(known),
            None => *calls = calls.saturating_add(arc.calls),
        }
    }
    let keys: Vec<_> = profile.arcs.iter().map(ends).collect();
    for (arc, key) in profile.arcs.iter_mut().zip(keys) {
        if measured(arc).is_some() {
            continue;
        }
        let Some((calls, cost)) = left.get_mut(&key).filter(|(calls, _)| *calls > 0) else { continue };
        let part = u128::from(*cost) * u128::from(arc.calls) / u128::from(*calls);
        *calls -= arc.calls.min(*calls);
        *cost -= part as u64;
        arc.total_costs.push((metric, part as u64));
    }
}

#[cfg(test)]
mod tests {
    use treering_profile::{Arc, Function, Line, Metric, RecursionRule, Unit};

    use super::*;

    #[test]
    fn call_sites_share_what_their_arc_costs_by_calls() {
        let mut profile = Profile::new(RecursionRule::Full);
        let metric = profile.add_metric(Metric::exact("instructions", Unit::Count));
        let thread = profile.add_single_thread("demo");
        let root = profile.threads[thread.index()].root;
        let [main, leaf, file] = ["main", "leaf", "demo.c"].map(|text| profile.strings.intern(text));
        let [main, leaf] = [main, leaf].map(|name| profile.functions.intern(Function::named(name)));
        for (function, cost) in [(main, 10), (leaf, 100)] {
            let node = profile.tree.child(root, function, None);
            profile.tree.add_self_cost(metric, node, cost);
        }
        for (line, calls) in [(1, 1), (2, 2)] {
            let call_site = Some(profile.lines.intern(Line { file, line }));
            profile.add_arc(Arc { caller: main, callee: leaf, call_site, calls, total_costs: Vec::new() });
        }
        let costs: Vec<_> =
            with_apportioned_arcs(profile).arcs.into_iter().flat_map(|arc| arc.total_costs).collect();
        assert_eq!(costs, [(metric, 33), (metric, 67)]);
    }

    /// Merged profiles have arcs that one of both measured.
    #[test]
    fn arcs_beside_measured_ones_share_what_these_leave() {
        let mut profile = Profile::new(RecursionRule::Full);
        let metric = profile.add_metric(Metric::exact("instructions", Unit::Count));
        let thread = profile.add_single_thread("demo");
        let root = profile.threads[thread.index()].root;
        let [main, leaf] = ["main", "leaf"].map(|text| profile.strings.intern(text));
        let [main, leaf] = [main, leaf].map(|name| profile.functions.intern(Function::named(name)));
        for (function, cost) in [(main, 5), (leaf, 7)] {
            let node = profile.tree.child(root, function, None);
            profile.tree.add_self_cost(metric, node, cost);
        }
        for total_costs in [vec![(metric, 7)], Vec::new()] {
            profile.add_arc(Arc { caller: main, callee: leaf, call_site: None, calls: 2, total_costs });
        }
        let arcs = with_apportioned_arcs(profile).arcs;
        let sum: u64 = arcs.iter().flat_map(|arc| &arc.total_costs).map(|(_, cost)| cost).sum();
        assert_eq!(sum, 7, "{arcs:?}");
    }
}
