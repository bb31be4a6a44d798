//! The list of calls: each task between those that called it and those that it called.

use super::printed::{Printed, PrintedArcs, percent};
use super::tasks::{HEADS, marked, row};
use crate::benchmark::Times;
use crate::benchmark::graph::{Arc, Graph};
use crate::benchmark::table::Table;
use crate::benchmark::unit::average;

pub(crate) fn section(graph: &Graph, printed: &Printed, narrow: bool) -> String {
    let mut table = Table::new(narrow, &HEADS);
    for task in graph.by_charge() {
        table.line('.');
        entry(graph, printed, task, &mut table);
    }
    format!(
        "[Call graph:]\n\n\
         <- was called by, and what of the task that makes up; -> called, and what of the\n\
         task's total that makes up. The total of an activation within another one of the\n\
         same task is part of that one's. Calls of a task by itself have no cost apart.\n\n{}\n",
        table.text()
    )
}

fn entry(graph: &Graph, printed: &Printed, task: usize, table: &mut Table) {
    let incoming = sorted(graph, graph.arcs_to(task));
    let outgoing = sorted(graph, graph.arcs_from(task));
    recursion(graph, task, "<-", table);
    let numbers = printed.incoming(graph, task, &incoming);
    for (at, arc) in incoming.iter().enumerate() {
        let name = format!("<- {}", marked(&graph.tasks[arc.caller as usize]));
        table.row(arc_row(graph, printed, &numbers, at, arc, arc.from_caller, name));
    }
    table.row(row(graph, printed, task, format!("== {}", marked(&graph.tasks[task]))));
    let numbers = printed.outgoing(graph, task, &outgoing);
    for (at, arc) in outgoing.iter().enumerate() {
        let name = format!("-> {}", marked(&graph.tasks[arc.callee as usize]));
        table.row(arc_row(graph, printed, &numbers, at, arc, arc.to_callee, name));
    }
    recursion(graph, task, "->", table);
}

fn arc_row(
    graph: &Graph,
    printed: &Printed,
    numbers: &PrintedArcs,
    at: usize,
    arc: &Arc,
    total: Times,
    name: String,
) -> Vec<String> {
    vec![
        percent(numbers.charge[at]),
        percent(numbers.inclusive[at]),
        printed.unit.text(numbers.total[at]),
        printed.unit.text(numbers.self_cost[at]),
        arc.calls.to_string(),
        average(graph.base.of(arc.self_cost), arc.calls),
        average(graph.base.of(total), arc.calls),
        name,
    ]
}

/// The row of a task's calls of itself, if there are any.
fn recursion(graph: &Graph, task: usize, direction: &str, table: &mut Table) {
    let calls = graph.tasks[task].recursive_calls;
    if calls > 0 {
        let name = format!("{direction} {}", marked(&graph.tasks[task]));
        let mut cells = ["-"; 8].map(str::to_owned);
        (cells[4], cells[7]) = (calls.to_string(), name);
        table.row(cells.into());
    }
}

/// The costliest first.
fn sorted<'a>(graph: &Graph, arcs: impl Iterator<Item = &'a Arc>) -> Vec<&'a Arc> {
    let mut arcs: Vec<&Arc> = arcs.filter(|arc| !arc.is_recursive()).collect();
    arcs.sort_by_key(|arc| std::cmp::Reverse((graph.base.of(arc.total), arc.calls)));
    arcs
}
