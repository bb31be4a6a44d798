//! Trees of calls as text.

use treering_analysis::{CallTree, Direction, Hidden, Pruning, TreeNode, TreeRow};
use treering_profile::Profile;

use crate::flat::bounds;
use crate::function::Labels;
use crate::header::header_lines;
use crate::number::{grouped, percent, plural};
use crate::options::{Amount, Options};
use crate::scale::Scale;
use crate::style::Style;
use crate::table::Table;

/// A tree of calls, indented; `pruning` is what it was pruned by.
///
/// `profile` is the one that `tree` was made of.
pub fn tree_text(
    profile: &Profile,
    tree: &CallTree,
    pruning: &Pruning,
    style: &Style,
    options: &Options,
) -> String {
    let mut text = header_lines(profile, &tree.basis, style);
    if tree.basis.run.cost == 0 {
        return text;
    }
    let unit = profile.metrics[tree.basis.metric.index()].unit;
    let scale = Scale::of(&tree.basis, unit, options.amount.unwrap_or(Amount::Percent));
    let calls = profile.tree.has_calls() && tree.direction == Direction::Callees;
    let listing = Listing { tree, labels: Labels::of(profile), scale, calls, pruning };
    text.push('\n');
    text += &listing.table().render(style);
    text += &style.dim(&format!("\n{}", listing.legend()));
    text.push('\n');
    text
}

struct Listing<'a> {
    tree: &'a CallTree,
    labels: Labels<'a>,
    scale: Scale,
    calls: bool,
    pruning: &'a Pruning,
}

impl Listing<'_> {
    fn inverted(&self) -> bool {
        self.tree.direction == Direction::Callers
    }

    fn table(&self) -> Table {
        let name = if self.inverted() { "function, its callers below it" } else { "function" };
        let mut table = Table::new(self.headings(), name);
        for row in &self.tree.rows {
            match row {
                TreeRow::Node(node) => {
                    let share = self.tree.basis.share(node.total_cost.cost);
                    table.row(self.cells(node), self.name(node), share);
                }
                TreeRow::Hidden(hidden) => {
                    let cells = vec![String::new(); self.headings().len()];
                    table.row(cells, self.hidden(hidden), 0.0);
                }
            }
        }
        table
    }

    fn headings(&self) -> Vec<String> {
        let what = if self.inverted() { ["self"].as_slice() } else { ["total", "self"].as_slice() };
        let mut headings: Vec<_> = what.iter().map(|what| self.scale.heading(what)).collect();
        if self.tree.basis.samples.is_some() {
            headings.push("[95 % interval]".to_owned());
        }
        if self.calls {
            headings.push("calls".to_owned());
        }
        headings
    }

    fn cells(&self, node: &TreeNode) -> Vec<String> {
        let mut cells = vec![self.scale.text(node.total_cost)];
        if !self.inverted() {
            cells.push(self.scale.text(node.self_cost));
        }
        if self.tree.basis.samples.is_some() {
            cells.push(self.tree.basis.interval(node.total_cost).map_or(String::new(), bounds));
        }
        if self.calls {
            cells.push(node.calls.map_or(String::new(), grouped));
        }
        cells
    }

    fn name(&self, node: &TreeNode) -> String {
        format!("{}{}", indent(node.depth), self.labels.with_place(node.function))
    }

    fn hidden(&self, hidden: &Hidden) -> String {
        let nodes = plural(hidden.nodes as u64, "node");
        let share = percent(self.tree.basis.share(hidden.cost.cost));
        let why = match hidden.too_deep {
            true => format!("deeper than {}", self.pruning.max_depth),
            false => format!("below {} %", percent(self.pruning.min_share)),
        };
        format!("{}… {nodes} {why}, together {share} %", indent(hidden.depth))
    }

    fn legend(&self) -> String {
        let what = match self.tree.direction {
            Direction::Callees => "total: with everything called; self: in the function itself",
            Direction::Callers => {
                "self: in the function at the top, for the part reached through this chain of callers"
            }
        };
        let interval = match (self.tree.basis.samples, self.tree.direction) {
            (None, _) => "",
            (_, Direction::Callees) => {
                "\n[95 % interval]: where the total lies in percent, as far as the samples can tell"
            }
            (_, Direction::Callers) => {
                "\n[95 % interval]: where it lies in percent, as far as the samples can tell"
            }
        };
        let depths = match self.tree.rows.iter().any(|row| row.depth() > DEEPEST_INDENT) {
            true => format!("\n[N] before a function: its depth, where that is more than {DEEPEST_INDENT}"),
            false => String::new(),
        };
        format!("{what}; % is of the whole run{interval}{depths}")
    }
}

/// Rows are indented no further than this, so that the text of a deep recursion does not grow with the square of
/// its depth; those below say how deep they are.
const DEEPEST_INDENT: usize = 100;

fn indent(depth: usize) -> String {
    let indent = "  ".repeat(depth.min(DEEPEST_INDENT));
    if depth > DEEPEST_INDENT { format!("{indent}[{}] ", grouped(depth as u64)) } else { indent }
}
