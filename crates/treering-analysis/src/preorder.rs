//! The nodes of a profile in the order in which a program would reach them.

use treering_profile::{NodeId, Profile};

/// Nodes in preorder, thread after thread: a node, then its whole subtree. The children of a node stand in the order of
/// their indexes. In O(nodes), by the sizes of subtrees.
pub fn preorder(profile: &Profile) -> Vec<NodeId> {
    let tree = &profile.tree;
    let mut sizes = vec![1_u32; tree.len()];
    for node in tree.nodes().rev() {
        if let Some(parent) = tree.parent(node) {
            sizes[parent.index()] += sizes[node.index()];
        }
    }
    // By node: the place of the next node below it; roots begin with their own.
    let mut next = vec![u32::MAX; tree.len()];
    let mut length = 0;
    for thread in &profile.threads {
        next[thread.root.index()] = length;
        length += sizes[thread.root.index()];
    }
    let mut order = vec![NodeId::new(0); length as usize];
    for node in tree.nodes() {
        let place = match tree.parent(node) {
            Some(parent) => {
                let place = next[parent.index()];
                next[parent.index()] += sizes[node.index()];
                place
            }
            None => next[node.index()],
        };
        order[place as usize] = node;
        next[node.index()] = place + 1;
    }
    order
}

/// By node: its place in the order.
pub fn places(profile: &Profile, order: &[NodeId]) -> Vec<u32> {
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
            .map(|node| crate::function_name(&profile, profile.tree.function(node)).into_owned())
            .collect();
        let outside = crate::OUTSIDE;
        assert_eq!(names, [outside, "main", "a", "b", "d", "c", outside, "start"]);
    }
}
