//! One of two profiles that are compared, and its call graph.

use treering_analysis::{Basis, CallGraph, Identity, Presentation};
use treering_profile::{FunctionId, MetricId, Profile, RecursionRule, Tree};

use crate::pairing::GroupIndex;

/// One of two profiles in the metric that is compared.
#[derive(Clone, Copy)]
pub(crate) struct Grouped<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) metric: MetricId,
    /// The group of each entry of the function table.
    pub(crate) groups: &'a [Option<GroupIndex>],
}

impl Grouped<'_> {
    pub(crate) fn group(&self, function: FunctionId) -> GroupIndex {
        self.groups[function.index()].unwrap_or(0)
    }

    /// Whether nodes of the tree are chains of callers.
    pub(crate) fn has_contexts(&self) -> bool {
        has_contexts(self.profile, self.metric)
    }
}

/// One of two profiles with its call graph, in which each group is one function.
pub(crate) struct Prepared<'a> {
    of: Grouped<'a>,
    pub(crate) graph: CallGraph,
}

impl<'a> Prepared<'a> {
    /// The call graph of a profile with the first function of each group in the place of all others.
    pub(crate) fn of(of: Grouped<'a>, all: usize) -> Self {
        let Grouped { profile, metric, groups } = of;
        let mut first: Vec<Option<FunctionId>> = vec![None; all];
        let identity = Identity::of(profile);
        for (id, _) in profile.functions.iter() {
            if let Some(group) = groups[id.index()] {
                // The entry that the call graph takes for those of one source.
                first[group].get_or_insert(identity.representative(id));
            }
        }
        let stands = |id: FunctionId| groups[id.index()].and_then(|group| first[group]).unwrap_or(id);
        let mut unified = profile.clone();
        unified.tree = with_functions(&profile.tree, stands);
        for arc in &mut unified.arcs {
            (arc.caller, arc.callee) = (stands(arc.caller), stands(arc.callee));
        }
        let basis = basis(&unified, metric);
        Self { of, graph: CallGraph::of(&unified, &basis, Presentation::Contexts) }
    }

    pub(crate) fn group(&self, function: FunctionId) -> GroupIndex {
        self.of.group(function)
    }
}

/// Whether nodes of a profile's tree are chains of callers.
pub(crate) fn has_contexts(profile: &Profile, metric: MetricId) -> bool {
    let tree = !profile.is_arcs_only() && profile.recursion != RecursionRule::Flat;
    tree && !profile.has_no_stacks_of(metric)
}

/// The basis of a profile in a metric, which may be the number of its samples.
pub(crate) fn basis(profile: &Profile, metric: MetricId) -> Basis {
    of_samples(profile, Basis::of(profile, metric))
}

/// The basis with the samples that it was estimated from, if it is the number of these.
pub fn of_samples(profile: &Profile, mut basis: Basis) -> Basis {
    let metric = basis.metric;
    if basis.samples.is_none() && profile.metrics[metric.index()].name == "samples" {
        // Files of other tools have nothing but the number of samples: each is one.
        basis.samples = Some(metric);
        for run in basis.runs.iter_mut().chain([&mut basis.run]) {
            run.samples = run.cost;
        }
    }
    basis
}

fn with_functions(tree: &Tree, stands: impl Fn(FunctionId) -> FunctionId) -> Tree {
    let functions = tree.function_column().iter().map(|&function| stands(function)).collect();
    let costs = (0..tree.metric_count()).map(|at| tree.self_costs(MetricId::from_usize(at)).to_vec());
    Tree::from_columns(
        tree.parent_column().to_vec(),
        functions,
        tree.call_site_column().to_vec(),
        tree.calls_column().to_vec(),
        tree.recursive_calls_column().to_vec(),
        costs.collect(),
    )
    .expect("the columns are those of a tree")
}
