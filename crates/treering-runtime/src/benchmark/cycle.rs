//! Cycles: two or more tasks that reach each other.

use treering_events::components;

use super::Times;
use super::graph::{Arc, Base, Task};

/// A cycle as a whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cycle {
    /// Indexes of its tasks, the largest self cost first.
    pub(crate) members: Vec<usize>,
    /// Calls of members from outside.
    pub(crate) incoming_calls: u64,
    /// Calls between different members.
    pub(crate) internal_calls: u64,
    /// Calls of members by themselves.
    pub(crate) recursive_calls: u64,
    /// Calls of other tasks from members.
    pub(crate) outgoing_calls: u64,
    /// The self costs of the members.
    pub(crate) self_cost: Times,
    /// The cost of the calls from outside, with that of everything called from inside.
    pub(crate) total: Times,
}

/// The cycles, the largest self cost first; each task learns which it is in.
pub(crate) fn find(tasks: &mut [Task], arcs: &[Arc], base: Base) -> Vec<Cycle> {
    let ends: Vec<(u32, u32)> = arcs.iter().map(|arc| (arc.caller, arc.callee)).collect();
    let components = components(tasks.len(), &ends).into_iter();
    let cycles = components.filter(|members| members.len() > 1);
    let mut cycles: Vec<Cycle> = cycles.map(|members| of_members(&members, tasks, base)).collect();
    cycles.sort_by_key(|cycle| (std::cmp::Reverse(base.of(cycle.self_cost)), cycle.members[0]));
    for (at, cycle) in cycles.iter().enumerate() {
        cycle.members.iter().for_each(|&member| tasks[member].cycle = Some(at));
    }
    arcs.iter().for_each(|arc| count(arc, tasks, &mut cycles));
    cycles
}

fn of_members(members: &[u32], tasks: &[Task], base: Base) -> Cycle {
    let mut members: Vec<usize> = members.iter().map(|&member| member as usize).collect();
    members.sort_by_key(|&member| (std::cmp::Reverse(base.of(tasks[member].self_cost)), member));
    let mut self_cost = Times::default();
    members.iter().for_each(|&member| self_cost += tasks[member].self_cost);
    Cycle { members, self_cost, ..Cycle::default() }
}

fn count(arc: &Arc, tasks: &[Task], cycles: &mut [Cycle]) {
    let (from, to) = (tasks[arc.caller as usize].cycle, tasks[arc.callee as usize].cycle);
    if arc.is_recursive() {
        to.into_iter().for_each(|cycle| cycles[cycle].recursive_calls += arc.calls);
    } else if from == to {
        to.into_iter().for_each(|cycle| cycles[cycle].internal_calls += arc.calls);
    } else {
        from.into_iter().for_each(|cycle| cycles[cycle].outgoing_calls += arc.calls);
        // A caller from outside has no member above it, or it would be a member itself.
        to.into_iter().for_each(|cycle| {
            cycles[cycle].incoming_calls += arc.calls;
            cycles[cycle].total += arc.from_caller;
        });
    }
}
