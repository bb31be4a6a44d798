//! The nodes of a profile in the order in which a program would reach them.

use treering_profile::{NodeId, Profile};

/// Nodes in preorder, thread after thread: a node, then its whole subtree.
pub(crate) fn preorder(profile: &Profile) -> Vec<NodeId> {
    let tree = &profile.tree;
    let mut starts = vec![0_u32; tree.len() + 1];
    for parent in tree.nodes().filter_map(|node| tree.parent(node)) {
        starts[parent.index() + 1] += 1;
    }
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut next = starts.clone();
    let mut children = vec![0_u32; tree.len()];
    for node in tree.nodes() {
        if let Some(parent) = tree.parent(node) {
            let at = &mut next[parent.index()];
            children[*at as usize] = node.raw();
            *at += 1;
        }
    }
    let mut order = Vec::with_capacity(tree.len());
    let mut pending = Vec::new();
    for thread in &profile.threads {
        pending.push(thread.root.raw());
        while let Some(node) = pending.pop() {
            order.push(NodeId::new(node));
            let (from, to) = (starts[node as usize], starts[node as usize + 1]);
            pending.extend(children[from as usize..to as usize].iter().rev());
        }
    }
    order
}

/// By node: its place in the order.
pub(crate) fn places(profile: &Profile, order: &[NodeId]) -> Vec<u32> {
    let mut place = vec![0_u32; profile.tree.len()];
    for (at, node) in order.iter().enumerate() {
        place[node.index()] = at as u32;
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subtree_follows_its_node() {
        let profile = treering_testing::stacks("main;a;b 1\n main;c 1\n main;a;d 1\n @two start 1");
        let names: Vec<_> = preorder(&profile)
            .into_iter()
            .map(|node| treering_analysis::function_name(&profile, profile.tree.function(node)).into_owned())
            .collect();
        let outside = treering_analysis::OUTSIDE;
        assert_eq!(names, [outside, "main", "a", "b", "d", "c", outside, "start"]);
    }
}
