//! Cycles of the call graph.

use treering_events::components;
use treering_profile::FunctionId;

/// A cycle: two or more functions that reach each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// Its functions, in the order of their indexes.
    pub members: Vec<FunctionId>,
}

/// The components of two or more functions, callees before callers. Roots have no callers, and so are in none.
pub(crate) fn cycles(functions: usize, arcs: &[(u32, u32)]) -> Vec<Cycle> {
    let cycles = components(functions, arcs).into_iter().filter(|component| component.len() > 1);
    let cycle = |mut members: Vec<u32>| {
        members.sort_unstable();
        Cycle { members: members.into_iter().map(FunctionId::new).collect() }
    };
    cycles.map(cycle).collect()
}

/// By function: which of the cycles it is in.
pub(crate) fn cycle_index<'a>(
    functions: usize,
    cycles: impl IntoIterator<Item = &'a Cycle>,
) -> Vec<Option<usize>> {
    let mut index = vec![None; functions];
    for (at, cycle) in cycles.into_iter().enumerate() {
        cycle.members.iter().for_each(|member| index[member.index()] = Some(at));
    }
    index
}
