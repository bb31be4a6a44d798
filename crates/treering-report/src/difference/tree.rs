//! The tree of what changed.

use treering_compare::{ContextChange, Contexts, Difference};

use crate::number::plural;
use crate::printable::printable;
use crate::style::Style;
use crate::table::Table;

use super::amounts::{Amounts, calls};
use super::flat::headline;

/// The verdict and the tree of contexts whose total changed, each with its callers above it; nothing where one profile
/// has no tree.
pub fn difference_tree_text(difference: &Difference, style: &Style, depth: usize) -> Option<String> {
    let contexts = difference.contexts.as_ref()?;
    let mut listing = Listing {
        difference,
        contexts,
        children: contexts.children(),
        amounts: Amounts::of_changes(difference),
        table: Table::new(headings(contexts), "function"),
        least: least(contexts),
        depth,
    };
    listing.children_of(0, 0);
    Some(format!("{}\n{}", headline(difference, style), listing.table.render(style)))
}

fn headings(contexts: &Contexts) -> Vec<String> {
    let mut headings = vec!["change".to_owned(), "base → head".to_owned()];
    headings.extend(contexts.has_calls.then(|| "calls".to_owned()));
    headings
}

/// Changes below a fiftieth of the largest one are added up.
fn least(contexts: &Contexts) -> u128 {
    let largest = contexts.nodes.iter().map(|node| node.total_cost.change().unsigned_abs()).max();
    (largest.unwrap_or(0) / 50).max(1)
}

struct Listing<'a> {
    difference: &'a Difference,
    contexts: &'a Contexts,
    children: Vec<Vec<usize>>,
    amounts: Amounts,
    table: Table,
    least: u128,
    depth: usize,
}

impl Listing<'_> {
    fn node(&self, at: usize) -> &ContextChange {
        &self.contexts.nodes[at]
    }

    fn name(&self, at: usize) -> String {
        printable(&self.difference.pairing.groups[self.node(at).group].name).into_owned()
    }

    /// Shows a context and, indented below it, those it calls. Contexts that pass their whole change to one callee
    /// share a row with it.
    fn show(&mut self, mut at: usize, depth: usize) {
        let mut names = vec![self.name(at)];
        while let [only] = self.changed(at)[..]
            && self.node(only).total_cost.change() == self.node(at).total_cost.change()
            && self.node(only).total_cost.change() != 0
        {
            at = only;
            names.push(self.name(at));
        }
        let cells = self.cells(at);
        self.table.tree_row(cells, depth, names, 0.0);
        if depth < self.depth {
            self.children_of(at, depth + 1);
        }
    }

    fn cells(&self, at: usize) -> Vec<String> {
        let node = self.node(at);
        let mut cells =
            vec![self.amounts.signed(node.total_cost.change()), self.amounts.both(node.total_cost)];
        cells.extend(self.contexts.has_calls.then(|| calls(node.calls)));
        cells
    }

    /// The callees whose total changed by enough to be shown, largest first.
    fn changed(&self, at: usize) -> Vec<usize> {
        let size = |at: usize| self.node(at).total_cost.change().unsigned_abs();
        let children = self.children[at].iter().copied();
        let mut changed: Vec<usize> = children.filter(|&child| size(child) >= self.least).collect();
        changed.sort_by(|&a, &b| size(b).cmp(&size(a)).then_with(|| self.name(a).cmp(&self.name(b))));
        changed
    }

    fn children_of(&mut self, at: usize, depth: usize) {
        let changed = self.changed(at);
        let mut rest = self.node(at).total_cost.change();
        for &child in &changed {
            rest -= self.node(child).total_cost.change();
            self.show(child, depth);
        }
        let others = self.children[at].iter().filter(|child| !changed.contains(child));
        let others = others.filter(|&&child| self.node(child).total_cost.change() != 0).count();
        if rest.unsigned_abs() >= self.least && (at > 0 || others > 0) && !changed.is_empty() {
            let name = match others {
                0 => "self".to_owned(),
                _ => format!("self and {} more", plural(others as u64, "callee")),
            };
            let mut cells = vec![self.amounts.signed(rest), String::new()];
            cells.extend(self.contexts.has_calls.then(String::new));
            self.table.tree_row(cells, depth, vec![name], 0.0);
        }
    }
}
