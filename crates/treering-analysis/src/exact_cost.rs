//! Exact costs that stand beside sampled ones.

use std::collections::HashMap;

use treering_profile::{FunctionId, MetricId, Profile, Unit};

use crate::basis::Basis;
use crate::flat_totals::TotalSource;
use crate::graph::{CallGraph, Presentation};

/// The counts of an exact metric for the functions and arcs of a profile that has sampled costs as well.
#[derive(Clone, Debug)]
pub struct ExactCost {
    /// The name of the metric.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// Whether total costs and those of arcs are known: they are if it was counted along stacks.
    pub has_totals: bool,
    functions: HashMap<FunctionId, (u64, u64)>,
    arcs: HashMap<(Option<FunctionId>, FunctionId), u64>,
}

impl ExactCost {
    /// The exact metrics of a profile beside the sampled one that `graph` shows; none in other profiles.
    pub fn beside(profile: &Profile, graph: &CallGraph) -> Vec<Self> {
        if graph.basis.samples.is_none() || !graph.counts_apart() {
            return Vec::new();
        }
        let metrics = profile.cost_metrics().map(|(metric, _)| metric);
        let exact = metrics.filter(|&metric| is_exact(profile, metric) && profile.run_cost(metric) > 0);
        exact.map(|metric| Self::of(profile, metric)).collect()
    }

    fn of(profile: &Profile, metric: MetricId) -> Self {
        let graph = CallGraph::of(profile, &Basis::of(profile, metric), Presentation::Contexts);
        let of = &profile.metrics[metric.index()];
        let costs = graph.functions.iter();
        let arcs = graph.arcs.iter().filter(|arc| arc.total_cost.cost > 0);
        Self {
            name: of.name.clone(),
            unit: of.unit,
            has_totals: TotalSource::of(profile, metric).is_known(),
            functions: costs.map(|of| (of.function, (of.self_cost.cost, of.total_cost.cost))).collect(),
            arcs: arcs.map(|arc| ((arc.caller, arc.callee), arc.total_cost.cost)).collect(),
        }
    }

    /// The count in a function itself; nothing if the function did not occur.
    pub fn self_cost(&self, function: FunctionId) -> Option<u64> {
        self.functions.get(&function).map(|costs| costs.0).filter(|&cost| cost > 0)
    }

    /// The count of a function and all that it called, if that is known.
    pub fn total_cost(&self, function: FunctionId) -> Option<u64> {
        let total = self.functions.get(&function).map(|costs| costs.1);
        total.filter(|&cost| self.has_totals && cost > 0)
    }

    /// The cost of an arc's calls, if that is known.
    pub fn arc(&self, caller: Option<FunctionId>, callee: FunctionId) -> Option<u64> {
        self.arcs.get(&(caller, callee)).copied().filter(|_| self.has_totals)
    }
}

/// Whether costs of a metric are counts of what the program did: neither sampled nor of samples.
pub(crate) fn is_exact(profile: &Profile, metric: MetricId) -> bool {
    let of_samples = profile.metrics.iter().any(|other| other.counted_by() == Some(metric));
    profile.metrics[metric.index()].sampling.is_none() && !of_samples
}
