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
    let mut left: HashMap<_, (u64, u64)> = HashMap::new();
    for arc in &profile.arcs {
        let key = ends(arc);
        let (calls, _) = left.entry(key).or_insert((0, costs.get(&key).copied().unwrap_or(0)));
        *calls = calls.saturating_add(arc.calls);
    }
    let keys: Vec<_> = profile.arcs.iter().map(ends).collect();
    for (arc, key) in profile.arcs.iter_mut().zip(keys) {
        if arc.total_costs.iter().any(|(known, _)| *known == metric) {
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
}
