//! One walk over the tree that measures functions and arcs.

use treering_profile::{NodeId, Profile};

use crate::arc::{Calls, Part};
use crate::basis::Basis;
use crate::contexts::{NodeFunctions, TreeArcs};
use crate::measure::{Columns, Measure};
use crate::preorder::preorder;

/// Marks a missing depth or arc.
const NONE: u32 = u32::MAX;

/// The results of a walk over the tree. Functions and groups are indexes of the function table.
#[derive(Default)]
pub(crate) struct Tally {
    /// By function: what was spent in it.
    pub(crate) self_costs: Vec<Measure>,
    /// By group: the total of its outermost activations.
    pub(crate) totals: Vec<Measure>,
    /// By function: whether it occurs in the tree.
    pub(crate) occurs: Vec<bool>,
    /// By function: how often it was called.
    pub(crate) calls: Vec<Calls>,
    pub(crate) arcs: Vec<ArcTally>,
    /// By function and run: self costs; empty unless asked for.
    pub(crate) self_by_run: Vec<u64>,
    /// By group and run: totals; empty unless asked for.
    pub(crate) total_by_run: Vec<u64>,
    /// By cycle: the total of its outermost activations, where each cycle counts as one function.
    pub(crate) cycle_totals: Vec<Measure>,
}

/// The results of a walk for an arc.
#[derive(Clone, Default)]
pub(crate) struct ArcTally {
    pub(crate) calls: u64,
    /// See [`Arc::total_cost`](crate::Arc::total_cost).
    pub(crate) total: Measure,
    /// The part of the callee's group total that this caller asked for.
    pub(crate) from_caller: Part,
    /// The part of the caller's children cost that this callee took.
    pub(crate) to_callee: Part,
    /// How many activations of the arc are on the path.
    active: u32,
}

/// An activation on the path from the root.
struct Step {
    node: NodeId,
    function: u32,
    /// The arc it was called through.
    arc: u32,
    /// The depth of the activation of the same group that encloses it most closely.
    enclosing: u32,
}

/// Walks the trees of all threads, callers before callees, in O(nodes).
///
/// `groups` gives the group of each function: all functions of a group count as one when asking
/// which activation is outermost or innermost. With every function its own group this measures
/// the tree as it is; with cycles as groups it gives the presentation with collapsed cycles.
/// `cycles` gives the cycle of each function.
pub(crate) fn walk(
    profile: &Profile,
    functions: &NodeFunctions,
    arcs: &TreeArcs,
    groups: &[u32],
    cycles: &[Option<usize>],
    basis: &Basis,
) -> Tally {
    let columns = Columns::of(profile, basis.metric, basis.samples);
    let runs = if basis.has_spread() { basis.runs.len() } else { 0 };
    let cycle_count = cycles.iter().flatten().max().map_or(0, |last| last + 1);
    let mut walk = Walk {
        profile,
        functions,
        arcs,
        groups,
        cycles,
        columns,
        totals: columns.totals(&profile.tree),
        path: Vec::new(),
        innermost: vec![NONE; groups.len()],
        outermost: vec![NONE; groups.len()],
        active_in_cycle: vec![0; cycle_count],
        runs,
        run: 0,
        tally: Tally::sized(groups.len(), arcs.ends.len(), cycle_count, runs),
    };
    walk.all();
    walk.tally
}

impl Tally {
    fn sized(functions: usize, arcs: usize, cycles: usize, runs: usize) -> Self {
        Self {
            self_costs: vec![Measure::default(); functions],
            totals: vec![Measure::default(); functions],
            occurs: vec![false; functions],
            calls: vec![Calls::default(); functions],
            arcs: vec![ArcTally::default(); arcs],
            self_by_run: vec![0; functions * runs],
            total_by_run: vec![0; functions * runs],
            cycle_totals: vec![Measure::default(); cycles],
        }
    }
}

struct Walk<'a> {
    profile: &'a Profile,
    functions: &'a NodeFunctions,
    arcs: &'a TreeArcs,
    groups: &'a [u32],
    cycles: &'a [Option<usize>],
    columns: Columns<'a>,
    /// By node: the cost of its subtree.
    totals: Vec<Measure>,
    path: Vec<Step>,
    /// By group: the depth of its innermost activation on the path.
    innermost: Vec<u32>,
    /// By group: the depth of its outermost activation on the path; left over from before while
    /// there is none.
    outermost: Vec<u32>,
    /// By cycle: how many activations of its functions are on the path.
    active_in_cycle: Vec<u32>,
    runs: usize,
    /// The run of the thread being walked.
    run: usize,
    tally: Tally,
}

