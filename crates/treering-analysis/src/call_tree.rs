//! The tree of calls, from callers to callees or inverted, without what is too small to matter.

use hashbrown::HashMap;
use treering_profile::{FunctionId, FunctionKind, NodeId, Profile};

use crate::arc_tree;
use crate::basis::Basis;
use crate::contexts::{Children, NodeFunctions};
use crate::flat_totals::TotalSource;
use crate::identity::Identity;
use crate::measure::{Columns, Measure};

/// The direction in which a tree of calls grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// From the first function of each thread to what it called.
    #[default]
    Callees,
    /// From every function to what called it.
    Callers,
}

/// The pruning of a tree of calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pruning {
    /// Nodes below this share of the run are left out; 0 keeps all.
    pub min_share: f64,
    /// Nodes deeper than this are left out.
    pub max_depth: usize,
}

impl Default for Pruning {
    /// Half a percent, and 64 deep: deeper listings are wider than any screen, and the inverted
    /// tree of deep recursion grows with the square of its depth.
    fn default() -> Self {
        Self { min_share: 0.005, max_depth: 64 }
    }
}

/// The tree of calls, threads added up, in the order of printing: a node before what is below it.
#[derive(Clone, Debug, PartialEq)]
pub struct CallTree {
    /// The base of percentages.
    pub basis: Basis,
    /// The direction in which it grows.
    pub direction: Direction,
    /// Nodes, and what was left out in their place.
    pub rows: Vec<TreeRow>,
}

/// A row of a tree of calls.
#[derive(Clone, Debug, PartialEq)]
pub enum TreeRow {
    /// A function reached along one chain.
    Node(TreeNode),
    /// A function of several callers, where the profile has arcs but no stacks.
    Shared(SharedNode),
    /// Nodes that were left out, all below the last shown node that is one less deep.
    Hidden(Hidden),
}

/// Calls of a function that has other callers too, in a profile of arcs: their cost is known, but not how it is
/// divided. In an inverted tree: a caller whose own callers cannot be told apart for these calls.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedNode {
    /// How many nodes are above it.
    pub depth: usize,
    /// The function.
    pub function: FunctionId,
    /// The cost of the calls.
    pub total_cost: Measure,
    /// How many there were.
    pub calls: u64,
    /// How many other functions call it; in an inverted tree, how many callers it has that are not told apart.
    pub others: usize,
    /// Index of the cycle it is in. Calls from outside of it cost what the cycle cost as a whole.
    pub cycle: Option<usize>,
}

impl TreeRow {
    /// How many nodes are above it.
    pub fn depth(&self) -> usize {
        match self {
            Self::Node(node) => node.depth,
            Self::Shared(node) => node.depth,
            Self::Hidden(hidden) => hidden.depth,
        }
    }
}

/// A function reached along one chain of callers, or of callees where the tree is inverted.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeNode {
    /// How many nodes are above it.
    pub depth: usize,
    /// The function; [`Profile::ROOT`] for cost passed outside of every function.
    pub function: FunctionId,
    /// The cost spent in the function itself; in an inverted tree, that of the function at the
    /// top, for the part of it that was reached through this chain.
    pub self_cost: Measure,
    /// The cost of the node and all below it. In an inverted tree equal to the self cost.
    pub total_cost: Measure,
    /// How often it was called along this chain, where calls were counted.
    pub calls: Option<u64>,
    /// Whether it was inlined into its caller wherever it was reached through this chain.
    pub inlined: bool,
    /// Index of the cycle it is in, where the profile has arcs but no stacks. Its total then leaves out the other
    /// functions of the cycle. Stacks tell cycles apart by depth.
    pub cycle: Option<usize>,
}

/// Nodes that were left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hidden {
    /// How many nodes would be above them.
    pub depth: usize,
    /// How many of them there are at this place; what would be below them is not counted.
    pub nodes: usize,
    /// Their cost together.
    pub cost: Measure,
    /// Whether they are left out because they are too deep; else because they are too small.
    pub too_deep: bool,
}

impl CallTree {
    /// The tree of calls of a profile. Nodes are made as they are shown, so the effort below
    /// what is pruned is saved.
    ///
    /// A profile that has arcs but no tree gives what these tell of chains of calls, if they were measured; see
    /// [`SharedNode`]. If they were not, see [`TotalSource`](crate::TotalSource), its functions are side by side, and
    /// none of that is to be shown as a tree.
    pub fn of(profile: &Profile, basis: &Basis, direction: Direction, pruning: Pruning) -> Self {
        if profile.is_arcs_only() && TotalSource::of(profile, basis.metric).is_known() {
            let rows = arc_tree::rows(profile, basis, direction, pruning);
            return Self { basis: basis.clone(), direction, rows };
        }
        let identity = Identity::of(profile);
        let functions = NodeFunctions::of(profile, &identity);
        let children = Children::of(profile);
        let columns = Columns::of(profile, basis.metric, basis.samples);
        let source = Source { profile, totals: columns.totals(&profile.tree), functions, children, columns };
        let first = match direction {
            Direction::Callees => source.outermost(),
            Direction::Callers => source.innermost(),
        };
        let beside_samples = profile.has_counts_apart();
        let mut growth = Growth { source, basis, direction, pruning, beside_samples, rows: Vec::new() };
        growth.grow(first);
        Self { basis: basis.clone(), direction, rows: growth.rows }
    }
}

