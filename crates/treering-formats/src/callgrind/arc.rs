//! Arcs measured from a tree.

use std::collections::{BTreeMap, HashMap};

use treering_profile::{Arc, FunctionId, LineId, MetricId, NodeId, Profile};

/// The arcs of a profile: those it has, or those measured from its tree.
///
/// The cost of an arc is the total cost of the callee's activations made from the caller. Where
/// such a call happens while another one of the same caller and callee is still open, its cost is
/// within that one's and is not counted again; so no arc exceeds the run. The cost goes to the
/// call site of the outermost call; calls are counted at each call site.
///
/// Calls from a thread's root have no caller and make no arc. Calls that the recursion rule
/// folded into a node are counted as calls of the function by itself, without a cost of their
/// own.
///
/// Calls that were counted apart from the tree are known by function, not by line: they stand at the
/// line of the caller that cost most, with what all its lines cost.
pub(crate) fn arcs(profile: &Profile) -> Vec<Arc> {
    match () {
        () if profile.is_arcs_only() => profile.arcs.clone(),
        () if profile.has_counts_apart() => with_counts(profile, Measurement::of(profile)),
        () => Measurement::of(profile),
    }
}

/// Measured arcs with counted calls, including those without a cost. An arc whose calls were not counted has none.
fn with_counts(profile: &Profile, measured: Vec<Arc>) -> Vec<Arc> {
    let mut arcs: BTreeMap<(FunctionId, FunctionId), Arc> = BTreeMap::new();
    // By arc: what the line cost most that it stands at.
    let mut most: HashMap<(FunctionId, FunctionId), u64> = HashMap::new();
    let largest = |arc: &Arc| arc.total_costs.iter().map(|cost| cost.1).max().unwrap_or(0);
    for arc in measured {
        let key = (arc.caller, arc.callee);
        let cost = largest(&arc);
        let Some(known) = arcs.get_mut(&key) else {
            most.insert(key, cost);
            arcs.insert(key, arc);
            continue;
        };
        for (sum, (_, cost)) in known.total_costs.iter_mut().zip(&arc.total_costs) {
            sum.1 += cost;
        }
        let before = most.entry(key).or_default();
        if cost > *before {
            *before = cost;
            known.call_site = arc.call_site;
        }
        known.calls = known.calls.saturating_add(arc.calls);
    }
    for counted in profile.arcs.iter().filter(|arc| arc.caller != Profile::ROOT) {
        let key = (counted.caller, counted.callee);
        let arc = arcs.entry(key).or_insert_with(|| Arc {
            calls: 0,
            call_site: None,
            total_costs: profile.metrics().map(|(metric, _)| (metric, 0)).collect(),
            ..counted.clone()
        });
        arc.calls = arc.calls.saturating_add(counted.calls);
    }
    arcs.into_values().collect()
}

/// The key of an arc.
type Key = (FunctionId, FunctionId, Option<LineId>);

/// A walk over the tree, callers before callees.
struct Measurement<'a> {
    profile: &'a Profile,
    /// The total costs of all nodes, by metric.
    totals: Vec<Vec<u64>>,
    children: Children,
    /// How many calls of a caller and callee are open on the path to the current node.
    open: HashMap<(FunctionId, FunctionId), u32>,
    index: HashMap<Key, usize>,
    arcs: Vec<Arc>,
}

/// A node to be entered, or left after all its descendants.
enum Step {
    Enter(NodeId),
    Leave(NodeId),
}

impl<'a> Measurement<'a> {
    fn of(profile: &'a Profile) -> Vec<Arc> {
        let mut measurement = Self {
            profile,
            totals: profile.metrics().map(|(metric, _)| profile.tree.total_costs(metric)).collect(),
            children: Children::of(profile),
            open: HashMap::new(),
            index: HashMap::new(),
            arcs: Vec::new(),
        };
        for thread in &profile.threads {
            measurement.walk(thread.root);
        }
        measurement.arcs
    }

    /// With a stack of its own: recursion may be deeper than ours.
    fn walk(&mut self, root: NodeId) {
        let mut steps = vec![Step::Enter(root)];
        while let Some(step) = steps.pop() {
            match step {
                Step::Enter(node) => {
                    self.enter(node);
                    steps.push(Step::Leave(node));
                    steps.extend(self.children.of_node(node).map(Step::Enter));
                }
                Step::Leave(node) => self.leave(node),
            }
        }
    }

