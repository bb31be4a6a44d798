//! The call graph of a profile that has arcs but no tree, as gprof makes it.
//!
//! S. L. Graham, P. B. Kessler, M. K. McKusick, "gprof: a call graph execution profiler", 1982:
//! cycles are collapsed, then callees hand their cost to their callers, callees first, in
//! proportion to the calls. Where the source measured what an arc cost, that is used instead.

use std::collections::HashMap;

use treering_events::components;
use treering_profile::{FunctionId, MetricId, Profile};

use crate::arc::{Arc, ArcSource, Calls, Part};
use crate::basis::Basis;
use crate::cycle::{Cycle, cycle_index};
use crate::flat_totals::TotalSource;
use crate::graph::{CallGraph, CycleCost, FunctionCost, Presentation};
use crate::identity::Identity;
use crate::measure::{Columns, Measure};
use crate::reliability::Reliability;

/// The graph of an arc-only profile.
pub(crate) fn graph(profile: &Profile, basis: &Basis) -> CallGraph {
    let identity = Identity::of(profile);
    let mut propagation = Propagation::new(profile, basis, &identity);
    propagation.run();
    let mut graph = propagation.into_graph(basis);
    graph.totals = TotalSource::of_arcs(profile, basis.metric);
    graph
}

/// An arc between two functions, all call sites added up.
#[derive(Clone, Default)]
struct Flow {
    caller: u32,
    callee: u32,
    calls: u64,
    /// The cost that the source measured, over all call sites.
    measured: Option<u64>,
    cost: Part,
}

struct Propagation {
    self_costs: Vec<Measure>,
    occurs: Vec<bool>,
    flows: Vec<Flow>,
    /// Components of the call graph, callees first.
    components: Vec<Vec<u32>>,
    /// By function: what it called outside of its component.
    children: Vec<Measure>,
    /// By function: how often it was called.
    calls: Vec<Calls>,
    /// Whether calls were counted at all: files of samples may have arcs as well.
    has_calls: bool,
    /// By function: how often no function called it.
    calls_of_root: Vec<u64>,
    /// By component: its indexes of `flows` from outside.
    entering: Vec<Vec<u32>>,
    /// By component: the calls between its functions, recursive ones left out.
    calls_within: Vec<u64>,
    /// Components into which arcs cost more than they do with all that they call.
    excess: Vec<Excess>,
}

struct Excess {
    component: usize,
    stated: u128,
    whole: u64,
}

/// Arcs that a file states to cost more than the functions they lead to, with all these call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExcessiveArcs {
    /// Into how many functions or cycles there are such arcs.
    pub functions: usize,
    /// The function for which they exceed the most, or the first of its cycle.
    pub worst: FunctionId,
    /// The stated cost of the arcs into it.
    pub stated: u128,
    /// Its cost, with all it calls.
    pub whole: u64,
}

/// Gives arcs that cost too much what the functions they lead to cost, each its part, so that no total
/// exceeds the run; returns what there was. For a profile that has arcs and no tree.
pub fn limit_arcs(profile: &mut Profile, metric: MetricId) -> Option<ExcessiveArcs> {
    let basis = Basis::of(profile, metric);
    let identity = Identity::of(profile);
    let mut propagation = Propagation::new(profile, &basis, &identity);
    propagation.run();
    let entered: HashMap<u32, &Excess> = propagation
        .excess
        .iter()
        .flat_map(|excess| {
            propagation.components[excess.component].iter().map(move |&member| (member, excess))
        })
        .collect();
    let component = |function| entered.get(&identity.representative(function).raw());
    for arc in &mut profile.arcs {
        let Some(excess) = component(arc.callee) else { continue };
        let within_cycle = component(arc.caller).is_some_and(|of| of.component == excess.component);
        if arc.caller == Profile::ROOT || within_cycle {
            continue;
        }
        for (_, cost) in arc.total_costs.iter_mut().filter(|(of, _)| *of == metric) {
            *cost = within(*cost, excess.stated, excess.whole);
        }
    }
    let worst = propagation.excess.iter().max_by_key(|excess| excess.stated - u128::from(excess.whole))?;
    let members = propagation.components[worst.component].iter();
    Some(ExcessiveArcs {
        functions: propagation.excess.len(),
        worst: FunctionId::new(*members.min()?),
        stated: worst.stated,
        whole: worst.whole,
    })
}

