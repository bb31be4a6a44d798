//! Cycles: two or more tasks that reach each other.

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
    /// What the calls from outside cost, with all that was called from inside.
    pub(crate) total: Times,
}

/// The cycles, the largest self cost first; each task learns which it is in.
pub(crate) fn find(tasks: &mut [Task], arcs: &[Arc], base: Base) -> Vec<Cycle> {
    let mut cycles: Vec<Cycle> = Search::new(tasks.len(), arcs)
        .components()
        .into_iter()
        .filter(|members| members.len() > 1)
        .map(|members| of_members(members, tasks, base))
        .collect();
    cycles.sort_by_key(|cycle| (std::cmp::Reverse(base.of(cycle.self_cost)), cycle.members[0]));
    for (at, cycle) in cycles.iter().enumerate() {
        cycle.members.iter().for_each(|&member| tasks[member].cycle = Some(at));
    }
    arcs.iter().for_each(|arc| count(arc, tasks, &mut cycles));
    cycles
}

fn of_members(mut members: Vec<usize>, tasks: &[Task], base: Base) -> Cycle {
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
        // Whoever comes from outside had no member above it: else it were a member itself.
        to.into_iter().for_each(|cycle| {
            cycles[cycle].incoming_calls += arc.calls;
            cycles[cycle].total += arc.from_caller;
        });
    }
}

const UNSEEN: usize = usize::MAX;

/// Strongly connected components after Tarjan, "Depth-first search and linear graph algorithms",
/// 1972, with an explicit stack.
struct Search {
    callees: Vec<Vec<usize>>,
    /// By task: when it was first seen.
    order: Vec<usize>,
    /// By task: the earliest open task that it is known to reach.
    reaches: Vec<usize>,
    /// Tasks whose component is not known yet, and by task whether it is one of them.
    open: Vec<usize>,
    is_open: Vec<bool>,
    seen: usize,
    found: Vec<Vec<usize>>,
}

impl Search {
    fn new(tasks: usize, arcs: &[Arc]) -> Self {
        let mut callees = vec![Vec::new(); tasks];
        arcs.iter().for_each(|arc| callees[arc.caller as usize].push(arc.callee as usize));
        Self {
            callees,
            order: vec![UNSEEN; tasks],
            reaches: vec![0; tasks],
            open: Vec::new(),
            is_open: vec![false; tasks],
            seen: 0,
            found: Vec::new(),
        }
    }

    fn components(mut self) -> Vec<Vec<usize>> {
        for task in 0..self.order.len() {
            if self.order[task] == UNSEEN {
                self.from(task);
            }
        }
        self.found
    }

    fn from(&mut self, task: usize) {
        // A task on the path and how many of its callees have been looked at.
        let mut path = vec![self.discover(task)];
        while let Some((caller, looked_at)) = path.last_mut() {
            let caller = *caller;
            let Some(&callee) = self.callees[caller].get(*looked_at) else {
                self.close(caller);
                path.pop();
                if let Some(&(above, _)) = path.last() {
                    self.reaches[above] = self.reaches[above].min(self.reaches[caller]);
                }
                continue;
            };
            *looked_at += 1;
            if self.order[callee] == UNSEEN {
                path.push(self.discover(callee));
            } else if self.is_open[callee] {
                self.reaches[caller] = self.reaches[caller].min(self.order[callee]);
            }
        }
    }

    fn discover(&mut self, task: usize) -> (usize, usize) {
        self.order[task] = self.seen;
        self.reaches[task] = self.seen;
        self.seen += 1;
        self.open.push(task);
        self.is_open[task] = true;
        (task, 0)
    }

    /// Takes the component off the open tasks if `task` was the first of it to be seen.
    fn close(&mut self, task: usize) {
        if self.reaches[task] != self.order[task] {
            return;
        }
        let first = self.open.iter().rposition(|&open| open == task).unwrap_or(0);
        let component = self.open.split_off(first);
        component.iter().for_each(|&member| self.is_open[member] = false);
        self.found.push(component);
    }
}