    /// Caller and callee of the call that the node stands for; nothing for a function that a root calls.
    fn ends(&self, node: NodeId) -> Option<(FunctionId, FunctionId)> {
        let tree = &self.profile.tree;
        let caller = tree.function(tree.parent(node)?);
        (caller != Profile::ROOT).then(|| (caller, tree.function(node)))
    }

    fn enter(&mut self, node: NodeId) {
        let tree = &self.profile.tree;
        let (calls, folded) = (tree.calls(node), tree.recursive_calls(node));
        if folded > 0 {
            let function = tree.function(node);
            self.arc((function, function, None)).calls += folded;
        }
        let Some((caller, callee)) = self.ends(node) else { return };
        let open = self.open.entry((caller, callee)).or_default();
        *open += 1;
        let outermost = *open == 1;
        let arc = self.arc((caller, callee, tree.call_site(node)));
        arc.calls += calls.saturating_sub(folded);
        if outermost {
            let at = self.index[&(caller, callee, tree.call_site(node))];
            for (known, totals) in self.arcs[at].total_costs.iter_mut().zip(&self.totals) {
                known.1 += totals[node.index()];
            }
        }
    }

    fn leave(&mut self, node: NodeId) {
        if let Some(open) = self.ends(node).and_then(|ends| self.open.get_mut(&ends)) {
            *open -= 1;
        }
    }

    fn arc(&mut self, key: Key) -> &mut Arc {
        let (caller, callee, call_site) = key;
        let arcs = &mut self.arcs;
        let metrics = 0..self.profile.metrics.len();
        let at = *self.index.entry(key).or_insert_with(|| {
            let total_costs = metrics.map(|metric| (MetricId::from_usize(metric), 0)).collect();
            arcs.push(Arc { caller, callee, call_site, calls: 0, total_costs });
            arcs.len() - 1
        });
        &mut self.arcs[at]
    }
}

/// The children of every node, as lists linked through columns.
struct Children {
    first: Vec<u32>,
    next: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Children {
    fn of(profile: &Profile) -> Self {
        let length = profile.tree.len();
        let mut children = Self { first: vec![NONE; length], next: vec![NONE; length] };
        for node in profile.tree.nodes() {
            if let Some(parent) = profile.tree.parent(node) {
                let first = &mut children.first[parent.index()];
                children.next[node.index()] = std::mem::replace(first, node.raw());
            }
        }
        children
    }

    fn of_node(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let some = |at: u32| (at != NONE).then(|| NodeId::new(at));
        std::iter::successors(some(self.first[node.index()]), move |node| some(self.next[node.index()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arcs as `caller>callee calls cost`, of stacks with weights.
    fn measured(stacks: &str) -> Vec<String> {
        let (profile, _) = crate::folded::read(stacks.as_bytes()).unwrap();
        let name = |function| crate::label::label(&profile, function).into_owned();
        let mut arcs: Vec<_> = arcs(&profile)
            .iter()
            .map(|arc| format!("{}>{} {}", name(arc.caller), name(arc.callee), arc.total_costs[0].1))
            .collect();
        arcs.sort();
        arcs
    }

    #[test]
    fn an_arc_has_the_total_of_the_callee_from_that_caller() {
        assert_eq!(measured("a;b;c 1\na;c 2\na;b 4"), ["a>b 5", "a>c 2", "b>c 1"]);
    }

    #[test]
    fn nested_calls_of_the_same_arc_are_counted_once() {
        // Summed naively, f>f would be 3 + 2 + 1 = 6, above the run cost of 4.
        assert_eq!(measured("f 1\nf;f 1\nf;f;f 1\nf;f;f;f 1"), ["f>f 3"]);
        assert_eq!(measured("f;g;f;g 1\nf;g;f 1\nf;g 1"), ["f>g 3", "g>f 2"]);
    }

    #[test]
    fn the_same_arc_on_two_branches_adds_up() {
        assert_eq!(measured("a;f;g 1\nb;f;g 2"), ["a>f 1", "b>f 2", "f>g 3"]);
    }
}
