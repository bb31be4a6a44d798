//! The flat profile.

use treering_profile::Profile;

use crate::graph::{CallGraph, FunctionCost};
use crate::identity::function_name;

/// The order of a list of functions; largest first, names in alphabetical order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortKey {
    /// Self cost, then calls, then name, as gprof does.
    #[default]
    SelfCost,
    /// Total cost.
    TotalCost,
    /// Number of calls.
    Calls,
    /// Name.
    Name,
}

/// A row of the flat profile.
#[derive(Clone, Debug, PartialEq)]
pub struct FlatRow<'a> {
    /// The cost of the function.
    pub cost: &'a FunctionCost,
    /// The self costs of this row and all above it, in the metric's unit.
    pub running_sum: u64,
}

/// The flat profile: every function with its self and total cost, in the order of `sort`.
///
/// The self costs of all rows add up to the run cost, less what a selection left out.
pub fn flat<'a>(profile: &Profile, graph: &'a CallGraph, sort: SortKey) -> Vec<FlatRow<'a>> {
    let mut functions: Vec<_> = graph.functions.iter().collect();
    sort_functions(profile, &mut functions, sort);
    let mut running_sum = 0_u64;
    let row = |cost: &'a FunctionCost| {
        running_sum = running_sum.saturating_add(cost.self_cost.cost);
        FlatRow { cost, running_sum }
    };
    functions.into_iter().map(row).collect()
}

/// Sorts functions; those that are equal under the key come by self cost, calls, then name.
pub fn sort_functions(profile: &Profile, functions: &mut [&FunctionCost], sort: SortKey) {
    let calls = |cost: &FunctionCost| cost.calls.map_or(0, |calls| calls.all);
    let usual = |a: &FunctionCost, b: &FunctionCost| {
        let by_cost = b.self_cost.cmp(&a.self_cost).then(calls(b).cmp(&calls(a)));
        let name = |cost: &FunctionCost| function_name(profile, cost.function);
        by_cost.then_with(|| name(a).cmp(&name(b))).then(a.function.cmp(&b.function))
    };
    functions.sort_by(|a, b| match sort {
        SortKey::SelfCost => usual(a, b),
        SortKey::TotalCost => b.total_cost.cmp(&a.total_cost).then_with(|| usual(a, b)),
        SortKey::Calls => calls(b).cmp(&calls(a)).then_with(|| usual(a, b)),
        SortKey::Name => {
            let name = |cost: &FunctionCost| function_name(profile, cost.function);
            name(a).cmp(&name(b)).then_with(|| usual(a, b))
        }
    });
}
