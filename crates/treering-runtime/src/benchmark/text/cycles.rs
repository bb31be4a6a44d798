//! The entries of cycles.

use super::printed::{Printed, percent, tenths};
use crate::benchmark::cycle::Cycle;
use crate::benchmark::escape::line;
use crate::benchmark::graph::Graph;
use crate::benchmark::rounding::nearest;
use crate::benchmark::table::Table;
use crate::benchmark::unit::average;

const HEADS: [&str; 8] =
    ["charge", "incl.", "total", "self", "in/within/out", "self avg", "total avg", "name"];

/// Nothing where there are no cycles.
pub(crate) fn section(graph: &Graph, printed: &Printed, narrow: bool) -> String {
    if graph.cycles.is_empty() {
        return String::new();
    }
    let mut table = Table::new(narrow, &HEADS);
    for (at, cycle) in graph.cycles.iter().enumerate() {
        table.line('.');
        table.row(whole(graph, printed, at, cycle));
        for &member in &cycle.members {
            table.row(part(graph, printed, member));
        }
    }
    format!(
        "[Cycles:]\n\n\
         Tasks that call each other. Calls: from outside, within, and to tasks outside.\n\
         Averages of a cycle are for one call from outside. Calls of a task by itself are\n\
         in the call graph.\n\n{}\n",
        table.text()
    )
}

fn whole(graph: &Graph, printed: &Printed, at: usize, cycle: &Cycle) -> Vec<String> {
    let charge = cycle.members.iter().map(|&member| printed.charge[member]).sum();
    let self_cost = cycle.members.iter().map(|&member| printed.self_cost[member]).sum();
    let total = nearest(graph.base.of(cycle.total), printed.unit.step_ns()).max(self_cost);
    let inclusive = tenths(&[graph.base.of(cycle.total)], graph.run_cost())[0].max(charge);
    let Cycle { incoming_calls, internal_calls, outgoing_calls, .. } = cycle;
    vec![
        percent(charge),
        percent(inclusive),
        printed.unit.text(total),
        printed.unit.text(self_cost),
        format!("{incoming_calls}/{internal_calls}/{outgoing_calls}"),
        average(graph.base.of(cycle.self_cost), *incoming_calls),
        average(graph.base.of(cycle.total), *incoming_calls),
        format!("(C: {})", at + 1),
    ]
}

fn part(graph: &Graph, printed: &Printed, member: usize) -> Vec<String> {
    let task = &graph.tasks[member];
    let [outside, within, _] = graph.calls_of(member);
    vec![
        percent(printed.charge[member]),
        percent(printed.inclusive[member]),
        printed.unit.text(printed.total[member]),
        printed.unit.text(printed.self_cost[member]),
        format!("{outside}/{within}/{}", graph.outgoing_calls(member)),
        average(graph.base.of(task.self_cost), task.calls),
        average(graph.base.of(task.total), task.calls),
        format!("  {}", line(&task.name)),
    ]
}
