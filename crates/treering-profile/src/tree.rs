//! The calling context tree, stored as columns.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::{FunctionId, LineId, MetricId, NodeId};

/// The calling context trees of all threads: one node for each function reached along one chain
/// of callers, under the profile's recursion rule.
///
/// Stored as columns. A parent always comes before its children, so one pass in order visits
/// callers first and one pass backwards visits callees first. Only self costs are stored; the
/// total cost is the sum over the node's subtree and is always derived, so the two cannot
/// disagree.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    parents: Vec<u32>,
    functions: Vec<FunctionId>,
    call_sites: Vec<u32>,
    calls: Vec<u64>,
    recursive_calls: Vec<u64>,
    self_costs: Vec<Vec<u64>>,
    children: Option<HashTable<u32>>,
    hasher: DefaultHashBuilder,
}

/// Marks a missing parent or call site.
const NONE: u32 = u32::MAX;

impl Tree {
    /// How many nodes there are, roots included.
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    /// Every node, callers before callees. Reversible.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + use<> {
        (0..self.parents.len()).map(NodeId::from_usize)
    }

    /// The caller's node; nothing for a root.
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        optional(self.parents[node.index()]).map(NodeId::new)
    }

    /// The node and its ancestors up to the root.
    pub fn path(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(Some(node), |&at| self.parent(at))
    }

    /// The function of the node.
    pub fn function(&self, node: NodeId) -> FunctionId {
        self.functions[node.index()]
    }

    /// The line in the parent's function from which this node is called, where known.
    pub fn call_site(&self, node: NodeId) -> Option<LineId> {
        optional(self.call_sites[node.index()]).map(LineId::new)
    }

    /// How often the node was entered, recursive calls that were folded into it included.
    /// 0 for all nodes of a sampled profile.
    pub fn calls(&self, node: NodeId) -> u64 {
        self.calls.get(node.index()).copied().unwrap_or(0)
    }

    /// How many of the calls were folded into the node by the recursion rule.
    pub fn recursive_calls(&self, node: NodeId) -> u64 {
        self.recursive_calls.get(node.index()).copied().unwrap_or(0)
    }

    /// Whether calls were counted at all.
    pub fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// The cost spent in the node itself.
    pub fn self_cost(&self, metric: MetricId, node: NodeId) -> u64 {
        self.self_costs[metric.index()][node.index()]
    }

    /// The self costs of all nodes in one metric.
    pub fn self_costs(&self, metric: MetricId) -> &[u64] {
        &self.self_costs[metric.index()]
    }

    /// How many metrics there are columns for.
    pub fn metric_count(&self) -> usize {
        self.self_costs.len()
    }

    /// The total cost of every node in one metric: its self cost and that of its whole subtree.
    pub fn total_costs(&self, metric: MetricId) -> Vec<u64> {
        let mut totals = self.self_costs(metric).to_vec();
        for node in self.nodes().rev() {
            if let Some(parent) = self.parent(node) {
                totals[parent.index()] += totals[node.index()];
            }
        }
        totals
    }

    /// Adds a column of zeros for a new metric.
    pub(crate) fn add_metric(&mut self) -> MetricId {
        self.self_costs.push(vec![0; self.len()]);
        MetricId::from_usize(self.self_costs.len() - 1)
    }

    /// Adds a root, which has no parent and no call site.
    pub(crate) fn add_root(&mut self, function: FunctionId) -> NodeId {
        self.push(NONE, function, NONE)
    }

    /// The child of `parent` that runs `function` called from `call_site`, made if new.
    pub fn child(&mut self, parent: NodeId, function: FunctionId, call_site: Option<LineId>) -> NodeId {
        let call_site = call_site.map_or(NONE, LineId::raw);
        let hash = self.hasher.hash_one((parent.raw(), function.raw(), call_site));
        if self.children.is_none() {
            self.children = Some(self.index_children());
        }
        let children = self.children.as_ref().expect("made above");
        let is_it = |&at: &u32| {
            let at = at as usize;
            self.parents[at] == parent.raw()
                && self.functions[at] == function
                && self.call_sites[at] == call_site
        };
        if let Some(&found) = children.find(hash, is_it) {
            return NodeId::new(found);
        }
        let node = self.push(parent.raw(), function, call_site);
        let mut children = self.children.take().expect("made above");
        children.insert_unique(hash, node.raw(), |&at| self.hash_node(at));
        self.children = Some(children);
        node
    }

    /// Adds to the self cost of a node; stops at 2^64 − 1 rather than wrapping.
    pub fn add_self_cost(&mut self, metric: MetricId, node: NodeId, cost: u64) {
        let cell = &mut self.self_costs[metric.index()][node.index()];
        *cell = cell.saturating_add(cost);
    }

    /// Replaces the self costs of all nodes in one metric.
    ///
    /// # Panics
    /// When there is not one cost for each node.
    pub fn set_self_costs(&mut self, metric: MetricId, costs: Vec<u64>) {
        assert_eq!(costs.len(), self.len(), "there is a cost for each node");
        self.self_costs[metric.index()] = costs;
    }

    /// Counts calls of a node, `recursive` of which were folded into it; stops at 2^64 − 1.
    pub fn add_calls(&mut self, node: NodeId, calls: u64, recursive: u64) {
        if self.calls.is_empty() {
            self.calls = vec![0; self.len()];
            self.recursive_calls = vec![0; self.len()];
        }
        let add = |cell: &mut u64, more: u64| *cell = cell.saturating_add(more);
        add(&mut self.calls[node.index()], calls);
        add(&mut self.recursive_calls[node.index()], recursive);
    }

    fn push(&mut self, parent: u32, function: FunctionId, call_site: u32) -> NodeId {
        let node = NodeId::from_usize(self.parents.len());
        self.parents.push(parent);
        self.functions.push(function);
        self.call_sites.push(call_site);
        if self.has_calls() {
            self.calls.push(0);
            self.recursive_calls.push(0);
        }
        for column in &mut self.self_costs {
            column.push(0);
        }
        node
    }

    fn index_children(&self) -> HashTable<u32> {
        let mut children = HashTable::with_capacity(self.len());
        for at in 0..self.len() as u32 {
            if self.parents[at as usize] != NONE {
                children.insert_unique(self.hash_node(at), at, |&at| self.hash_node(at));
            }
        }
        children
    }

    fn hash_node(&self, at: u32) -> u64 {
        let index = at as usize;
        self.hasher.hash_one((self.parents[index], self.functions[index].raw(), self.call_sites[index]))
    }
}

