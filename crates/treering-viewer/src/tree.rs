//! The tree's columns.

use serde_json::{Value, json};
use treering_profile::{FunctionKind, NodeId, Profile};

use crate::columns::Columns;
use crate::functions::Functions;
use crate::lines::Lines;
use crate::preorder::preorder;

/// The tree as its own payload, which the page hands to its worker as it is.
pub(crate) fn payload(profile: &Profile, functions: &Functions, lines: &mut Lines) -> Vec<u8> {
    let mut columns = Columns::default();
    let order = preorder(profile);
    let skeleton = skeleton(profile, functions, lines, &order, &mut columns);
    columns.finish(&skeleton)
}

fn skeleton(
    profile: &Profile,
    functions: &Functions,
    lines: &mut Lines,
    order: &[NodeId],
    columns: &mut Columns,
) -> Value {
    let tree = &profile.tree;
    let mut place = vec![0_u32; tree.len()];
    for (at, node) in order.iter().enumerate() {
        place[node.index()] = at as u32;
    }
    // A parent lies before its children; a root is its own, at distance 0.
    let back = |(at, &node): (usize, &NodeId)| tree.parent(node).map_or(0, |p| at as u32 - place[p.index()]);
    let parent = columns.add_indexes(order.iter().enumerate().map(back));
    let function = |&node: &NodeId| functions.known(tree.function(node)).unwrap_or(0);
    let fns = columns.add_indexes(order.iter().map(function));
    let site = |&node: &NodeId| tree.call_site(node).map_or(0, |line| lines.number(profile, line) + 1);
    let sites: Vec<u32> = order.iter().map(site).collect();
    let sites = columns.add_indexes(sites);
    let is_inlined =
        |&node: &NodeId| u32::from(profile.functions[tree.function(node)].kind == FunctionKind::Inlined);
    let inlined = columns.add_indexes(order.iter().map(is_inlined));
    let counted = |column: &mut Columns, count: &dyn Fn(NodeId) -> u64| {
        tree.has_calls().then(|| column.add(&order.iter().map(|&node| count(node)).collect::<Vec<_>>()))
    };
    let calls = counted(columns, &|node| tree.calls(node));
    let recursive = counted(columns, &|node| tree.recursive_calls(node));
    let costs: Vec<Value> = profile
        .metrics()
        .map(|(metric, known)| match known.is_level {
            true => Value::Null,
            false => columns.add(&order.iter().map(|&n| tree.self_cost(metric, n)).collect::<Vec<_>>()),
        })
        .collect();
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
        "parent": parent, "fn": fns, "site": sites, "inlined": inlined, "calls": calls, "recursive": recursive,
        "costs": costs, "roots": columns.add_json(&json!(roots)), "threads": columns.add_json(&threads),
    })
}