/// A cost of those that are stated in all, where they are at most the whole.
fn within(cost: u64, stated: u128, whole: u64) -> u64 {
    if stated <= u128::from(whole) {
        return cost;
    }
    // The cost is a part of what is stated, so this is at most the whole.
    (u128::from(cost).saturating_mul(u128::from(whole)) / stated) as u64
}

impl Propagation {
    fn new(profile: &Profile, basis: &Basis, identity: &Identity) -> Self {
        let count = identity.table_len();
        let (mut self_costs, mut occurs) = (vec![Measure::default(); count], vec![false; count]);
        let columns = Columns::of(profile, basis.metric, basis.samples);
        for node in profile.tree.nodes() {
            let at = identity.representative(profile.tree.function(node)).index();
            self_costs[at] += columns.self_cost(node);
            occurs[at] |= at != Profile::ROOT.index() || !self_costs[at].is_zero();
        }
        let flows = flows(profile, basis, identity);
        for flow in &flows {
            occurs[flow.caller as usize] |= flow.caller != Profile::ROOT.raw();
            occurs[flow.callee as usize] = true;
        }
        let components = components(count, &pairs(&flows));
        let mut component_of = vec![0; count];
        for (at, component) in components.iter().enumerate() {
            component.iter().for_each(|&member| component_of[member as usize] = at);
        }
        let mut entering = vec![Vec::new(); components.len()];
        let mut calls_within = vec![0; components.len()];
        for (at, flow) in flows.iter().enumerate() {
            let (from, to) = (component_of[flow.caller as usize], component_of[flow.callee as usize]);
            match from == to {
                true if flow.caller != flow.callee => {
                    calls_within[to] = u64::saturating_add(calls_within[to], flow.calls);
                }
                true => {}
                false => entering[to].push(at as u32),
            }
        }
        let (children, mut calls) = (vec![Measure::default(); count], calls(count, &flows));
        let mut calls_of_root = vec![0; count];
        for arc in profile.arcs.iter().filter(|arc| arc.caller == Profile::ROOT) {
            let callee = identity.representative(arc.callee).index();
            calls_of_root[callee] = u64::saturating_add(calls_of_root[callee], arc.calls);
            calls[callee].all = calls[callee].all.saturating_add(arc.calls);
        }
        let excess = Vec::new();
        Self {
            self_costs,
            occurs,
            flows,
            components,
            children,
            calls,
            has_calls: profile.arcs.iter().any(|arc| arc.calls > 0),
            calls_of_root,
            entering,
            calls_within,
            excess,
        }
    }

    /// Hands the cost of every component to its callers, callees first.
    fn run(&mut self) {
        for component in 0..self.components.len() {
            let whole = self.whole(component);
            self.divide(component, whole);
            for &at in &self.entering[component] {
                let flow = &self.flows[at as usize];
                self.children[flow.caller as usize] += flow.cost.total;
            }
        }
    }

    /// The cost of a component with everything it called.
    fn whole(&self, component: usize) -> Part {
        let members = &self.components[component];
        let self_cost: Measure = members.iter().map(|&member| self.self_costs[member as usize]).sum();
        let children: Measure = members.iter().map(|&member| self.children[member as usize]).sum();
        Part { self_cost, total: self_cost + children }
    }

    /// Divides the cost of a component among the arcs that enter it: measured ones take what was
    /// measured, the others share the rest in proportion to their calls.
    fn divide(&mut self, component: usize, whole: Part) {
        let entering = &self.entering[component];
        let mut rest = whole;
        let stated: u128 =
            entering.iter().filter_map(|&at| self.flows[at as usize].measured).map(u128::from).sum();
        if stated > u128::from(whole.total.cost) {
            self.excess.push(Excess { component, stated, whole: whole.total.cost });
        }
        for &at in entering {
            let flow = &mut self.flows[at as usize];
            if let Some(measured) = flow.measured {
                let measured = within(measured, stated, whole.total.cost);
                flow.cost = scaled(whole, measured, whole.total.cost);
                flow.cost.total.cost = measured;
                flow.cost.self_cost.cost = flow.cost.self_cost.cost.min(measured);
                rest.self_cost = rest.self_cost.saturating_sub(flow.cost.self_cost);
                rest.total = rest.total.saturating_sub(flow.cost.total);
            }
        }
        let unmeasured = entering.iter().filter(|&&at| self.flows[at as usize].measured.is_none());
        let unmeasured: Vec<usize> = unmeasured.map(|&at| at as usize).collect();
        let calls = saturating_sum(unmeasured.iter().map(|&at| self.flows[at].calls));
        let (mut before, mut given) = (0, Part::default());
        for at in unmeasured {
            // Dividing running sums makes the parts add up to the whole to the last unit.
            before = u64::saturating_add(before, self.flows[at].calls);
            let upto = scaled(rest, before, calls);
            self.flows[at].cost =
                Part { self_cost: upto.self_cost - given.self_cost, total: upto.total - given.total };
            given = upto;
        }
    }

