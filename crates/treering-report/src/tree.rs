//! Trees of calls as text.

use treering_analysis::{CallTree, Direction, Hidden, Pruning, SharedNode, TotalSource, TreeNode, TreeRow};
use treering_profile::Profile;

use crate::flat::bounds;
use crate::function::Labels;
use crate::header::header_lines;
use crate::number::{grouped, percent, plural};
use crate::options::{Amount, Options};
use crate::printable::printable_profile;
use crate::scale::Scale;
use crate::style::Style;
use crate::table::{DEEPEST_INDENT, Table};

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
    let profile = &*printable_profile(profile);
    let mut text = header_lines(profile, &tree.basis, style);
    if tree.basis.run.cost == 0 {
        return text;
    }
    let unit = profile.metrics[tree.basis.metric.index()].unit;
    let scale = Scale::of(&tree.basis, unit, options.amount.unwrap_or(Amount::Percent));
    let arcs = profile.is_arcs_only();
    let calls = arcs || profile.tree.has_calls() && tree.direction == Direction::Callees;
    let folded = TotalSource::of(profile, tree.basis.metric) == TotalSource::Bounded;
    let rows = rows(tree, style.width.is_some());
    let listing = Listing { tree, rows, labels: Labels::of(profile), scale, calls, arcs, folded, pruning };
    text.push('\n');
    text += &listing.table().render(style);
    text += &style.dim(&format!("\n{}", style.wrap_lines(&listing.legend())));
    text.push('\n');
    text
}

struct Listing<'a> {
    tree: &'a CallTree,
    rows: Vec<Row<'a>>,
    labels: Labels<'a>,
    scale: Scale,
    calls: bool,
    /// Whether the profile has arcs but no stacks.
    arcs: bool,
    /// Whether contexts were folded.
    folded: bool,
    pruning: &'a Pruning,
}