impl Walk<'_> {
    fn all(&mut self) {
        let profile = self.profile;
        let mut threads = profile.threads.iter();
        for node in preorder(profile) {
            let parent = profile.tree.parent(node);
            while self.path.last().is_some_and(|step| Some(step.node) != parent) {
                self.leave();
            }
            if parent.is_none()
                && let Some(thread) = threads.next()
            {
                self.run = profile.processes[thread.process.index()].run.index();
            }
            self.enter(node);
        }
    }

    fn enter(&mut self, node: NodeId) {
        let function = self.functions.function(node);
        let group = self.groups[function as usize] as usize;
        let depth = self.path.len() as u32;
        let arc = self.arcs.of_node[node.index()];
        let enclosing = std::mem::replace(&mut self.innermost[group], depth);
        self.path.push(Step { node, function, arc, enclosing });
        self.tally.occurs[function as usize] = true;
        self.charge_total(group, depth);
        self.charge_self(group, depth);
        self.enter_cycle(node, function);
        self.count_calls(node, function, arc);
    }

    fn enter_cycle(&mut self, node: NodeId, function: u32) {
        if let Some(cycle) = self.cycles[function as usize] {
            if self.active_in_cycle[cycle] == 0 {
                self.tally.cycle_totals[cycle] += self.totals[node.index()];
            }
            self.active_in_cycle[cycle] += 1;
        }
    }

    fn leave(&mut self) {
        let Some(step) = self.path.pop() else { return };
        let group = self.groups[step.function as usize] as usize;
        self.innermost[group] = step.enclosing;
        if let Some(arc) = self.tally.arcs.get_mut(step.arc as usize) {
            arc.active -= 1;
        }
        if let Some(cycle) = self.cycles[step.function as usize] {
            self.active_in_cycle[cycle] -= 1;
        }
    }

    /// Charges the cost of the subtree of the step just made, which is at `depth`.
    fn charge_total(&mut self, group: usize, depth: u32) {
        let step = &self.path[depth as usize];
        let (total, arc, enclosing) = (self.totals[step.node.index()], step.arc as usize, step.enclosing);
        if enclosing == NONE {
            self.outermost[group] = depth;
            self.tally.totals[group] += total;
            if self.runs > 0 {
                self.tally.total_by_run[group * self.runs + self.run] += total.cost;
            }
        }
        if let Some(arc) = self.tally.arcs.get_mut(arc) {
            if arc.active == 0 {
                arc.total += total;
            }
            arc.active += 1;
            arc.to_callee.total += total;
            if enclosing == NONE {
                arc.from_caller.total += total;
            }
        }
        if enclosing != NONE {
            // The nodes below are now below an activation further in, no longer below this one.
            let taken = self.path[enclosing as usize + 1].arc as usize;
            self.tally.arcs[taken].to_callee.total -= total;
        }
    }

    /// Charges what was spent in the step itself.
    fn charge_self(&mut self, group: usize, depth: u32) {
        let step = &self.path[depth as usize];
        let cost = self.columns.self_cost(step.node);
        if cost.is_zero() {
            return;
        }
        self.tally.self_costs[step.function as usize] += cost;
        if self.runs > 0 {
            self.tally.self_by_run[step.function as usize * self.runs + self.run] += cost.cost;
        }
        let outermost = self.outermost[group];
        let first = self.path[outermost as usize].arc;
        if let Some(arc) = self.tally.arcs.get_mut(first as usize) {
            arc.from_caller.self_cost += cost;
        }
        if first != NONE && self.is_innermost(outermost - 1) {
            self.tally.arcs[first as usize].to_callee.self_cost += cost;
        }
        // The call to the step itself, unless it is that one or stays within the group.
        if step.arc != first && self.groups[self.path[depth as usize - 1].function as usize] as usize != group
        {
            self.tally.arcs[step.arc as usize].to_callee.self_cost += cost;
        }
    }

    /// Whether no activation of the same group follows the one at `depth` on the path.
    fn is_innermost(&self, depth: u32) -> bool {
        let group = self.groups[self.path[depth as usize].function as usize];
        self.innermost[group as usize] == depth
    }

    fn count_calls(&mut self, node: NodeId, function: u32, arc: u32) {
        let calls = self.profile.tree.calls(node);
        if calls == 0 {
            return;
        }
        let folded = self.profile.tree.recursive_calls(node).min(calls);
        let direct = self.arcs.ends.get(arc as usize).is_some_and(|&(caller, _)| caller == function);
        let count = &mut self.tally.calls[function as usize];
        count.all = count.all.saturating_add(calls);
        count.recursive = count.recursive.saturating_add(if direct { calls } else { folded });
        if let Some(arc) = self.tally.arcs.get_mut(arc as usize) {
            arc.calls = arc.calls.saturating_add(calls - folded);
        }
        if let Some(&itself) = self.arcs.folded.get(&node) {
            let itself = &mut self.tally.arcs[itself as usize];
            itself.calls = itself.calls.saturating_add(folded);
        }
    }
}