    fn into_graph(self, basis: &Basis) -> CallGraph {
        let larger = (0..self.components.len()).filter(|&at| self.components[at].len() > 1);
        let cycles: Vec<CycleCost> = larger.map(|at| self.cycle_cost(at)).collect();
        let cycle_of = cycle_index(self.occurs.len(), cycles.iter().map(|cost| &cost.cycle));
        let occurring = (0..self.occurs.len()).filter(|&at| self.occurs[at]);
        let functions = occurring.map(|at| self.function_cost(basis, at, cycle_of[at])).collect();
        let arcs = self.flows.iter().map(arc).chain(self.spontaneous()).collect();
        CallGraph::assemble(basis, Presentation::CollapsedCycles, functions, arcs, cycles)
    }

    fn function_cost(&self, basis: &Basis, at: usize, cycle: Option<usize>) -> FunctionCost {
        let total_cost = self.self_costs[at] + self.children[at];
        FunctionCost {
            function: FunctionId::from_usize(at),
            self_cost: self.self_costs[at],
            total_cost,
            calls: self.has_calls.then_some(self.calls[at]),
            self_interval: basis.interval(self.self_costs[at]),
            // An apportioned cost is off by more than chance; the source cannot tell how much.
            total_interval: None,
            cycle,
            self_by_run: Vec::new(),
            reliability: Reliability::default(),
        }
    }

    fn cycle_cost(&self, component: usize) -> CycleCost {
        let mut members: Vec<_> = self.components[component].iter().copied().map(FunctionId::new).collect();
        members.sort_unstable();
        let whole = self.whole(component);
        let entering = self.entering[component].iter();
        CycleCost {
            cycle: Cycle { members },
            self_cost: whole.self_cost,
            total_cost: whole.total,
            calls_from_outside: saturating_sum(
                entering.map(|&at| self.flows[at as usize].calls).chain([self.calls_of_root(component)]),
            ),
            calls_within: self.calls_within[component],
        }
    }

    /// How often threads began with a member.
    fn calls_of_root(&self, component: usize) -> u64 {
        saturating_sum(self.components[component].iter().map(|&member| self.calls_of_root[member as usize]))
    }

    /// The part of every component's cost that no arc accounts for, charged to its first member, with the calls that no
    /// function made.
    fn spontaneous(&self) -> impl Iterator<Item = Arc> + '_ {
        // It is what others leave, and as sure as they are.
        let measured =
            self.flows.iter().all(|flow| flow.measured.is_some() || flow.caller == flow.callee).then_some(0);
        (0..self.components.len()).filter_map(move |component| {
            let whole = self.whole(component);
            let mut given = Part::default();
            self.entering[component].iter().for_each(|&at| given += self.flows[at as usize].cost);
            let rest = Part {
                self_cost: whole.self_cost.saturating_sub(given.self_cost),
                total: whole.total.saturating_sub(given.total),
            };
            let callee = *self.components[component].iter().min()?;
            let calls = self.calls_of_root(component);
            let flow = Flow { caller: Profile::ROOT.raw(), callee, calls, measured, cost: rest };
            (callee != Profile::ROOT.raw() && (rest.total.cost > 0 || calls > 0)).then(|| arc(&flow))
        })
    }
}

fn calls(functions: usize, flows: &[Flow]) -> Vec<Calls> {
    let mut calls = vec![Calls::default(); functions];
    for flow in flows {
        let count = &mut calls[flow.callee as usize];
        count.all = count.all.saturating_add(flow.calls);
        if flow.caller == flow.callee {
            count.recursive = flow.calls;
        }
    }
    calls
}

fn pairs(flows: &[Flow]) -> Vec<(u32, u32)> {
    flows.iter().map(|flow| (flow.caller, flow.callee)).collect()
}

