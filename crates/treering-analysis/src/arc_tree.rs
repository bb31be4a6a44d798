//! Trees of calls of a profile that has arcs but no stacks, as far as measured arcs determine them.
//!
//! An arc sums up all calls of one function by another, for all callers of the caller. So a chain of calls is known
//! as far as each of its functions has one caller only: all its calls belong to that chain. If a function has several
//! callers, or is in a cycle, its calls cannot be divided among them. It is then listed separately with all its
//! calls, and below its callers only with the cost of their calls of it.

use hashbrown::HashMap;
use treering_profile::{FunctionId, Profile};

use crate::arc::Arc;
use crate::basis::Basis;
use crate::call_tree::{Direction, Hidden, Pruning, SharedNode, TreeNode, TreeRow};
use crate::graph::{CallGraph, FunctionCost, Presentation};
use crate::measure::Measure;

/// The rows of a tree of calls of a profile whose arcs were measured.
pub(crate) fn rows(profile: &Profile, basis: &Basis, direction: Direction, pruning: Pruning) -> Vec<TreeRow> {
    let graph = CallGraph::of(profile, basis, Presentation::CollapsedCycles);
    let mut callers: HashMap<FunctionId, usize> = HashMap::new();
    for arc in graph.arcs.iter().filter(|arc| arc.caller.is_some() && !arc.is_recursive()) {
        *callers.entry(arc.callee).or_default() += 1;
    }
    let mut growth = Growth { graph: &graph, callers, direction, pruning, rows: Vec::new() };
    growth.grow();
    growth.rows
}

struct Growth<'a> {
    graph: &'a CallGraph,
    /// How many others call a function.
    callers: HashMap<FunctionId, usize>,
    direction: Direction,
    pruning: Pruning,
    rows: Vec<TreeRow>,
}

/// The nodes still to be shown.
enum Pending {
    Node(TreeNode),
    Shared(SharedNode),
    Hidden(Hidden),
}

impl Pending {
    fn total(&self) -> Measure {
        match self {
            Self::Node(node) => node.total_cost,
            Self::Shared(node) => node.total_cost,
            Self::Hidden(hidden) => hidden.cost,
        }
    }

    fn function(&self) -> Option<FunctionId> {
        match self {
            Self::Node(node) => Some(node.function),
            Self::Shared(node) => Some(node.function),
            Self::Hidden(_) => None,
        }
    }
}