impl Listing<'_> {
    fn inverted(&self) -> bool {
        self.tree.direction == Direction::Callers
    }

    /// Whether there is one column of costs, the self cost of the function at the top.
    fn only_self(&self) -> bool {
        self.inverted() && !self.arcs
    }

    fn table(&self) -> Table {
        let name = if self.inverted() { "function, its callers below it" } else { "function" };
        let mut table = Table::new(self.headings(), name);
        for row in &self.rows {
            match &row.content {
                Content::Nodes(nodes) => {
                    let Some(last) = nodes.last() else { continue };
                    let share = self.tree.basis.share(last.total_cost.cost);
                    table.tree_row(self.cells(last), row.depth, self.names(nodes), share);
                }
                Content::Shared(node) => {
                    let share = self.tree.basis.share(node.total_cost.cost);
                    let cells = vec![self.scale.text(node.total_cost), String::new(), grouped(node.calls)];
                    table.tree_row(cells, row.depth, vec![self.shared(node)], share);
                }
                Content::Hidden(hidden) => {
                    let cells = vec![String::new(); self.headings().len()];
                    table.tree_row(cells, row.depth, vec![self.hidden(hidden)], 0.0);
                }
            }
        }
        table
    }

    fn headings(&self) -> Vec<String> {
        let what = if self.only_self() { ["self"].as_slice() } else { ["total", "self"].as_slice() };
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
        if !self.only_self() {
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

    /// The functions of a row; of recursion, the function and how often.
    fn names(&self, nodes: &[&TreeNode]) -> Vec<String> {
        let runs: Vec<_> = nodes.chunk_by(|one, next| one.function == next.function).collect();
        let name = |(at, run): (usize, &&[&TreeNode])| {
            let function = run[0].function;
            let times = if run.len() > 1 { format!(" ×{}", run.len()) } else { String::new() };
            match runs.get(at + 1) {
                Some(next) => self.labels.before(function, next[0].function) + &times,
                None if run.len() > 1 => self.labels.with_module(function) + &times,
                None => self.labels.with_place(function),
            }
        };
        runs.iter().enumerate().map(name).collect()
    }

    fn shared(&self, node: &SharedNode) -> String {
        let name = self.labels.with_place(node.function);
        match (node.others, self.inverted()) {
            (0, _) => name,
            (others, false) => format!("{name} (and by {})", plural(others as u64, "other")),
            (others, true) => {
                format!("{name} (for which of {} is not known)", plural(others as u64, "caller"))
            }
        }
    }

    fn hidden(&self, hidden: &Hidden) -> String {
        let nodes = plural(hidden.nodes as u64, "node");
        let share = percent(self.tree.basis.share(hidden.cost.cost));
        let why = match hidden.too_deep {
            true => format!("deeper than {}", self.pruning.max_depth),
            false => format!("below {} %", percent(self.pruning.min_share)),
        };
        format!("… {nodes} {why}, together {share} %")
    }

    fn legend(&self) -> String {
        let what = match self.tree.direction {
            _ if self.arcs => ARCS,
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
        let deep = self.rows.iter().any(|row| row.depth > DEEPEST_INDENT);
        let depths = match deep {
            true => format!("\n[N] before a function: its depth, where that is more than {DEEPEST_INDENT}"),
            false => String::new(),
        };
        let chains = match self.rows.iter().any(|row| row.nodes().len() > 1) {
            true => "\na → b: a does nothing but call b; the numbers are those of both",
            false => "",
        };
        let folded = match self.folded {
            true => {
                "\ncontexts were folded below [folded: tree too large]: other totals are at least what is shown"
            }
            false => "",
        };
        format!("{what}{folded}; % is of the whole run{interval}{depths}{chains}")
    }
}

/// A row of the listing.
struct Row<'a> {
    content: Content<'a>,
    /// How many rows are above it.
    depth: usize,
}

/// What a row shows.
enum Content<'a> {
    /// Nodes of which each has the next one and nothing else below it.
    Nodes(Vec<&'a TreeNode>),
    /// A function of which only a part is known to belong here.
    Shared(&'a SharedNode),
    /// What was left out.
    Hidden(&'a Hidden),
}

impl<'a> Row<'a> {
    /// The nodes of the row, where it shows any.
    fn nodes(&self) -> &[&'a TreeNode] {
        match &self.content {
            Content::Nodes(nodes) => nodes,
            _ => &[],
        }
    }
}

/// The rows of a tree; with `fold`, nodes that cost nothing themselves and have a single one below them
/// share its row, if their numbers are the same.
fn rows(tree: &CallTree, fold: bool) -> Vec<Row<'_>> {
    let single = only_children(tree);
    let mut rows: Vec<Row<'_>> = Vec::new();
    // The depths in the tree of the rows above, and theirs in the listing.
    let mut above: Vec<(usize, usize)> = Vec::new();
    for (at, row) in tree.rows.iter().enumerate() {
        while above.last().is_some_and(|(depth, _)| *depth >= row.depth()) {
            above.pop();
        }
        let depth = above.last().map_or(0, |(_, shown)| shown + 1);
        match row {
            TreeRow::Hidden(hidden) => rows.push(Row { content: Content::Hidden(hidden), depth }),
            TreeRow::Shared(node) => {
                rows.push(Row { content: Content::Shared(node), depth });
                above.push((node.depth, depth));
            }
            TreeRow::Node(node) => {
                let caller = rows.last_mut().filter(|_| fold && single[at]);
                let shown = match caller {
                    Some(Row { content: Content::Nodes(nodes), depth })
                        if nodes.last().is_some_and(|of| same_numbers(of, node)) =>
                    {
                        nodes.push(node);
                        *depth
                    }
                    _ => {
                        rows.push(Row { content: Content::Nodes(vec![node]), depth });
                        depth
                    }
                };
                above.push((node.depth, shown));
            }
        }
    }
    rows
}

/// Whether a node passes on all that it costs.
fn same_numbers(caller: &TreeNode, callee: &TreeNode) -> bool {
    callee.depth == caller.depth + 1 && caller.total_cost == callee.total_cost && caller.calls == callee.calls
}

/// Of every row, whether it is the only one below the one above it.
fn only_children(tree: &CallTree) -> Vec<bool> {
    let mut children = vec![0_usize; tree.rows.len()];
    let mut parents = vec![None; tree.rows.len()];
    let mut above: Vec<usize> = Vec::new();
    for (at, row) in tree.rows.iter().enumerate() {
        while above.last().is_some_and(|&other| tree.rows[other].depth() >= row.depth()) {
            above.pop();
        }
        parents[at] = above.last().copied();
        if let Some(parent) = parents[at] {
            children[parent] += 1;
        }
        above.push(at);
    }
    parents.into_iter().map(|parent| parent.is_some_and(|parent| children[parent] == 1)).collect()
}

/// The note on trees of profiles that have arcs but no stacks.
const ARCS: &str = "the profile has arcs but no stacks: the callers of a function are known, but not their callers\n\
                    (and by …): the total is that of the calls from here; the function is listed by itself too, with \
                    all it called\n\
                    total: with everything called; self: in the function itself";
