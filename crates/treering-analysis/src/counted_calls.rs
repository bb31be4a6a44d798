//! Calls that were counted apart from a tree of samples.
//!
//! A sampled tree tells what functions cost, along stacks, and nothing of how often they were called.
//! Where something else counted the calls of the same run, a profile has both: stacks in its tree, calls
//! in its arcs, without costs. A count is exact where there is one; functions that do not report their
//! calls have none.

use hashbrown::{HashMap, HashSet};
use treering_profile::{FunctionId, MetricId, Profile};

use crate::arc::{Arc, ArcSource, Calls, Part};
use crate::basis::Basis;
use crate::graph::FunctionCost;
use crate::identity::Identity;
use crate::measure::Measure;
use crate::reliability::Reliability;

/// Caller, if there is one, and callee.
type Ends = (Option<FunctionId>, FunctionId);

/// The calls that were counted apart from the tree.
pub(crate) struct CountedCalls {
    arcs: HashMap<Ends, u64>,
    /// Functions that were called elsewhere as well, an unknown number of times.
    partly: HashSet<FunctionId>,
    /// Whether the metric was counted by function as well.
    no_stacks: bool,
}

impl CountedCalls {
    /// Nothing where calls were not counted apart.
    pub(crate) fn of(profile: &Profile, identity: &Identity, metric: MetricId) -> Option<Self> {
        let no_stacks = profile.has_no_stacks_of(metric);
        let mut arcs: HashMap<Ends, u64> = HashMap::new();
        let mut partly = HashSet::new();
        for arc in &profile.arcs {
            if arc.calls == 0 {
                partly.insert(identity.representative(arc.callee));
                continue;
            }
            let caller = (arc.caller != Profile::ROOT).then(|| identity.representative(arc.caller));
            let sum = arcs.entry((caller, identity.representative(arc.callee))).or_default();
            *sum = sum.saturating_add(arc.calls);
        }
        (!arcs.is_empty()).then_some(Self { arcs, partly, no_stacks })
    }

    /// Callers and callees, as indexes of the function table.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.arcs.keys().filter_map(|(caller, callee)| Some((caller.as_ref()?.raw(), callee.raw())))
    }

    /// Adds the counts to the measured functions and arcs, and adds those without a sample.
    pub(crate) fn join(mut self, basis: &Basis, functions: &mut Vec<FunctionCost>, arcs: &mut Vec<Arc>) {
        let mut calls: HashMap<FunctionId, Option<Calls>> = HashMap::new();
        for (&(caller, callee), &count) in &self.arcs {
            let sum = calls.entry(callee).or_default().get_or_insert_default();
            sum.all = sum.all.saturating_add(count);
            if caller == Some(callee) {
                sum.recursive = sum.recursive.saturating_add(count);
            }
            if let Some(caller) = caller {
                calls.entry(caller).or_default();
            }
        }
        for function in &self.partly {
            calls.insert(*function, None);
        }
        for cost in functions.iter_mut() {
            cost.calls = calls.remove(&cost.function).flatten();
        }
        functions.extend(calls.into_iter().map(|(function, calls)| without_samples(function, calls, basis)));
        for arc in arcs.iter_mut() {
            arc.calls = self.arcs.remove(&(arc.caller, arc.callee)).unwrap_or(0);
        }
        // Functions that were counted by themselves have nodes without callers, which no thread entered.
        let by_itself = |arc: &Arc| arc.calls == 0 && (self.no_stacks || arc.total_cost.is_zero());
        arcs.retain(|arc| arc.caller.is_some() || !by_itself(arc));
        arcs.extend(self.arcs.into_iter().map(|((caller, callee), calls)| Arc {
            caller,
            callee,
            calls,
            total_cost: Measure::default(),
            from_caller: Part::default(),
            to_callee: Part::default(),
            source: ArcSource::Measured,
        }));
    }
}

/// A function that was called and in which no sample was taken.
fn without_samples(function: FunctionId, calls: Option<Calls>, basis: &Basis) -> FunctionCost {
    let nothing = Measure::default();
    FunctionCost {
        function,
        self_cost: nothing,
        total_cost: nothing,
        calls,
        self_interval: basis.interval(nothing),
        total_interval: basis.interval(nothing),
        cycle: None,
        self_by_run: Vec::new(),
        reliability: Reliability::default(),
    }
}

#[cfg(test)]
mod tests {
    use treering_profile::{Frame, Function, Metric, RecursionRule, Unit};

    use crate::{Basis, CallGraph, Presentation, function_name};

    #[test]
    fn counts_stand_beside_what_was_sampled() {
        let mut profile = treering_profile::Profile::new(RecursionRule::Full);
        let samples = profile.add_metric(Metric::exact("samples", Unit::Count));
        let thread = profile.add_single_thread("demo");
        let mut function = |name: &str| {
            let name = profile.strings.intern(name);
            profile.functions.intern(Function::named(name))
        };
        let [main, work, rare, libc] = ["main", "work", "rare", "libc"].map(&mut function);
        for (stack, weight) in [(&[main, work][..], 6), (&[main, libc, work], 3), (&[main], 1)] {
            let frames: Vec<_> = stack.iter().map(|&function| Frame::new(function)).collect();
            profile.add_stack(thread, &frames, None, &[(samples, weight)]);
        }
        for (caller, callee, calls) in
            [(main, work, 40), (main, work, 2), (libc, work, 5), (work, rare, 9), (rare, work, 1)]
        {
            let total_costs = Vec::new();
            profile.add_arc(treering_profile::Arc { caller, callee, call_site: None, calls, total_costs });
        }
        assert!(!profile.is_arcs_only());
        let graph = CallGraph::of(&profile, &Basis::of(&profile, samples), Presentation::Contexts);
        assert!(graph.has_calls() && graph.counts_apart());
        let calls = |name: &str| {
            let cost = graph.functions.iter().find(|cost| function_name(&profile, cost.function) == name);
            cost.and_then(|cost| cost.calls).map(|calls| calls.all)
        };
        assert_eq!(["main", "work", "rare", "libc"].map(calls), [None, Some(48), Some(9), None]);
        let arc = |caller, callee| {
            let arc = graph.arcs.iter().find(|arc| arc.caller == Some(caller) && arc.callee == callee);
            arc.map(|arc| (arc.calls, arc.total_cost.cost))
        };
        assert_eq!(arc(main, work), Some((42, 6)));
        assert_eq!(arc(libc, work), Some((5, 3)));
        // Called by a function that does not report itself: the stack tells, the count does not.
        assert_eq!(arc(main, libc), Some((0, 3)));
        assert_eq!(arc(work, rare), Some((9, 0)));
        // Samples alone would not show the cycle.
        assert_eq!(graph.cycles.len(), 1);
        assert_eq!(graph.function(work).and_then(|cost| cost.cycle), Some(0));
    }
}
