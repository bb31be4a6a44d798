//! The numbers of tasks as they are printed, rounded so that the printed numbers add up.

use crate::benchmark::graph::{Arc, Graph};
use crate::benchmark::rounding::{nearest, per_mille, to_sum};
use crate::benchmark::unit::{Unit, decimal, for_column};

/// By task: its rounded numbers.
pub(crate) struct Printed {
    /// The unit of all totals and self costs.
    pub(crate) unit: Unit,
    /// Self costs in percent of the run, in tenths.
    pub(crate) charge: Vec<u64>,
    /// Totals in percent of the run, in tenths.
    pub(crate) inclusive: Vec<u64>,
    /// Steps of the unit.
    pub(crate) self_cost: Vec<u64>,
    /// Steps of the unit.
    pub(crate) total: Vec<u64>,
}

/// The rounded numbers of some arcs.
pub(crate) struct PrintedArcs {
    pub(crate) charge: Vec<u64>,
    pub(crate) inclusive: Vec<u64>,
    pub(crate) self_cost: Vec<u64>,
    pub(crate) total: Vec<u64>,
}

impl Printed {
    pub(crate) fn new(graph: &Graph) -> Self {
        let unit = for_column(graph.run_cost());
        let step = unit.step_ns();
        let count = graph.tasks.len();
        let costs: Vec<u64> = (0..count).map(|task| graph.self_cost(task)).collect();
        let self_cost = to_sum(&costs, step, nearest(graph.run_cost(), step));
        let charge = per_mille(&costs, graph.run_cost());
        let totals: Vec<u64> = graph.tasks.iter().map(|task| graph.base.of(task.total)).collect();
        // A task that calls nothing has the same number for self and total, however the numbers were
        // rounded.
        let sums = |steps: Vec<u64>, own: &[u64]| -> Vec<u64> {
            let sum = |task: usize| match totals[task] == costs[task] {
                true => own[task],
                false => steps[task].max(own[task]),
            };
            (0..count).map(sum).collect()
        };
        let total = sums(totals.iter().map(|&total| nearest(total, step)).collect(), &self_cost);
        let inclusive = sums(tenths(&totals, graph.run_cost()), &charge);
        Self { unit, charge, inclusive, self_cost, total }
    }

    /// The arcs into a task, so that their shares, self costs and totals add up to the task's.
    pub(crate) fn incoming(&self, graph: &Graph, task: usize, arcs: &[&Arc]) -> PrintedArcs {
        let base = graph.base;
        let costs: Vec<u64> = arcs.iter().map(|arc| base.of(arc.self_cost)).collect();
        let totals: Vec<u64> = arcs.iter().map(|arc| base.of(arc.from_caller)).collect();
        let step = self.unit.step_ns();
        PrintedArcs {
            charge: to_sum(&per_million(&costs, graph.run_cost()), 1_000, self.charge[task]),
            inclusive: to_sum(&per_million(&totals, graph.run_cost()), 1_000, self.inclusive[task]),
            self_cost: to_sum(&costs, step, self.self_cost[task]),
            total: to_sum(&totals, step, self.total[task]),
        }
    }

    /// The arcs from a task, so that its self cost and their totals add up to its total, and
    /// so do the shares.
    pub(crate) fn outgoing(&self, graph: &Graph, task: usize, arcs: &[&Arc]) -> PrintedArcs {
        let base = graph.base;
        let costs: Vec<u64> = arcs.iter().map(|arc| base.of(arc.self_cost)).collect();
        let totals: Vec<u64> = arcs.iter().map(|arc| base.of(arc.to_callee)).collect();
        let step = self.unit.step_ns();
        let round = |&cost: &u64| nearest(cost, step);
        let below = self.inclusive[task] - self.charge[task];
        PrintedArcs {
            charge: tenths(&costs, graph.run_cost()),
            inclusive: to_sum(&per_million(&totals, graph.run_cost()), 1_000, below),
            self_cost: costs.iter().map(round).collect(),
            total: to_sum(&totals, step, self.total[task] - self.self_cost[task]),
        }
    }
}

/// Shares in tenths of a percent, times 1000.
fn per_million(costs: &[u64], whole: u64) -> Vec<u64> {
    let share = |&cost: &u64| (u128::from(cost) * 1_000_000 / u128::from(whole.max(1))) as u64;
    costs.iter().map(share).collect()
}

/// Shares in tenths of a percent, each rounded by itself.
pub(crate) fn tenths(costs: &[u64], whole: u64) -> Vec<u64> {
    per_million(costs, whole).iter().map(|&part| nearest(part, 1_000)).collect()
}

/// Tenths of a percent as a percentage, without its sign.
pub(crate) fn percent(tenths: u64) -> String {
    decimal(tenths, 1)
}