/// The columns as a file holds them.
impl Tree {
    /// Builds a tree from its columns; says what is wrong with them when they do not make one.
    ///
    /// `parents` and `call_sites` hold `u32::MAX` for none. `calls` and `recursive_calls` may be
    /// empty when calls were not counted.
    pub fn from_columns(
        parents: Vec<u32>,
        functions: Vec<FunctionId>,
        call_sites: Vec<u32>,
        calls: Vec<u64>,
        recursive_calls: Vec<u64>,
        self_costs: Vec<Vec<u64>>,
    ) -> Result<Self, &'static str> {
        let length = parents.len();
        let fits = |column: usize| column == length;
        if !fits(functions.len()) || !fits(call_sites.len()) || !self_costs.iter().all(|c| fits(c.len())) {
            return Err("the columns of the tree differ in length");
        }
        if calls.len() != recursive_calls.len() || !(calls.is_empty() || fits(calls.len())) {
            return Err("the columns of calls do not fit the tree");
        }
        if parents.iter().enumerate().any(|(at, &parent)| parent != NONE && parent as usize >= at) {
            return Err("a node comes before its parent");
        }
        Ok(Self {
            parents,
            functions,
            call_sites,
            calls,
            recursive_calls,
            self_costs,
            children: None,
            hasher: DefaultHashBuilder::default(),
        })
    }

    /// The parents column; `u32::MAX` for roots.
    pub fn parent_column(&self) -> &[u32] {
        &self.parents
    }

    /// The functions column.
    pub fn function_column(&self) -> &[FunctionId] {
        &self.functions
    }

    /// The call sites column; `u32::MAX` for none.
    pub fn call_site_column(&self) -> &[u32] {
        &self.call_sites
    }

    /// The calls column; empty when calls were not counted.
    pub fn calls_column(&self) -> &[u64] {
        &self.calls
    }

    /// The column of recursive calls; empty when calls were not counted.
    pub fn recursive_calls_column(&self) -> &[u64] {
        &self.recursive_calls
    }
}

fn optional(stored: u32) -> Option<u32> {
    (stored != NONE).then_some(stored)
}
