//! Laws of every call graph: sums that agree, totals within the run, contributions that
//! match a slow reading of their definitions.

use std::collections::BTreeMap;

use proptest::prelude::*;
use treering_analysis::{
    Basis, CallGraph, CallTree, Direction, LineTable, Measure, Presentation, Pruning, TreeRow,
};
use treering_profile::{FunctionId, MetricId, NodeId, Profile, RecursionRule, merge};
use treering_testing::{stacks_with, trace_with};

const METRIC: MetricId = MetricId::new(0);
const RULES: [RecursionRule; 3] = [RecursionRule::Full, RecursionRule::Direct, RecursionRule::SwiClassic];

/// Traces as text; few functions, so that recursion and cycles are common.
fn traces() -> impl Strategy<Value = String> {
    let event = (prop_oneof![3 => (0..5_u8).prop_map(Some), 2 => Just(None)], 0..100_u64, 0..2_u8);
    prop::collection::vec(event, 0..100).prop_map(|events| {
        let (mut text, mut now, mut depths) = (String::new(), 0, [0_u32; 2]);
        for (entered, after, thread) in events {
            now += after;
            let depth = &mut depths[usize::from(thread)];
            match entered {
                Some(function) => {
                    *depth += 1;
                    text += &format!("{now} @t{thread} enter f{function}\n");
                }
                None if *depth > 0 => {
                    *depth -= 1;
                    text += &format!("{now} @t{thread} leave\n");
                }
                None => {}
            }
        }
        text
    })
}

/// Sampled stacks as text.
fn stacks() -> impl Strategy<Value = String> {
    let frame = (0..5_u8, 1..4_u8).prop_map(|(function, line)| format!("f{function}@{line}"));
    let stack = prop::collection::vec(frame, 0..10).prop_map(|frames| frames.join(";"));
    let line = (0..2_u8, stack, 0..50_u64)
        .prop_map(|(thread, stack, samples)| format!("@t{thread} {stack} {samples}\n"));
    prop::collection::vec(line, 0..25).prop_map(|lines| lines.concat())
}

/// The laws that every call graph of a profile with a tree obeys.
fn check_laws(profile: &Profile, presentation: Presentation) -> Result<(), TestCaseError> {
    let basis = Basis::of(profile, METRIC);
    let graph = CallGraph::of(profile, &basis, presentation);
    let self_costs: Measure = graph.functions.iter().map(|cost| cost.self_cost).sum();
    prop_assert_eq!(self_costs, basis.run, "self costs add up to the run");
    prop_assert_eq!(basis.run.cost, profile.run_cost(METRIC));
    for cost in &graph.functions {
        prop_assert!(cost.total_cost.cost <= basis.run.cost, "a total exceeds the run");
        prop_assert!(cost.total_cost.cost >= cost.self_cost.cost, "a total is below its self cost");
        for (interval, measure) in
            [(cost.self_interval, cost.self_cost), (cost.total_interval, cost.total_cost)]
        {
            if let Some(interval) = interval {
                prop_assert!(interval.contains(basis.share(measure.cost)));
            }
        }
        if cost.function == Profile::ROOT {
            continue;
        }
        let called = graph.callees(cost.function).map(|arc| arc.to_callee.total).sum();
        prop_assert_eq!(cost.self_cost + called, cost.total_cost, "self and callees add up to the total");
        if presentation == Presentation::Contexts || cost.cycle.is_none() {
            let asked: Measure = graph.callers(cost.function).map(|arc| arc.from_caller.total).sum();
            let own: Measure = graph.callers(cost.function).map(|arc| arc.from_caller.self_cost).sum();
            prop_assert_eq!(asked, cost.total_cost, "callers add up to the total");
            prop_assert_eq!(own, cost.self_cost, "callers' self parts add up to the self cost");
        }
        let calls: u64 = graph.callers(cost.function).map(|arc| arc.calls).sum();
        prop_assert_eq!(calls, cost.calls.map_or(0, |calls| calls.all), "arcs add up to the calls");
    }
    for arc in &graph.arcs {
        for part in [arc.from_caller, arc.to_callee] {
            prop_assert!(part.self_cost.cost <= part.total.cost);
        }
        prop_assert!(arc.total_cost.cost <= basis.run.cost);
        prop_assert!(arc.from_caller.total.cost <= arc.total_cost.cost || arc.callee_in_cycle(&graph));
    }
    for cycle in &graph.cycles {
        let members = cycle.cycle.members.iter().filter_map(|&member| graph.function(member));
        let own: Measure = members.map(|cost| cost.self_cost).sum();
        prop_assert_eq!(own, cycle.self_cost);
        prop_assert!(cycle.total_cost.cost <= basis.run.cost);
    }
    Ok(())
}

trait InCycle {
    fn callee_in_cycle(&self, graph: &CallGraph) -> bool;
}

