//! The costs of predicates, as lines of text for the report that is written in Prolog.

use std::collections::BTreeMap;

use treering_runtime::events::{Forest, Measured};

/// The cost of a predicate in all its places in the trees.
#[derive(Default)]
struct Row {
    calls: u64,
    ports: [u64; 5],
    self_ns: u64,
    total_ns: u64,
}

/// A line for each predicate: `predicate`, calls, exits, redos, fails, exceptions, cuts, nanoseconds
/// itself and with all it called, name; tabulators between them.
pub(crate) fn lines() -> String {
    let Some(snapshot) = treering_runtime::snapshot() else { return String::new() };
    let Some(view) = snapshot.view() else { return String::new() };
    let forest = snapshot.forest();
    let names: BTreeMap<u32, String> = view
        .functions()
        .map(|(_, record)| (record.id, String::from_utf8_lossy(view.text(record.name)).into_owned()))
        .collect();
    let mut text = String::new();
    for (function, row) in rows(&forest) {
        let Row { calls, ports: [exits, redos, fails, exceptions, cuts], self_ns, total_ns } = row;
        let name = names.get(&function).map_or("", String::as_str);
        text += &format!(
            "predicate\t{calls}\t{exits}\t{redos}\t{fails}\t{exceptions}\t{cuts}\t{self_ns}\t{total_ns}\t{name}\n"
        );
    }
    text
}

fn rows(forest: &Forest) -> BTreeMap<u32, Row> {
    let mut rows: BTreeMap<u32, Row> = BTreeMap::new();
    for node in forest.nodes.iter().filter(|node| node.parent.is_some()) {
        let row = rows.entry(node.record.function).or_default();
        row.calls += node.record.calls;
        row.ports.iter_mut().zip(node.ports).for_each(|(sum, count)| *sum += count);
        row.self_ns += node.self_ns;
        if !is_within_itself(forest, node) {
            row.total_ns += node.total_ns;
        }
    }
    rows
}

/// Whether a node stands under another one of its function.
fn is_within_itself(forest: &Forest, node: &Measured) -> bool {
    let mut at = node.parent;
    while let Some(parent) = at.and_then(|at| forest.nodes.get(at)) {
        if parent.record.function == node.record.function && parent.parent.is_some() {
            return true;
        }
        at = parent.parent;
    }
    false
}