/// The tree of a profile with what is needed to walk it.
struct Source<'a> {
    profile: &'a Profile,
    functions: NodeFunctions,
    children: Children,
    columns: Columns<'a>,
    totals: Vec<Measure>,
}

/// Nodes of the profile that are one node of the view.
struct Group {
    function: FunctionId,
    /// The nodes where the chain so far ends, each with the part of the cost that came by it.
    members: Vec<(NodeId, Measure)>,
    total: Measure,
}

impl Source<'_> {
    fn function(&self, node: NodeId) -> FunctionId {
        FunctionId::new(self.functions.function(node))
    }

    /// The functions that threads entered first, and the roots where they cost something.
    fn outermost(&self) -> Vec<Group> {
        let roots: Vec<_> = self.profile.threads.iter().map(|thread| thread.root).collect();
        let outside = roots.iter().map(|&root| (root, self.columns.self_cost(root)));
        let outside: Vec<_> = outside.filter(|(_, cost)| !cost.is_zero()).collect();
        let children = roots.iter().flat_map(|&root| self.children(root));
        let mut groups = self.group(children.collect());
        groups.extend(self.group(outside));
        sort(&mut groups);
        groups
    }

    /// Every function that cost something itself.
    fn innermost(&self) -> Vec<Group> {
        let nodes = self.profile.tree.nodes().map(|node| (node, self.columns.self_cost(node)));
        let mut groups = self.group(nodes.filter(|(_, cost)| !cost.is_zero()).collect());
        sort(&mut groups);
        groups
    }

    fn children(&self, node: NodeId) -> impl Iterator<Item = (NodeId, Measure)> + '_ {
        let children = self.children.of_node(node).iter();
        children.map(|&child| (NodeId::new(child), self.totals[child as usize]))
    }

    /// The groups one further along the chain.
    fn next(&self, group: &Group, direction: Direction) -> Vec<Group> {
        let at_root = group.function == Profile::ROOT;
        let mut groups = match direction {
            _ if at_root => Vec::new(),
            Direction::Callees => {
                self.group(group.members.iter().flat_map(|&(node, _)| self.children(node)).collect())
            }
            Direction::Callers => self.group(self.callers(&group.members)),
        };
        sort(&mut groups);
        groups
    }

    /// The callers of nodes, each once with the cost that comes by it. Roots are left out.
    fn callers(&self, members: &[(NodeId, Measure)]) -> Vec<(NodeId, Measure)> {
        let mut callers: HashMap<NodeId, Measure> = HashMap::new();
        for &(node, cost) in members {
            let caller = self.profile.tree.parent(node);
            if let Some(caller) = caller.filter(|&caller| self.profile.tree.parent(caller).is_some()) {
                *callers.entry(caller).or_default() += cost;
            }
        }
        callers.into_iter().collect()
    }

    fn group(&self, nodes: Vec<(NodeId, Measure)>) -> Vec<Group> {
        let mut of_function: HashMap<FunctionId, usize> = HashMap::new();
        let mut groups: Vec<Group> = Vec::new();
        for (node, cost) in nodes {
            let function = self.function(node);
            let at = *of_function.entry(function).or_insert_with(|| {
                groups.push(Group { function, members: Vec::new(), total: Measure::default() });
                groups.len() - 1
            });
            groups[at].members.push((node, cost));
            groups[at].total += cost;
        }
        groups
    }
}

/// Largest first.
fn sort(groups: &mut [Group]) {
    groups.sort_by_key(|group| (std::cmp::Reverse(group.total), group.function));
}

struct Growth<'a> {
    source: Source<'a>,
    basis: &'a Basis,
    direction: Direction,
    pruning: Pruning,
    /// Whether calls were counted by something else than what measured the costs.
    beside_samples: bool,
    rows: Vec<TreeRow>,
}

/// The nodes still to be shown.
enum Pending {
    Group(Group, usize),
    Hidden(Hidden),
}