impl InCycle for treering_analysis::Arc {
    /// Where cycles are collapsed, an arc into one carries what the whole cycle cost.
    fn callee_in_cycle(&self, graph: &CallGraph) -> bool {
        graph.presentation == Presentation::CollapsedCycles
            && graph.function(self.callee).is_some_and(|cost| cost.cycle.is_some())
    }
}

type Arcs = BTreeMap<(FunctionId, FunctionId), (u64, u64, u64)>;

/// By arc: total cost, contribution to the callee, contribution to the caller; for every node
/// the whole path is searched, as the definitions read.
fn arcs_by_definition(profile: &Profile) -> Arcs {
    let tree = &profile.tree;
    let mut arcs = Arcs::new();
    for node in tree.nodes() {
        let cost = tree.self_cost(METRIC, node);
        let mut path: Vec<NodeId> = tree.path(node).collect();
        path.reverse();
        let functions: Vec<FunctionId> = path.iter().map(|&at| tree.function(at)).collect();
        let mut counted = Vec::new();
        for at in 1..path.len() {
            let arc = (functions[at - 1], functions[at]);
            let (total, from_caller, to_callee) = arcs.entry(arc).or_default();
            if !counted.contains(&arc) {
                *total += cost;
                counted.push(arc);
            }
            if !functions[..at].contains(&functions[at]) {
                *from_caller += cost;
            }
            if !functions[at..].contains(&functions[at - 1]) {
                *to_callee += cost;
            }
        }
    }
    arcs
}

fn arcs_by_walk(profile: &Profile) -> Arcs {
    let graph = CallGraph::of(profile, &Basis::of(profile, METRIC), Presentation::Contexts);
    let arcs = graph.arcs.iter().map(|arc| {
        let ends = (arc.caller.unwrap_or(Profile::ROOT), arc.callee);
        (ends, (arc.total_cost.cost, arc.from_caller.total.cost, arc.to_callee.total.cost))
    });
    arcs.collect()
}

/// Functions reachable from each other, by trying all paths of arcs.
fn cycles_by_reachability(graph: &CallGraph) -> Vec<Vec<FunctionId>> {
    let reaches = |from: FunctionId, to: FunctionId| {
        let (mut seen, mut next) = (vec![from], vec![from]);
        while let Some(at) = next.pop() {
            for callee in graph.callees(at).map(|arc| arc.callee) {
                if callee == to {
                    return true;
                }
                if !seen.contains(&callee) {
                    seen.push(callee);
                    next.push(callee);
                }
            }
        }
        false
    };
    let functions: Vec<_> = graph.functions.iter().map(|cost| cost.function).collect();
    let mut cycles: Vec<Vec<FunctionId>> = Vec::new();
    for &function in &functions {
        let with =
            |&&other: &&FunctionId| other == function || reaches(function, other) && reaches(other, function);
        let members: Vec<_> = functions.iter().filter(with).copied().collect();
        if members.len() > 1 && !cycles.contains(&members) {
            cycles.push(members);
        }
    }
    cycles
}

