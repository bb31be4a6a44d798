//! Callers and callees of the functions that changed.

use treering_compare::{ArcChange, Difference, FunctionChange, GroupIndex, Sides};

use crate::number::cost;
use crate::printable::printable;
use crate::style::Style;
use crate::table::Table;

use super::Rows;
use super::amounts::{Amounts, calls};
use super::flat::{headline, row_name, shown};

/// The verdict and, for each function that changed or the one that is asked for, its callers above it and its callees
/// below.
pub fn difference_call_graph_text(
    difference: &Difference,
    only: Option<GroupIndex>,
    style: &Style,
    rows: Rows,
) -> String {
    let mut text = headline(difference, style);
    let functions = match only {
        Some(group) => difference.function(group).into_iter().collect(),
        None => shown(difference, rows).0,
    };
    for function in functions {
        text.push('\n');
        text += &block(difference, function).render(style);
    }
    text
}

fn block(difference: &Difference, function: &FunctionChange) -> Table {
    let amounts = Amounts::of_changes(difference);
    let headings = ["total", "base → head", "calls", "per call"].map(str::to_owned).to_vec();
    let mut table = Table::new(headings, "function");
    let of = |wanted: &dyn Fn(&ArcChange) -> bool| {
        let mut arcs: Vec<&ArcChange> = difference.arcs.iter().filter(|arc| wanted(arc)).collect();
        arcs.sort_by_key(|arc| std::cmp::Reverse(arc.total_cost.change().unsigned_abs()));
        arcs
    };
    let name = |group: GroupIndex| printable(&difference.pairing.groups[group].name).into_owned();
    let row = |total: Sides<u64>, counts: Sides<u64>| {
        let each = |cost_of: u64, calls: u64| match calls {
            0 => "0".to_owned(),
            calls => cost(difference.unit, (cost_of as f64 / calls as f64).round()),
        };
        let (base, head) = (each(total.base, counts.base), each(total.head, counts.head));
        let per_call = match () {
            // Costs and calls of different parts make no average.
            () if function.split.is_none() || counts.base == 0 && counts.head == 0 => String::new(),
            () if base == head => base,
            () => format!("{base} → {head}"),
        };
        let counts = if counts.base == 0 && counts.head == 0 { String::new() } else { calls(counts) };
        vec![amounts.signed(total.change()), amounts.both(total), counts, per_call]
    };
    for arc in of(&|arc| arc.callee == function.group && arc.caller != function.group) {
        table.tree_row(row(arc.total_cost, arc.calls), 1, vec![format!("← {}", name(arc.caller))], 0.0);
    }
    let total = function.total_cost.unwrap_or(function.self_cost).map(|cost| cost.cost);
    let own = if function.total_cost.is_some() { "" } else { " (self)" };
    let label = row_name(difference, function) + own;
    table.row(row(total, function.calls.unwrap_or_default()), label, 0.0);
    for arc in of(&|arc| arc.caller == function.group && arc.callee != function.group) {
        table.tree_row(row(arc.total_cost, arc.calls), 1, vec![format!("→ {}", name(arc.callee))], 0.0);
    }
    table
}