impl Growth<'_> {
    fn grow(&mut self, first: Vec<Group>) {
        let mut pending = Vec::new();
        self.push(&mut pending, first, 0);
        while let Some(next) = pending.pop() {
            match next {
                Pending::Hidden(hidden) => self.rows.push(TreeRow::Hidden(hidden)),
                Pending::Group(group, depth) => {
                    let node = self.node(&group, depth);
                    self.rows.push(TreeRow::Node(node));
                    let below = self.source.next(&group, self.direction);
                    self.push(&mut pending, below, depth + 1);
                }
            }
        }
    }

    /// Puts groups of the same parent on the stack, the largest on top, and below them what is
    /// said about those left out.
    fn push(&self, pending: &mut Vec<Pending>, groups: Vec<Group>, depth: usize) {
        let too_deep = depth > self.pruning.max_depth;
        let is_shown = |group: &Group| {
            !too_deep
                && !group.total.is_zero()
                && self.basis.share(group.total.cost) >= self.pruning.min_share
        };
        let (shown, left_out): (Vec<_>, Vec<_>) = groups.into_iter().partition(is_shown);
        let cost: Measure = left_out.iter().map(|group| group.total).sum();
        if !cost.is_zero() {
            let nodes = left_out.iter().filter(|group| !group.total.is_zero()).count();
            pending.push(Pending::Hidden(Hidden { depth, nodes, cost, too_deep }));
        }
        pending.extend(shown.into_iter().rev().map(|group| Pending::Group(group, depth)));
    }

    fn is_inlined(&self, node: NodeId) -> bool {
        let profile = self.source.profile;
        profile.functions[profile.tree.function(node)].kind == FunctionKind::Inlined
    }

    fn node(&self, group: &Group, depth: usize) -> TreeNode {
        let own = |&(node, _): &(NodeId, Measure)| self.source.columns.self_cost(node);
        let tree = &self.source.profile.tree;
        let calls =
            || group.members.iter().fold(0_u64, |sum, &(node, _)| sum.saturating_add(tree.calls(node)));
        let inverted = self.direction == Direction::Callers;
        TreeNode {
            depth,
            function: group.function,
            self_cost: if inverted { group.total } else { group.members.iter().map(own).sum() },
            total_cost: group.total,
            calls: (tree.has_calls() && !inverted)
                .then(calls)
                .filter(|&calls| calls > 0 || !self.beside_samples),
            inlined: group.members.iter().all(|&(node, _)| self.is_inlined(node)),
            cycle: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use treering_profile::MetricId;

    fn describe(stacks: &str, direction: Direction, min_share: f64, max_depth: usize) -> String {
        let profile = treering_testing::stacks(stacks);
        let basis = Basis::of(&profile, MetricId::new(0));
        let tree = CallTree::of(&profile, &basis, direction, Pruning { min_share, max_depth });
        let row = |row: &TreeRow| match row {
            TreeRow::Node(node) => {
                let name = crate::function_name(&profile, node.function);
                let indent = "  ".repeat(node.depth);
                format!("{indent}{name} {}/{}\n", node.self_cost.samples, node.total_cost.samples)
            }
            TreeRow::Shared(_) => unreachable!("there are stacks"),
            TreeRow::Hidden(hidden) => {
                let indent = "  ".repeat(hidden.depth);
                format!(
                    "{indent}... {} nodes {} too deep {}\n",
                    hidden.nodes, hidden.cost.samples, hidden.too_deep
                )
            }
        };
        tree.rows.iter().map(row).collect()
    }

    const STACKS: &str = "
        main@1;work;copy 50
        main@2;work;copy 10
        main;copy 30
        main;log;format 4
        main;log;write 3
        main;exit 1
        @two start;copy 2
    ";

    #[test]
    fn call_sites_and_threads_are_added_up_and_small_nodes_named_as_hidden() {
        expect_test::expect![[r#"
            main 0/98
              work 0/60
                copy 60/60
              copy 30/30
              log 0/7
                ... 2 nodes 7 too deep false
              ... 1 nodes 1 too deep false
            ... 1 nodes 2 too deep false
        "#]]
        .assert_eq(&describe(STACKS, Direction::Callees, 0.05, 64));
    }

    #[test]
    fn the_inverted_tree_starts_at_self_costs() {
        expect_test::expect![[r#"
            copy 92/92
              work 60/60
                ... 1 nodes 60 too deep true
              main 30/30
              ... 1 nodes 2 too deep false
            ... 3 nodes 8 too deep false
        "#]]
        .assert_eq(&describe(STACKS, Direction::Callers, 0.05, 1));
    }

    #[test]
    fn a_stack_without_frames_is_outside_of_every_function() {
        expect_test::expect![[r#"
            main 7/7
            <outside of any function> 3/3
        "#]]
        .assert_eq(&describe("main 7\n 3", Direction::Callees, 0.0, 64));
    }
}
