//! The list of tasks, and in full their kinds of time.

use super::printed::{Printed, percent};
use crate::benchmark::Times;
use crate::benchmark::escape::line;
use crate::benchmark::graph::{Graph, Task};
use crate::benchmark::table::Table;
use crate::benchmark::unit::{average, for_column};

/// The columns of tasks and arcs.
pub(crate) const HEADS: [&str; 8] =
    ["charge", "incl.", "total", "self", "calls", "self avg", "total avg", "name"];

pub(crate) fn list(graph: &Graph, printed: &Printed, narrow: bool) -> String {
    let mut table = Table::new(narrow, &HEADS);
    for task in graph.by_charge() {
        table.row(row(graph, printed, task, marked(&graph.tasks[task])));
    }
    let run = printed.unit.text(printed.total[0]);
    let (base, unit) = (graph.base.name(), printed.unit.name);
    format!(
        "[Task list:]\n\n\
         Charge, incl.: self cost and total in percent of the run's {base} time,\n\
         {run} {unit}.\n\
         Total, self: {base} time in {unit}; averages are for one call.\n\n{}\n",
        table.text()
    )
}

/// The name behind the mark of its cycle.
pub(crate) fn marked(task: &Task) -> String {
    let mark = task.cycle.map(|cycle| format!("(C: {}) ", cycle + 1)).unwrap_or_default();
    mark + &line(&task.name)
}

/// The row of a task in the list of tasks and the list of calls.
pub(crate) fn row(graph: &Graph, printed: &Printed, at: usize, name: String) -> Vec<String> {
    let task = &graph.tasks[at];
    vec![
        percent(printed.charge[at]),
        percent(printed.inclusive[at]),
        printed.unit.text(printed.total[at]),
        printed.unit.text(printed.self_cost[at]),
        task.calls.to_string(),
        average(graph.base.of(task.self_cost), task.calls),
        average(graph.base.of(task.total), task.calls),
        name,
    ]
}

/// Every kind of time of every task, self and total.
pub(crate) fn details(graph: &Graph) -> String {
    let kinds = |times: Times| [times.cpu_ns(), times.user_ns, times.system_ns, times.wall_ns];
    let largest = kinds(graph.tasks[0].total).into_iter().max().unwrap_or(0);
    let unit = for_column(largest);
    let mut table = Table::new(false, &["CPU", "user", "system", "wall", ""]);
    for at in graph.by_charge() {
        let task = &graph.tasks[at];
        let cells = |times: Times, what: String| {
            let numbers = kinds(times).map(|ns| unit.text(ns / unit.step_ns()));
            numbers.into_iter().chain([what]).collect::<Vec<_>>()
        };
        table.line('.');
        table.row(cells(task.self_cost, format!("self   {}", line(&task.name))));
        table.row(cells(task.total, format!("total  {}", calls(graph, at))));
    }
    format!("[Detailed tasks:]\n\nTimes in {}, rounded down.\n\n{}\n", unit.name, table.text())
}

fn calls(graph: &Graph, task: usize) -> String {
    let [outside, within, recursive] = graph.calls_of(task).map(|calls| calls.to_string());
    format!("calls: {outside} from outside, {within} from its cycle, {recursive} from itself")
}