proptest! {
    #[test]
    fn traces_obey_the_laws(text in traces()) {
        for rule in RULES {
            let profile = trace_with(rule, &text);
            check_laws(&profile, Presentation::Contexts)?;
            check_laws(&profile, Presentation::CollapsedCycles)?;
        }
    }

    #[test]
    fn stacks_obey_the_laws(text in stacks()) {
        for rule in RULES {
            let profile = stacks_with(rule, &text);
            check_laws(&profile, Presentation::Contexts)?;
            check_laws(&profile, Presentation::CollapsedCycles)?;
        }
    }

    #[test]
    fn arcs_are_what_their_definitions_say(text in stacks()) {
        for rule in RULES {
            let profile = stacks_with(rule, &text);
            let folded = |arc: &Arcs| arc.iter().map(|(&ends, &costs)| (ends, costs)).collect::<Vec<_>>();
            prop_assert_eq!(folded(&arcs_by_walk(&profile)), folded(&arcs_by_definition(&profile)));
        }
    }

    #[test]
    fn cycles_are_the_functions_that_reach_each_other(text in stacks()) {
        let profile = stacks_with(RecursionRule::Full, &text);
        let graph = CallGraph::of(&profile, &Basis::of(&profile, METRIC), Presentation::Contexts);
        let mut found: Vec<_> = graph.cycles.iter().map(|cost| cost.cycle.members.clone()).collect();
        found.sort();
        let mut expected = cycles_by_reachability(&graph);
        expected.sort();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn merging_then_analysing_equals_adding(a in stacks(), b in stacks()) {
        let (a, b) = (stacks_with(RecursionRule::Full, &a), stacks_with(RecursionRule::Full, &b));
        let costs = |profile: &Profile| {
            let graph = CallGraph::of(profile, &Basis::of(profile, METRIC), Presentation::Contexts);
            let name = |id| treering_analysis::function_name(profile, id).into_owned();
            let costs = graph.functions.iter().map(|cost| (name(cost.function), (cost.self_cost, cost.total_cost)));
            costs.collect::<BTreeMap<_, _>>()
        };
        let mut added = costs(&a);
        for (name, (own, total)) in costs(&b) {
            let known = added.entry(name).or_default();
            *known = (known.0 + own, known.1 + total);
        }
        prop_assert_eq!(costs(&merge(&[&a, &b])), added);
    }

    #[test]
    fn lines_and_calls_add_up_to_the_function(text in stacks()) {
        let profile = stacks_with(RecursionRule::Full, &text);
        let basis = Basis::of(&profile, METRIC);
        let graph = CallGraph::of(&profile, &basis, Presentation::Contexts);
        for cost in graph.functions.iter().filter(|cost| cost.function != Profile::ROOT) {
            let table = LineTable::of(&profile, &basis, cost.function);
            prop_assert_eq!((table.self_cost, table.total_cost), (cost.self_cost, cost.total_cost));
            let lines: Measure = table.lines.iter().map(|row| row.self_cost).sum();
            prop_assert_eq!(lines + table.self_elsewhere, cost.self_cost);
        }
    }

    /// Calls of a function to itself that the recursion rule had folded were missing.
    #[test]
    fn calls_of_a_functions_lines_are_those_of_its_arcs(text in traces()) {
        for rule in RULES {
            let profile = trace_with(rule, &text);
            let basis = Basis::of(&profile, METRIC);
            let graph = CallGraph::of(&profile, &basis, Presentation::Contexts);
            for cost in graph.functions.iter().filter(|cost| cost.function != Profile::ROOT) {
                let table = LineTable::of(&profile, &basis, cost.function);
                let rows = table.lines.iter().flat_map(|row| &row.calls).chain(&table.calls_elsewhere);
                let rows: BTreeMap<_, _> = rows.map(|call| (call.callee, call.calls)).collect();
                let arcs: BTreeMap<_, _> = graph.callees(cost.function).map(|arc| (arc.callee, arc.calls)).collect();
                prop_assert_eq!(rows, arcs);
            }
        }
    }

    #[test]
    fn trees_add_up_whatever_is_pruned(text in stacks(), min_share in 0.0..0.5, max_depth in 0..12_usize) {
        let profile = stacks_with(RecursionRule::Full, &text);
        let basis = Basis::of(&profile, METRIC);
        for direction in [Direction::Callees, Direction::Callers] {
            let tree = CallTree::of(&profile, &basis, direction, Pruning { min_share, max_depth });
            let at_top: Measure = tree.rows.iter().filter_map(|row| match row {
                TreeRow::Node(node) => (node.depth == 0).then_some(node.total_cost),
                TreeRow::Shared(node) => panic!("{node:?} is of a profile with stacks"),
                TreeRow::Hidden(hidden) => (hidden.depth == 0).then_some(hidden.cost),
            }).sum();
            prop_assert_eq!(at_top, basis.run);
            if direction == Direction::Callees {
                children_add_up(&tree)?;
            }
        }
    }
}

/// Every node's self cost and what is directly below it, hidden nodes too, add up to its total.
fn children_add_up(tree: &CallTree) -> Result<(), TestCaseError> {
    let of = |row: &TreeRow| match row {
        TreeRow::Node(node) => (node.depth, node.total_cost),
        TreeRow::Shared(node) => (node.depth, node.total_cost),
        TreeRow::Hidden(hidden) => (hidden.depth, hidden.cost),
    };
    for (at, row) in tree.rows.iter().enumerate() {
        let TreeRow::Node(node) = row else { continue };
        let below = tree.rows[at + 1..].iter().map(of).take_while(|&(depth, _)| depth > node.depth);
        let below: Measure = below.filter(|&(depth, _)| depth == node.depth + 1).map(|(_, cost)| cost).sum();
        prop_assert_eq!(node.self_cost + below, node.total_cost);
    }
    Ok(())
}

/// Recursion 100,000 deep: one function, two that call each other, and a chain of many.
#[test]
fn deep_recursion_overflows_nothing() {
    let depth = 100_000_usize;
    for kinds in [1, 2, depth] {
        let frames: Vec<String> = (0..depth).map(|at| format!("f{}", at % kinds)).collect();
        let profile = stacks_with(RecursionRule::Full, &format!("{} 7\nmain 1", frames.join(";")));
        let basis = Basis::of(&profile, METRIC);
        for presentation in [Presentation::Contexts, Presentation::CollapsedCycles] {
            let graph = CallGraph::of(&profile, &basis, presentation);
            assert_eq!(graph.functions.len(), kinds + 1);
            assert_eq!(graph.cycles.len(), usize::from(kinds == 2));
        }
        for direction in [Direction::Callees, Direction::Callers] {
            let tree = CallTree::of(&profile, &basis, direction, Pruning { min_share: 0.0, max_depth: 50 });
            assert!(tree.rows.iter().any(|row| matches!(row, TreeRow::Hidden(hidden) if hidden.too_deep)));
        }
        LineTable::of(&profile, &basis, FunctionId::new(1));
        merge(&[&profile, &profile]);
    }
}
