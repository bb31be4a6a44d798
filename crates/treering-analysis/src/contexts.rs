//! The calling context tree made ready for walking down.

use hashbrown::HashMap;
use treering_profile::{NodeId, Profile, Tree};

use crate::identity::Identity;

/// By node: the index of its function, with all entries for that joined.
pub(crate) struct NodeFunctions(Vec<u32>);

impl NodeFunctions {
    pub(crate) fn of(profile: &Profile, identity: &Identity) -> Self {
        let column = profile.tree.function_column().iter();
        Self(column.map(|&function| identity.representative(function).raw()).collect())
    }

    pub(crate) fn function(&self, node: NodeId) -> u32 {
        self.0[node.index()]
    }
}

/// The children of every node, which the tree has the parents of only: in one array, those of a node together.
pub(crate) struct Children {
    /// By node: where its children start in `children`; one more at the end.
    starts: Vec<u32>,
    children: Vec<u32>,
}

impl Children {
    pub(crate) fn of(profile: &Profile) -> Self {
        let tree = &profile.tree;
        let starts = starts(tree);
        let mut next = starts.clone();
        let mut children = vec![0; tree.len() - profile.threads.len().min(tree.len())];
        for node in tree.nodes() {
            if let Some(parent) = tree.parent(node) {
                let at = &mut next[parent.index()];
                children[*at as usize] = node.raw();
                *at += 1;
            }
        }
        Self { starts, children }
    }

    pub(crate) fn of_node(&self, node: NodeId) -> &[u32] {
        let (from, to) = (self.starts[node.index()], self.starts[node.index() + 1]);
        &self.children[from as usize..to as usize]
    }
}

/// Where the children of each node start when they are listed by parent.
fn starts(tree: &Tree) -> Vec<u32> {
    let mut starts = vec![0; tree.len() + 1];
    for parent in tree.nodes().filter_map(|node| tree.parent(node)) {
        starts[parent.index() + 1] += 1;
    }
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    starts
}

/// The arcs of a tree: the pairs of functions of a node and its parent.
pub(crate) struct TreeArcs {
    /// Caller and callee of each arc, as indexes of the function table.
    pub(crate) ends: Vec<(u32, u32)>,
    /// By node: the arc it was called through; `u32::MAX` for roots.
    pub(crate) of_node: Vec<u32>,
    /// By node: the arc of the calls that the recursion rule folded into it, from the function
    /// to itself; empty when there are none.
    pub(crate) folded: HashMap<NodeId, u32>,
}

impl TreeArcs {
    /// Finds the arcs, in O(nodes).
    pub(crate) fn of(tree: &Tree, functions: &NodeFunctions) -> Self {
        let mut known: HashMap<(u32, u32), u32> = HashMap::new();
        let mut arcs =
            Self { ends: Vec::new(), of_node: Vec::with_capacity(tree.len()), folded: HashMap::new() };
        let mut find = |ends: &mut Vec<_>, arc| {
            *known.entry(arc).or_insert_with(|| {
                ends.push(arc);
                ends.len() as u32 - 1
            })
        };
        for node in tree.nodes() {
            let function = functions.function(node);
            let caller = tree.parent(node).map(|parent| functions.function(parent));
            let arc = caller.map_or(u32::MAX, |caller| find(&mut arcs.ends, (caller, function)));
            arcs.of_node.push(arc);
            if tree.recursive_calls(node) > 0 {
                let itself = find(&mut arcs.ends, (function, function));
                arcs.folded.insert(node, itself);
            }
        }
        arcs
    }
}
