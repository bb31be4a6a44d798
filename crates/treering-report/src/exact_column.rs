//! Columns of what was counted exactly, beside costs that were sampled.

use treering_analysis::{Arc, CallGraph, ExactCost};
use treering_profile::{FunctionId, Profile};

use crate::number::grouped;
use crate::printable::printable;

/// A column for each exact metric beside the sampled one that a call graph shows.
pub(crate) struct ExactColumns {
    costs: Vec<ExactCost>,
    widths: Vec<usize>,
}

impl ExactColumns {
    pub(crate) fn of(profile: &Profile, graph: &CallGraph) -> Self {
        let costs = ExactCost::beside(profile, graph);
        let width = |cost: &ExactCost| {
            let largest =
                graph.functions.iter().filter_map(|function| of_function(cost, function.function)).max();
            cost.name.chars().count().max(grouped(largest.unwrap_or(0)).len())
        };
        let widths = costs.iter().map(width).collect();
        Self { costs, widths }
    }

    /// The headings, each with two spaces after it.
    pub(crate) fn headings(&self) -> String {
        self.row(|cost| Some(printable(&cost.name).into_owned()))
    }

    /// The cells of a function with all it called, or of itself alone where no more is known; blank for a cycle.
    pub(crate) fn function_cells(&self, function: Option<FunctionId>) -> String {
        self.row(|cost| function.and_then(|function| of_function(cost, function)).map(grouped))
    }

    /// The cells of the calls of an arc; blank where no more is known than what functions cost.
    pub(crate) fn arc_cells(&self, arc: &Arc) -> String {
        self.row(|cost| cost.arc(arc.caller, arc.callee).map(grouped))
    }

    /// Blanks in place of cells.
    pub(crate) fn no_cells(&self) -> String {
        self.row(|_| None)
    }

    /// The meaning of the columns.
    pub(crate) fn legend(&self) -> Vec<String> {
        let meaning = |cost: &ExactCost| match cost.has_totals {
            true => format!("{}: counted exactly, with everything called", printable(&cost.name)),
            false => format!("{}: counted exactly, in the function itself", printable(&cost.name)),
        };
        self.costs.iter().map(meaning).collect()
    }

    fn row(&self, cell: impl Fn(&ExactCost) -> Option<String>) -> String {
        let cells = self.costs.iter().zip(&self.widths);
        cells.map(|(cost, &width)| format!("{:>width$}  ", cell(cost).unwrap_or_default())).collect()
    }
}

fn of_function(cost: &ExactCost, function: FunctionId) -> Option<u64> {
    if cost.has_totals { cost.total_cost(function) } else { cost.self_cost(function) }
}
