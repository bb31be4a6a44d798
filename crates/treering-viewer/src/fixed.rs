//! Functions and arcs of profiles that have no tree, as the analysis has them; in a difference those of both sides.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use treering_analysis::{Arc, Basis, CallGraph, FunctionCost, Presentation};
use treering_profile::{FunctionId, MetricId, Profile};

use crate::columns::Columns;
use crate::compared::Side;
use crate::functions::Functions;

/// The call graph in one metric.
pub(crate) fn graph(profile: &Profile, basis: &Basis, functions: &Functions, columns: &mut Columns) -> Value {
    let mut rows = Rows::default();
    rows.add(0, &CallGraph::of(profile, basis, Presentation::Contexts), |id| number(functions, id));
    rows.columns(1, columns)
}

/// The call graphs of the head and the base in one metric of the page's profile.
pub(crate) fn graphs(
    profile: &Profile,
    metric: MetricId,
    [head, base]: [&Side; 2],
    functions: &Functions,
    columns: &mut Columns,
) -> Value {
    let known = &profile.metrics[metric.index()];
    let mut rows = Rows::default();
    for (at, side) in [head, base].into_iter().enumerate() {
        let same = |(_, metric): &(MetricId, &treering_profile::Metric)| {
            (&metric.name, metric.unit) == (&known.name, known.unit)
        };
        let Some((metric, _)) = side.profile.metrics().find(same) else { continue };
        let graph = CallGraph::of(&side.profile, &Basis::of(&side.profile, metric), Presentation::Contexts);
        rows.add(at, &graph, |id| number(functions, side.functions[id.index()]));
    }
    rows.columns(2, columns)
}

fn number(functions: &Functions, id: FunctionId) -> u32 {
    functions.known(id).unwrap_or(0)
}

/// The functions and arcs of one or two call graphs. Functions have the page's numbers, 0 for no caller.
#[derive(Default)]
struct Rows {
    functions: BTreeMap<u32, FunctionRow>,
    arcs: BTreeMap<(u32, u32), ArcRow>,
    has_calls: bool,
}

/// A function. Costs are those of the head, then those of the base.
#[derive(Default)]
struct FunctionRow {
    self_cost: [u64; 2],
    total: [u64; 2],
    /// The calls in the head.
    calls: u64,
    recursive: u64,
    /// 1 + its cycle in the head; 0 where it is in none.
    cycle: u64,
}

/// An arc. Costs are those of the head, then those of the base.
#[derive(Default)]
struct ArcRow {
    total: [u64; 2],
    from_self: [u64; 2],
    from_total: [u64; 2],
    to_self: [u64; 2],
    to_total: [u64; 2],
    /// The calls in the head.
    calls: u64,
}

impl Rows {
    /// Adds the graph of a side, 0 for the head.
    fn add(&mut self, side: usize, graph: &CallGraph, number: impl Fn(FunctionId) -> u32) {
        for cost in &graph.functions {
            self.functions.entry(number(cost.function)).or_default().add(side, cost);
        }
        for arc in &graph.arcs {
            let ends = (arc.caller.map_or(0, &number), number(arc.callee));
            self.arcs.entry(ends).or_default().add(side, arc);
        }
        self.has_calls |= side == 0 && graph.has_calls();
    }

    /// The columns of `sides` sides.
    fn columns(&self, sides: usize, columns: &mut Columns) -> Value {
        let functions = || self.functions.values();
        let arcs = || self.arcs.values();
        let mut column = |values: &mut dyn Iterator<Item = u64>| columns.add(&values.collect::<Vec<_>>());
        let mut of_functions = json!({
            "fn": column(&mut self.functions.keys().map(|&number| number.into())),
            "calls": self.has_calls.then(|| column(&mut functions().map(|row| row.calls))),
            "recursive": self.has_calls.then(|| column(&mut functions().map(|row| row.recursive))),
            "cycle": column(&mut functions().map(|row| row.cycle)),
        });
        let mut of_arcs = json!({
            "caller": column(&mut self.arcs.keys().map(|ends| ends.0.into())),
            "callee": column(&mut self.arcs.keys().map(|ends| ends.1.into())),
            "calls": self.has_calls.then(|| column(&mut arcs().map(|row| row.calls))),
        });
        for (side, name) in ["now", "base"].into_iter().enumerate().take(sides) {
            of_functions[name] = json!({
                "self": column(&mut functions().map(|row| row.self_cost[side])),
                "total": column(&mut functions().map(|row| row.total[side])),
            });
            of_arcs[name] = json!({
                "total": column(&mut arcs().map(|row| row.total[side])),
                "fromSelf": column(&mut arcs().map(|row| row.from_self[side])),
                "fromTotal": column(&mut arcs().map(|row| row.from_total[side])),
                "toSelf": column(&mut arcs().map(|row| row.to_self[side])),
                "toTotal": column(&mut arcs().map(|row| row.to_total[side])),
            });
        }
        json!({ "functions": of_functions, "arcs": of_arcs })
    }
}

impl FunctionRow {
    fn add(&mut self, side: usize, cost: &FunctionCost) {
        add(&mut self.self_cost[side], cost.self_cost.cost);
        add(&mut self.total[side], cost.total_cost.cost);
        if side == 0 {
            let calls = cost.calls.unwrap_or_default();
            add(&mut self.calls, calls.all);
            add(&mut self.recursive, calls.recursive);
            self.cycle = cost.cycle.map_or(self.cycle, |cycle| cycle as u64 + 1);
        }
    }
}

impl ArcRow {
    fn add(&mut self, side: usize, arc: &Arc) {
        add(&mut self.total[side], arc.total_cost.cost);
        add(&mut self.from_self[side], arc.from_caller.self_cost.cost);
        add(&mut self.from_total[side], arc.from_caller.total.cost);
        add(&mut self.to_self[side], arc.to_callee.self_cost.cost);
        add(&mut self.to_total[side], arc.to_callee.total.cost);
        if side == 0 {
            add(&mut self.calls, arc.calls);
        }
    }
}

fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

#[cfg(test)]
mod tests {
    use treering_testing::stacks;

    use super::*;

    #[test]
    fn both_sides_of_a_difference_stand_in_one_row() {
        let (head, base) = (stacks("main;work 5\n main;new 2"), stacks("main;work 3\n main;gone 4"));
        let number = |profile: &Profile, id: FunctionId| match &profile.strings[profile.functions[id].name] {
            "main" => 1,
            "work" => 2,
            "new" => 3,
            "gone" => 4,
            _ => 0,
        };
        let mut rows = Rows::default();
        for (side, profile) in [&head, &base].into_iter().enumerate() {
            let basis = Basis::of(profile, profile.find_metric("samples").expect("it counts samples"));
            rows.add(side, &CallGraph::of(profile, &basis, Presentation::Contexts), |id| number(profile, id));
        }
        let costs = |row: &FunctionRow| (row.self_cost, row.total);
        let functions: Vec<_> = rows.functions.iter().map(|(&number, row)| (number, costs(row))).collect();
        let expected =
            [(1, ([0, 0], [7, 7])), (2, ([5, 3], [5, 3])), (3, ([2, 0], [2, 0])), (4, ([0, 4], [0, 4]))];
        assert_eq!(functions, expected);
        let arcs: Vec<_> = rows.arcs.iter().map(|(&ends, row)| (ends, row.total)).collect();
        assert_eq!(arcs, [((0, 1), [7, 7]), ((1, 2), [5, 3]), ((1, 3), [2, 0]), ((1, 4), [0, 4])]);
    }
}