impl Growth<'_> {
    fn grow(&mut self) {
        let mut pending = Vec::new();
        let is_top = |cost: &&FunctionCost| match self.direction {
            Direction::Callees => self.only_caller(cost.function).is_none(),
            Direction::Callers => !cost.self_cost.is_zero(),
        };
        let top = self.graph.functions.iter().filter(is_top).map(|cost| Pending::Node(node(cost, 0)));
        self.push(&mut pending, top.collect(), 0);
        while let Some(next) = pending.pop() {
            let below = match &next {
                Pending::Node(node) => self.next(node.function, node.depth + 1, None),
                Pending::Shared(node) => self.callers_of_shared(node),
                Pending::Hidden(_) => Vec::new(),
            };
            let depth = match next {
                Pending::Node(node) => {
                    self.rows.push(TreeRow::Node(node.clone()));
                    node.depth
                }
                Pending::Shared(node) => {
                    self.rows.push(TreeRow::Shared(node.clone()));
                    node.depth
                }
                Pending::Hidden(hidden) => {
                    self.rows.push(TreeRow::Hidden(hidden));
                    continue;
                }
            };
            self.push(&mut pending, below, depth + 1);
        }
    }

    /// The caller of a function that has one only, and is in no cycle.
    fn only_caller(&self, function: FunctionId) -> Option<&Arc> {
        let in_cycle = self.graph.function(function).is_none_or(|cost| cost.cycle.is_some());
        let one = !in_cycle && self.callers.get(&function) == Some(&1);
        let mut arcs = self.graph.callers(function).filter(|arc| arc.caller.is_some() && !arc.is_recursive());
        arcs.next().filter(|_| one)
    }

    /// The callees of a function, or its callers: with `cost`, the cost of that chain of calls.
    fn next(&self, function: FunctionId, depth: usize, cost: Option<Measure>) -> Vec<Pending> {
        match self.direction {
            Direction::Callees => {
                let arcs = self.graph.callees(function).filter(|arc| !arc.is_recursive());
                arcs.filter_map(|arc| self.callee(arc, depth)).collect()
            }
            Direction::Callers => {
                let arcs = self.graph.callers(function).filter(|arc| !arc.is_recursive());
                arcs.filter_map(|arc| self.caller(arc, depth, cost)).collect()
            }
        }
    }

    fn callee(&self, arc: &Arc, depth: usize) -> Option<Pending> {
        let cost = self.graph.function(arc.callee)?;
        if self.only_caller(arc.callee).is_some() {
            return Some(Pending::Node(node(cost, depth)));
        }
        let others = self.callers.get(&arc.callee).map_or(0, |&callers| callers - 1);
        Some(Pending::Shared(self.shared(arc, arc.callee, depth, others, arc.total_cost)))
    }

    fn caller(&self, arc: &Arc, depth: usize, cost: Option<Measure>) -> Option<Pending> {
        let caller = arc.caller?;
        let known = self.only_caller(caller).is_some();
        let others = if known { 0 } else { self.callers.get(&caller).copied().unwrap_or(0) };
        Some(Pending::Shared(self.shared(arc, caller, depth, others, cost.unwrap_or(arc.total_cost))))
    }

    fn shared(
        &self,
        arc: &Arc,
        function: FunctionId,
        depth: usize,
        others: usize,
        total_cost: Measure,
    ) -> SharedNode {
        let cycle = self.graph.function(function).and_then(|cost| cost.cycle);
        SharedNode { depth, function, total_cost, calls: arc.calls, others, cycle }
    }

    /// Of a caller that has one caller itself, all calls came by that.
    fn callers_of_shared(&self, node: &SharedNode) -> Vec<Pending> {
        let goes_on = self.direction == Direction::Callers && self.only_caller(node.function).is_some();
        if goes_on { self.next(node.function, node.depth + 1, Some(node.total_cost)) } else { Vec::new() }
    }

    /// Puts rows of the same depth on the stack, the largest on top, and below them the note on those left out.
    fn push(&self, pending: &mut Vec<Pending>, mut rows: Vec<Pending>, depth: usize) {
        let by_self = self.direction == Direction::Callers && depth == 0;
        rows.sort_by_key(|row| {
            let own = match row {
                Pending::Node(node) if by_self => node.self_cost,
                row => row.total(),
            };
            (std::cmp::Reverse(own), row.function())
        });
        let too_deep = depth > self.pruning.max_depth;
        let size = |row: &Pending| match row {
            Pending::Node(node) if by_self => node.self_cost,
            row => row.total(),
        };
        let is_shown =
            |row: &Pending| !too_deep && self.graph.basis.share(size(row).cost) >= self.pruning.min_share;
        let (shown, left_out): (Vec<_>, Vec<_>) = rows.into_iter().partition(is_shown);
        let cost: Measure = left_out.iter().map(&size).sum();
        if !cost.is_zero() {
            let nodes = left_out.iter().filter(|row| !size(row).is_zero()).count();
            pending.push(Pending::Hidden(Hidden { depth, nodes, cost, too_deep }));
        }
        pending.extend(shown.into_iter().rev());
    }
}

fn node(cost: &FunctionCost, depth: usize) -> TreeNode {
    TreeNode {
        depth,
        function: cost.function,
        self_cost: cost.self_cost,
        total_cost: cost.total_cost,
        calls: cost.calls.map(|calls| calls.all),
        inlined: false,
        cycle: cost.cycle,
    }
}

