//! The tree's columns.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use treering_analysis::{places, preorder};
use treering_profile::{FunctionKind, Metric, MetricId, NodeId, Profile};

use crate::columns::Columns;
use crate::functions::Functions;
use crate::lines::Lines;

/// The tree as two payloads of its own, which the page hands to its worker as they are.
pub(crate) struct Payload {
    /// The data of the first picture: the tree, and the costs of the metrics that are `first`.
    pub(crate) tree: Vec<u8>,
    /// Where calls were made, and the costs of the other metrics.
    pub(crate) rest: Vec<u8>,
}

/// Makes the payloads; `first` says of each metric whether the first picture needs it. The tree has calls that were
/// counted apart from it if they are wanted.
pub(crate) fn payload(
    profile: &Profile,
    functions: &Functions,
    lines: &mut Lines,
    first: &[bool],
    with_counts: bool,
) -> Payload {
    let order = preorder(profile);
    let mut columns = Columns::default();
    let mut skeleton = skeleton(profile, functions, &order, first, &mut columns);
    if with_counts {
        skeleton["counted"] = counted_apart(profile, functions, &mut columns);
    }
    let tree = columns.finish(&skeleton);
    let mut columns = Columns::default();
    let site = |&node: &NodeId| profile.tree.call_site(node).map_or(0, |line| lines.number(line) + 1);
    let sites: Vec<u32> = order.iter().map(site).collect();
    let sites = columns.add_indexes(sites);
    let costs = costs(profile, &order, &mut columns, |metric| !first[metric]);
    let line_costs = line_costs(profile, lines, &order, &mut columns);
    let rest = json!({ "site": sites, "costs": costs, "lineCosts": line_costs });
    Payload { tree, rest: columns.finish(&rest) }
}

/// The most rows of line costs by node that a page holds.
const MOST_LINE_COSTS: usize = 300_000;

/// Self costs by node and line, with which the lines of functions follow transforms; nothing if there are too many
/// for the size of a page.
fn line_costs(profile: &Profile, lines: &mut Lines, order: &[NodeId], columns: &mut Columns) -> Value {
    let metrics = profile.metrics.len();
    // A row has one cost of each metric at most.
    if profile.line_costs.len() / metrics.max(1) > MOST_LINE_COSTS {
        return Value::Null;
    }
    let mut rows: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
    let place = places(profile, order);
    for cost in &profile.line_costs {
        let key = (place[cost.node.index()], lines.number(cost.line));
        let cell = &mut rows.entry(key).or_insert_with(|| vec![0; metrics])[cost.metric.index()];
        *cell = cell.saturating_add(cost.cost);
        if rows.len() > MOST_LINE_COSTS {
            return Value::Null;
        }
    }
    let column = |(at, known): (usize, &Metric)| match known.is_level {
        true => Value::Null,
        false => columns.add(&rows.values().map(|row| row[at]).collect::<Vec<_>>()),
    };
    let costs: Vec<Value> = profile.metrics.iter().enumerate().map(column).collect();
    json!({
        "node": columns.add_indexes(rows.keys().map(|key| key.0)),
        "line": columns.add_indexes(rows.keys().map(|key| key.1)),
        "costs": costs,
    })
}

/// By metric: the self costs of nodes, of those metrics that are wanted.
fn costs(
    profile: &Profile,
    order: &[NodeId],
    columns: &mut Columns,
    wanted: impl Fn(usize) -> bool,
) -> Vec<Value> {
    let column = |(metric, known): (MetricId, &Metric)| match known.is_level || !wanted(metric.index()) {
        true => Value::Null,
        false => {
            columns.add(&order.iter().map(|&node| profile.tree.self_cost(metric, node)).collect::<Vec<_>>())
        }
    };
    profile.metrics().map(column).collect()
}

fn skeleton(
    profile: &Profile,
    functions: &Functions,
    order: &[NodeId],
    first: &[bool],
    columns: &mut Columns,
) -> Value {
    let tree = &profile.tree;
    let place = places(profile, order);
    // A parent lies before its children; a root is its own, at distance 0.
    let back = |(at, &node): (usize, &NodeId)| tree.parent(node).map_or(0, |p| at as u32 - place[p.index()]);
    let parent = columns.add_indexes(order.iter().enumerate().map(back));
    let function = |&node: &NodeId| functions.known(tree.function(node)).unwrap_or(0);
    let fns = columns.add_indexes(order.iter().map(function));
    let is_inlined =
        |&node: &NodeId| u32::from(profile.functions[tree.function(node)].kind == FunctionKind::Inlined);
    let inlined = columns.add_indexes(order.iter().map(is_inlined));
    let counted = |column: &mut Columns, count: &dyn Fn(NodeId) -> u64| {
        tree.has_calls().then(|| column.add(&order.iter().map(|&node| count(node)).collect::<Vec<_>>()))
    };
    let calls = counted(columns, &|node| tree.calls(node));
    let recursive = counted(columns, &|node| tree.recursive_calls(node));
    let costs = costs(profile, order, columns, |metric| first[metric]);
    let roots: Vec<u32> = profile.threads.iter().map(|thread| place[thread.root.index()]).collect();
    let threads = Value::Array(
        profile
            .threads
            .iter()
            .map(|thread| {
                let process = &profile.processes[thread.process.index()];
                json!({
                    "name": thread.name, "tid": thread.tid, "process": process.name, "pid": process.pid,
                    "run": process.run.index(),
                })
            })
            .collect(),
    );
    json!({
        "parent": parent, "fn": fns, "inlined": inlined, "calls": calls, "recursive": recursive,
        "costs": costs, "roots": columns.add_json(&json!(roots)), "threads": columns.add_json(&threads),
    })
}

/// Calls that were counted apart from the stacks, each pair of caller and callee once; nothing where none were.
fn counted_apart(profile: &Profile, functions: &Functions, columns: &mut Columns) -> Value {
    if profile.arcs.is_empty() {
        return Value::Null;
    }
    let number = |function| u64::from(functions.known(function).unwrap_or(0));
    let mut sums: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for arc in &profile.arcs {
        let sum = sums.entry((number(arc.caller), number(arc.callee))).or_default();
        *sum = sum.saturating_add(arc.calls);
    }
    let ends = |end: fn(&(u64, u64)) -> u64| sums.keys().map(end).collect::<Vec<_>>();
    json!({
        "caller": columns.add(&ends(|ends| ends.0)),
        "callee": columns.add(&ends(|ends| ends.1)),
        "calls": columns.add(&sums.values().copied().collect::<Vec<_>>()),
    })
}
