//! Details of functions and arcs beside their costs.

use hashbrown::HashMap;
use treering_profile::{ActivationStatistics, FunctionId, MetricId, NodeId, NodeMemory, Ports, Profile};

use crate::arc::Arc;
use crate::identity::Identity;

/// Details of a function or an arc beside its costs: those of its nodes, added up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detail {
    /// Statistics of its activations; of one that calls itself directly, those of nested
    /// activations too where the recursion rule folds them into a node.
    pub statistics: ActivationStatistics,
    /// Its ports.
    pub ports: Ports,
    /// The memory that it holds.
    pub memory: NodeMemory,
    /// Its activations by argument size, smallest first.
    pub sizes: Vec<SizeBucket>,
}

/// Activations with arguments of about the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeBucket {
    /// The binary logarithm of the size, rounded down; 0 for size 0 as well.
    pub bucket: u8,
    /// How many activations there were.
    pub calls: u64,
    /// Their total costs together.
    pub total_cost: u64,
}

impl SizeBucket {
    /// The least and the greatest size that belong to the bucket.
    pub fn sizes(&self) -> (u64, u64) {
        let least = if self.bucket == 0 { 0 } else { 1 << self.bucket };
        (least, u64::MAX >> (63 - self.bucket))
    }

    /// The mean cost of an activation.
    pub fn mean(&self) -> f64 {
        self.total_cost as f64 / self.calls.max(1) as f64
    }
}

/// Details beside costs, by function and by arc.
#[derive(Clone, Debug, Default)]
pub struct Details {
    functions: HashMap<FunctionId, Detail>,
    arcs: HashMap<(FunctionId, FunctionId), Detail>,
    /// Whether activations were measured in the metric that is shown.
    pub has_statistics: bool,
    /// Whether argument sizes were noted.
    pub has_sizes: bool,
    /// Whether there are ports.
    pub has_ports: bool,
    /// Whether the holders of memory are known.
    pub has_memory: bool,
}

impl Details {
    /// Adds up what nodes have, in O(nodes that have something). Statistics and sizes are left out
    /// unless they are of `metric`.
    pub fn of(profile: &Profile, metric: MetricId) -> Self {
        if profile.activations.is_none() && profile.ports.is_empty() && profile.memory.is_empty() {
            return Self::default();
        }
        let identity = Identity::of(profile);
        let mut adding = Adding { profile, identity, details: Self::default() };
        for (node, ports) in profile.ports.filled() {
            adding.details.has_ports = true;
            adding.add(node, |detail| detail.ports.add(ports));
        }
        for (node, memory) in profile.memory.filled() {
            adding.details.has_memory = true;
            adding.add(node, |detail| detail.memory.merge(memory));
        }
        adding.activations(metric);
        adding.details
    }

    /// The details of a function.
    pub fn function(&self, function: FunctionId) -> Option<&Detail> {
        self.functions.get(&function)
    }

    /// The details of every arc, by its caller and callee. Callers that are not known are
    /// [`Profile::ROOT`].
    pub fn arcs(&self) -> impl Iterator<Item = ((FunctionId, FunctionId), &Detail)> {
        self.arcs.iter().map(|(&arc, detail)| (arc, detail))
    }

    /// The details of an arc.
    pub fn arc(&self, arc: &Arc) -> Option<&Detail> {
        self.arcs.get(&(arc.caller.unwrap_or(Profile::ROOT), arc.callee))
    }
}

struct Adding<'a> {
    profile: &'a Profile,
    identity: Identity,
    details: Details,
}

impl Adding<'_> {
    /// Adds something to the function of a node and to the arc it was called through.
    fn add(&mut self, node: NodeId, add: impl Fn(&mut Detail)) {
        let tree = &self.profile.tree;
        let function = |node| self.identity.representative(tree.function(node));
        let callee = function(node);
        add(self.details.functions.entry(callee).or_default());
        if let Some(caller) = tree.parent(node).map(function) {
            add(self.details.arcs.entry((caller, callee)).or_default());
        }
    }

    fn activations(&mut self, metric: MetricId) {
        let Some(activations) = &self.profile.activations else { return };
        if activations.metric != metric {
            return;
        }
        for (node, statistics) in activations.nodes.filled() {
            self.details.has_statistics |= statistics.timed > 0;
            self.add(node, |detail| detail.statistics.merge(statistics));
        }
        for row in &activations.sizes {
            self.details.has_sizes = true;
            let (calls, total_cost) = (row.calls, row.total_cost);
            let bucket = SizeBucket { bucket: row.bucket, calls, total_cost };
            self.add(row.node, |detail| add_size(&mut detail.sizes, bucket));
        }
    }
}

fn add_size(sizes: &mut Vec<SizeBucket>, added: SizeBucket) {
    match sizes.binary_search_by_key(&added.bucket, |known| known.bucket) {
        Ok(at) => {
            sizes[at].calls = sizes[at].calls.saturating_add(added.calls);
            sizes[at].total_cost = sizes[at].total_cost.saturating_add(added.total_cost);
        }
        Err(at) => sizes.insert(at, added),
    }
}