#[cfg(test)]
mod tests {
    use treering_profile::MetricId;

    use super::*;
    use crate::flat_profile::flat_profile;

    /// `main` calls `a` and `b`, both call `sort`, which calls `compare`; `log` is called by `b` alone.
    fn profile() -> (Profile, Basis) {
        let own = [("main", 1), ("a", 2), ("b", 3), ("sort", 40), ("compare", 50), ("log", 4)];
        let arcs = [
            ("main", "a", 82),
            ("main", "b", 17),
            ("a", "sort", 80),
            ("b", "sort", 10),
            ("sort", "compare", 50),
            ("b", "log", 4),
        ];
        let profile = flat_profile(&own, &arcs.map(|(caller, callee, cost)| (caller, callee, 1, Some(cost))));
        let basis = Basis::of(&profile, MetricId::new(0));
        (profile, basis)
    }

    fn describe(direction: Direction) -> String {
        let (profile, basis) = profile();
        let row = |row: TreeRow| {
            let indent = "  ".repeat(row.depth());
            let name = |function| crate::function_name(&profile, function).into_owned();
            match row {
                TreeRow::Node(n) => {
                    format!("{indent}{} {}/{}\n", name(n.function), n.self_cost.cost, n.total_cost.cost)
                }
                TreeRow::Shared(n) => {
                    format!("{indent}{} ?/{} others {}\n", name(n.function), n.total_cost.cost, n.others)
                }
                TreeRow::Hidden(hidden) => format!("{indent}… {}\n", hidden.cost.cost),
            }
        };
        rows(&profile, &basis, direction, Pruning { min_share: 0.0, max_depth: 9 })
            .into_iter()
            .map(row)
            .collect()
    }

    #[test]
    fn calls_of_a_function_with_several_callers_are_not_divided_among_them() {
        expect_test::expect![[r#"
            main 1/100
              a 2/82
                sort ?/80 others 1
              b 3/17
                sort ?/10 others 1
                log 4/4
            sort 40/90
              compare 50/50
        "#]]
        .assert_eq(&describe(Direction::Callees));
    }

    /// The total of a member without the others looked like one that contradicts the calls from outside.
    #[test]
    fn functions_in_a_cycle_say_so() {
        let (mut profile, basis) = profile();
        let function = |name: &str| {
            let named = |id: &FunctionId| crate::function_name(&profile, *id) == name;
            profile.functions.iter().map(|(id, _)| id).find(named).expect("it is there")
        };
        let (caller, callee) = (function("compare"), function("sort"));
        let total_costs = vec![(basis.metric, 40)];
        profile.add_arc(treering_profile::Arc { caller, callee, call_site: None, calls: 1, total_costs });
        for direction in [Direction::Callees, Direction::Callers] {
            for row in rows(&profile, &basis, direction, Pruning { min_share: 0.0, max_depth: 9 }) {
                let (function, cycle) = match row {
                    TreeRow::Node(node) => (node.function, node.cycle),
                    TreeRow::Shared(node) => (node.function, node.cycle),
                    TreeRow::Hidden(hidden) => panic!("{hidden:?}"),
                };
                assert_eq!(cycle.is_some(), [caller, callee].contains(&function), "{function:?}");
            }
        }
    }

    #[test]
    fn chains_of_callers_go_on_as_long_as_there_is_one() {
        expect_test::expect![[r#"
            compare 50/50
              sort ?/50 others 2
            sort 40/90
              a ?/80 others 0
                main ?/80 others 0
              b ?/10 others 0
                main ?/10 others 0
            log 4/4
              b ?/4 others 0
                main ?/4 others 0
            b 3/17
              main ?/17 others 0
            a 2/82
              main ?/82 others 0
            main 1/100
        "#]]
        .assert_eq(&describe(Direction::Callers));
    }
}
