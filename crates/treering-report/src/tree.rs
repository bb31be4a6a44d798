//! Trees of calls as text.

use treering_analysis::{
    CallTree, Direction, Hidden, Measure, Pruning, SharedNode, TotalSource, TreeNode, TreeRow,
};
use treering_profile::{FunctionId, Profile, RecursionRule};

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
    let calls = match arcs {
        true => profile.arcs.iter().any(|arc| arc.calls > 0),
        false => profile.tree.has_calls() && tree.direction == Direction::Callees,
    };
    let folded = TotalSource::of(profile, tree.basis.metric) == TotalSource::Bounded;
    let rows = rows(tree, style.width.is_some());
    let flat = profile.recursion == RecursionRule::Flat;
    let listing =
        Listing { tree, rows, labels: Labels::of(profile), scale, calls, arcs, flat, folded, pruning };
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
    /// Whether the profile was recorded without callers.
    flat: bool,
    /// Whether contexts were folded.
    folded: bool,
    pruning: &'a Pruning,
}

impl Listing<'_> {
    fn inverted(&self) -> bool {
        self.tree.direction == Direction::Callers
    }

    /// Whether totals are self costs: in inverted trees, of the function at the top, and without callers.
    fn only_self(&self) -> bool {
        (self.inverted() || self.flat) && !self.arcs
    }

    /// The columns before the name.
    fn columns(&self) -> Vec<Column> {
        let mut columns =
            if self.only_self() { vec![Column::Total] } else { vec![Column::Total, Column::SelfCost] };
        columns.extend(self.tree.basis.samples.map(|_| Column::Interval));
        columns.extend(self.calls.then_some(Column::Calls));
        columns
    }

    fn heading(&self, column: Column) -> String {
        match column {
            Column::Total if self.only_self() => self.scale.heading("self"),
            Column::Total => self.scale.heading("total"),
            Column::SelfCost => self.scale.heading("self"),
            Column::Interval => "[95 % interval]".to_owned(),
            Column::Calls => "calls".to_owned(),
        }
    }

    fn table(&self) -> Table {
        let name = if self.inverted() { "function, its callers below it" } else { "function" };
        let columns = self.columns();
        let headings = columns.iter().map(|&column| self.heading(column)).collect();
        let mut table = Table::new(headings, name);
        for row in &self.rows {
            let numbers = row.content.numbers();
            let cell = |&column| numbers.map_or(String::new(), |numbers| self.cell(column, &numbers));
            let share = numbers.map_or(0.0, |numbers| self.tree.basis.share(numbers.total.cost));
            let names = match &row.content {
                Content::Nodes(nodes) => self.names(nodes),
                Content::Shared(node) => vec![self.shared(node)],
                Content::Hidden(hidden) => vec![self.hidden(hidden)],
            };
            table.tree_row(columns.iter().map(cell).collect(), row.depth, names, share);
        }
        table
    }

    fn cell(&self, column: Column, of: &Numbers) -> String {
        match column {
            Column::Total => self.scale.text(of.total),
            Column::SelfCost => of.own.map_or(String::new(), |own| self.scale.text(own)),
            Column::Interval => self.tree.basis.interval(of.total).map_or(String::new(), bounds),
            Column::Calls => of.calls.map_or(String::new(), grouped),
        }
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
                None => self.marked(function, run[0].cycle),
            }
        };
        runs.iter().enumerate().map(name).collect()
    }

    fn shared(&self, node: &SharedNode) -> String {
        let name = self.marked(node.function, node.cycle);
        match (node.others, self.inverted()) {
            (0, _) => name,
            (_, true) if node.cycle.is_some() => format!("{name} (its callers are not told apart)"),
            (others, false) => format!("{name} (and by {})", plural(others as u64, "other")),
            (others, true) => {
                format!("{name} (for which of {} is not known)", plural(others as u64, "caller"))
            }
        }
    }

    fn marked(&self, function: FunctionId, cycle: Option<usize>) -> String {
        let name = self.labels.with_place(function);
        cycle.map_or(name.clone(), |cycle| format!("{name} <cycle {}>", cycle + 1))
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
            _ if self.flat => FLAT,
            Direction::Callees => "total: with everything called; self: in the function itself",
            Direction::Callers => {
                "self: in the function at the top, for the part reached through this chain of callers"
            }
        };
        let cycles = match self.tree.rows.iter().any(is_in_cycle) {
            true => {
                "\n<cycle>: functions that reach each other; the total of each leaves out the others, that of calls \
                 from outside is of the whole cycle"
            }
            false => "",
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
        format!("{what}{folded}; % is of the whole run{cycles}{interval}{depths}{chains}")
    }
}

/// A row of the listing.
struct Row<'a> {
    content: Content<'a>,
    /// How many rows are above it.
    depth: usize,
}

/// The content of a row.
enum Content<'a> {
    /// Nodes of which each has the next one and nothing else below it.
    Nodes(Vec<&'a TreeNode>),
    /// A function of which only a part is known to belong here.
    Shared(&'a SharedNode),
    /// The omitted rows.
    Hidden(&'a Hidden),
}

/// A column before the name.
#[derive(Clone, Copy)]
enum Column {
    Total,
    SelfCost,
    Interval,
    Calls,
}

/// The numbers of a row.
#[derive(Clone, Copy)]
struct Numbers {
    total: Measure,
    /// The part of it in the function itself, where that is known.
    own: Option<Measure>,
    calls: Option<u64>,
}

impl Content<'_> {
    /// The numbers of the row; nothing of what was left out.
    fn numbers(&self) -> Option<Numbers> {
        match self {
            Self::Nodes(nodes) => nodes.last().map(|node| Numbers {
                total: node.total_cost,
                own: Some(node.self_cost),
                calls: node.calls,
            }),
            Self::Shared(node) => {
                Some(Numbers { total: node.total_cost, own: None, calls: Some(node.calls) })
            }
            Self::Hidden(_) => None,
        }
    }
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

fn is_in_cycle(row: &TreeRow) -> bool {
    match row {
        TreeRow::Node(node) => node.cycle.is_some(),
        TreeRow::Shared(node) => node.cycle.is_some(),
        TreeRow::Hidden(_) => false,
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

/// The note on trees of profiles that were recorded without callers.
const FLAT: &str = "the profile is flat: callers and callees are not known; report --flat has the totals\n\
                    self: in the function itself";

/// The note on trees of profiles that have arcs but no stacks.
const ARCS: &str = "the profile has arcs but no stacks: the callers of a function are known, but not their callers\n\
                    (and by …): the total is that of the calls from here; the function is listed by itself too, with \
                    all it called\n\
                    total: with everything called; self: in the function itself";