/// Adds up the arcs of a profile by caller and callee. The cost of those from the thread's root is what the others leave of
/// the callee's total.
fn flows(profile: &Profile, basis: &Basis, identity: &Identity) -> Vec<Flow> {
    let flow = |arc: &treering_profile::Arc| Flow {
        caller: identity.representative(arc.caller).raw(),
        callee: identity.representative(arc.callee).raw(),
        calls: arc.calls,
        measured: arc.total_costs.iter().find(|(metric, _)| *metric == basis.metric).map(|&(_, cost)| cost),
        cost: Part::default(),
    };
    let mut flows: Vec<Flow> =
        profile.arcs.iter().filter(|arc| arc.caller != Profile::ROOT).map(flow).collect();
    let ends = |flow: &Flow| (flow.caller, flow.callee);
    flows.sort_by_key(ends);
    flows.dedup_by(|next, sum| {
        let same = ends(next) == ends(sum);
        if same {
            sum.calls = sum.calls.saturating_add(next.calls);
            sum.measured = sum.measured.zip(next.measured).map(|(sum, cost)| sum.saturating_add(cost));
        }
        same
    });
    flows
}

fn arc(flow: &Flow) -> Arc {
    let source = if flow.measured.is_some() { ArcSource::Measured } else { ArcSource::Apportioned };
    Arc {
        caller: (flow.caller != Profile::ROOT.raw()).then(|| FunctionId::new(flow.caller)),
        callee: FunctionId::new(flow.callee),
        calls: flow.calls,
        total_cost: flow.cost.total,
        from_caller: flow.cost,
        to_callee: flow.cost,
        source,
    }
}

fn saturating_sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// `whole` × `part` / `of`, self and children cost each rounded down; nothing of nothing.
fn scaled(whole: Part, part: u64, of: u64) -> Part {
    let scale = |value: u64| {
        let product = u128::from(value) * u128::from(part);
        product.checked_div(u128::from(of)).map_or(0, |quotient| u64::try_from(quotient).unwrap_or(u64::MAX))
    };
    let measure = |measure: Measure| Measure {
        cost: scale(measure.cost),
        samples: scale(measure.samples),
        squares: scale(measure.squares),
        unseen: scale(measure.unseen),
    };
    let self_cost = measure(whole.self_cost);
    Part { self_cost, total: self_cost + measure(whole.children()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flat_profile::flat_profile;
    use crate::graph::Presentation;

    /// Functions `main`, `a` and `b` with self costs of 10 each, and arcs with stated costs.
    fn profile(arcs: &[(&str, &str, u64)]) -> Profile {
        let arcs: Vec<_> =
            arcs.iter().map(|&(caller, callee, cost)| (caller, callee, 1, Some(cost))).collect();
        flat_profile(&[("main", 10), ("a", 10), ("b", 10)], &arcs)
    }

    fn totals(profile: &Profile) -> Vec<u64> {
        let basis = Basis::of(profile, MetricId::new(0));
        let graph = CallGraph::of(profile, &basis, Presentation::CollapsedCycles);
        graph.functions.iter().map(|function| function.total_cost.cost).collect()
    }

    #[test]
    fn arcs_that_contradict_the_costs_make_no_total_exceed_the_run() {
        for (arcs, expected) in [
            (&[("main", "a", 500), ("main", "b", 10)][..], [30, 10, 10]),
            // Neither exceeds the run, but both together exceed what they lead to.
            (&[("main", "b", 9), ("a", "b", 9)], [15, 15, 10]),
            (&[("main", "a", 25), ("a", "b", 20)], [30, 20, 10]),
        ] {
            let mut profile = profile(arcs);
            assert_eq!(totals(&profile), expected, "{arcs:?}");
            assert!(limit_arcs(&mut profile, MetricId::new(0)).is_some(), "{arcs:?}");
            assert_eq!(totals(&profile), expected, "{arcs:?}");
            assert_eq!(limit_arcs(&mut profile, MetricId::new(0)), None, "{arcs:?}");
        }
    }

    #[test]
    fn arcs_that_fit_stay() {
        let mut consistent = profile(&[("main", "a", 20), ("a", "b", 10)]);
        assert_eq!(limit_arcs(&mut consistent, MetricId::new(0)), None);
        assert_eq!(totals(&consistent), [30, 20, 10]);
        let mut worst = profile(&[("main", "a", 500)]);
        let found = limit_arcs(&mut worst, MetricId::new(0)).expect("the arc exceeds the run");
        assert_eq!((found.functions, found.stated, found.whole), (1, 500, 10));
    }
}
