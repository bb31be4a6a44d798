//! Profiles for tests: functions with costs of their own and arcs between them, as gprof and callgrind write them.

use treering_profile::{Arc, Function, Metric, Profile, RecursionRule, Unit};

/// Functions with their own costs, and arcs with their calls and costs, if they have any.
pub(crate) fn flat_profile(own: &[(&str, u64)], arcs: &[(&str, &str, u64, Option<u64>)]) -> Profile {
    let mut profile = Profile::new(RecursionRule::Full);
    let metric = profile.add_metric(Metric::exact("Ir", Unit::Count));
    let thread = profile.add_single_thread("demo");
    let root = profile.threads[thread.index()].root;
    let mut functions = std::collections::HashMap::new();
    for &(name, cost) in own {
        let text = profile.strings.intern(name);
        let function = profile.functions.intern(Function::named(text));
        functions.insert(name, function);
        let node = profile.tree.child(root, function, None);
        profile.tree.add_self_cost(metric, node, cost);
    }
    for &(caller, callee, calls, cost) in arcs {
        let (caller, callee) = (functions[caller], functions[callee]);
        let total_costs = cost.map(|cost| (metric, cost)).into_iter().collect();
        profile.add_arc(Arc { caller, callee, call_site: None, calls, total_costs });
    }
    profile
}
