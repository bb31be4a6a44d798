//! The costs of a function's lines.

use std::collections::BTreeMap;

use treering_profile::{BasicBlock, FunctionId, LineId, MetricId, NodeId, Profile, StringId};

use crate::basis::Basis;
use crate::coverage::{Coverage, FunctionCoverage};
use crate::flat_totals::TotalSource;
use crate::identity::Identity;
use crate::measure::{Columns, Measure};

/// The costs of one function's source lines, and of the functions that they called.
///
/// The self costs of all lines and `self_elsewhere` add up to the function's self cost; with the
/// calls they add up to its total cost.
#[derive(Clone, Debug, PartialEq)]
pub struct LineTable {
    /// The base of percentages.
    pub basis: Basis,
    /// The function.
    pub function: FunctionId,
    /// The cost spent in the function itself.
    pub self_cost: Measure,
    /// Self cost and all callees, outermost activations only.
    pub total_cost: Measure,
    /// Where the total costs come from. Those of calls are 0 where they are not known.
    pub totals: TotalSource,
    /// The lines that cost something, by file and line.
    pub lines: Vec<LineRow>,
    /// Self cost whose line is not known.
    pub self_elsewhere: Measure,
    /// Calls whose line is not known.
    pub calls_elsewhere: Vec<LineCall>,
}

/// The cost of a source line.
#[derive(Clone, Debug, PartialEq)]
pub struct LineRow {
    /// The file.
    pub file: StringId,
    /// The line, from 1; 0 when only the file is known.
    pub line: u32,
    /// The cost spent on the line itself.
    pub self_cost: Measure,
    /// How often statements of the line were run, where that was counted: 0 for one that has code and never was.
    pub hits: Option<u64>,
    /// The calls made from the line, largest first.
    pub calls: Vec<LineCall>,
}

impl LineRow {
    /// The cost spent on the line and in the functions that it called.
    pub fn total_cost(&self) -> Measure {
        self.self_cost + self.calls.iter().map(|call| call.total_cost).sum()
    }
}

/// Calls of one function from one line.
#[derive(Clone, Debug, PartialEq)]
pub struct LineCall {
    /// The function that is called.
    pub callee: FunctionId,
    /// How often, where calls were counted; else 0.
    pub calls: u64,
    /// The calls' part of the caller's total, as
    /// [`Arc::to_callee`](crate::Arc::to_callee): where the caller calls itself again further
    /// down, what is below that counts for the line there.
    pub total_cost: Measure,
}

impl LineTable {
    /// Adds how often each line of the function was executed, and the lines that never were. Nothing is added for lines
    /// that were inlined, nor if coverage does not know the function.
    #[must_use]
    pub fn with_coverage(mut self, profile: &mut Profile, coverage: &Coverage) -> Self {
        let function = &profile.functions[self.function];
        let (module, address) = (function.module, function.address.map(|address| address.0));
        let mut functions = coverage.files.iter().flat_map(|file| &file.functions);
        let is_it = |known: &&FunctionCoverage| known.module == module && Some(known.start) == address;
        let Some(known) = functions.find(is_it) else { return self };
        for ((path, line), &executions) in &known.own_lines {
            let file = profile.strings.intern(path);
            match self.lines.iter_mut().find(|row| row.file == file && row.line == *line) {
                Some(row) => row.hits = Some(executions),
                None => self.lines.push(LineRow {
                    file,
                    line: *line,
                    self_cost: Measure::default(),
                    hits: Some(executions),
                    calls: Vec::new(),
                }),
            }
        }
        self.lines.sort_by(|a, b| {
            let file = |row: &LineRow| &profile.strings[row.file];
            file(a).cmp(file(b)).then(a.line.cmp(&b.line))
        });
        self
    }
}

/// The name of the metric of how often the statements of lines were run.
const HITS: &str = "line hits";

#[derive(Default)]
struct Row {
    self_cost: Measure,
    hits: u64,
    calls: BTreeMap<FunctionId, (u64, Measure)>,
}

impl LineTable {
    /// The lines of `function`, in O(nodes + line costs).
    pub fn of(profile: &Profile, basis: &Basis, function: FunctionId) -> Self {
        let identity = Identity::of(profile);
        let function = identity.representative(function);
        let functions = profile.tree.function_column().iter();
        let mut collection = Collection {
            profile,
            identity: &identity,
            columns: Columns::of(profile, basis.metric, basis.samples),
            function,
            nodes: functions.map(|&other| identity.representative(other) == function).collect(),
            rows: BTreeMap::new(),
            self_cost: Measure::default(),
        };
        collection.lines(basis);
        match profile.is_arcs_only() {
            true => collection.arcs(basis),
            false => collection.calls(),
        }
        collection.into_table(basis)
    }
}

struct Collection<'a> {
    profile: &'a Profile,
    identity: &'a Identity,
    columns: Columns<'a>,
    function: FunctionId,
    /// By node: whether it is one of the function.
    nodes: Vec<bool>,
    rows: BTreeMap<Option<LineId>, Row>,
    self_cost: Measure,
}

impl Collection<'_> {
    fn is_it(&self, node: NodeId) -> bool {
        self.nodes[node.index()]
    }

    /// Self cost by line.
    fn lines(&mut self, basis: &Basis) {
        let own = self.profile.tree.nodes().filter(|&node| self.is_it(node));
        self.self_cost = own.map(|node| self.columns.self_cost(node)).sum();
        let hits = self.hits();
        for cost in &self.profile.line_costs {
            if !self.is_it(cost.node) {
                continue;
            }
            let row = self.rows.entry(Some(cost.line)).or_default();
            if hits == Some(cost.metric) {
                row.hits = row.hits.saturating_add(cost.cost);
            }
            if cost.metric == basis.metric {
                row.self_cost += Measure::new(cost.cost, 0);
            }
            if basis.samples == Some(cost.metric) {
                row.self_cost += Measure::new(0, cost.cost);
            }
        }
        if self.rows.is_empty() {
            self.counted_lines(basis);
        }
    }

    /// Self cost by line of a profile with a tree of counts, whose nodes have no lines: its code has, and every
    /// instruction was counted. Not of a part of such a profile.
    fn counted_lines(&mut self, basis: &Basis) {
        let code = &self.profile.code;
        let metric = &self.profile.metrics[basis.metric.index()];
        let counted = metric.name == "instructions" && !code.lines.is_empty();
        if !counted || self.profile.run_cost(basis.metric) != code.block_instructions() {
            return;
        }
        let is_its = |block: &BasicBlock| {
            block.function.is_some_and(|function| self.identity.representative(function) == self.function)
        };
        for (row, threads) in code.executions.distinct() {
            let block = &code.blocks[row.block.index()];
            if row.executions == 0 || !is_its(block) {
                continue;
            }
            for line in block.places().filter_map(|(at, _)| code.line(at)) {
                let known = self.rows.entry(Some(line)).or_default();
                known.self_cost += Measure::new(row.executions.saturating_mul(threads), 0);
            }
        }
    }

    /// The metric of how often lines were run.
    fn hits(&self) -> Option<MetricId> {
        self.profile.metrics().find(|(_, metric)| metric.name == HITS).map(|(metric, _)| metric)
    }

    /// Calls by line, as the tree measured them.
    fn calls(&mut self) {
        let tree = &self.profile.tree;
        let totals = self.columns.totals(tree);
        let again = self.below_again(&totals);
        for node in tree.nodes() {
            if !tree.parent(node).is_some_and(|parent| self.is_it(parent)) {
                continue;
            }
            let callee = self.identity.representative(tree.function(node));
            let row = self.rows.entry(tree.call_site(node)).or_default();
            let call = row.calls.entry(callee).or_default();
            call.0 = call.0.saturating_add(tree.calls(node).saturating_sub(tree.recursive_calls(node)));
            call.1 += totals[node.index()] - again[node.index()];
        }
        self.folded_calls();
    }

    /// Calls of the function to itself that the recursion rule folded into its nodes. Their lines are not known, and
    /// their cost is part of those nodes'.
    fn folded_calls(&mut self) {
        let tree = &self.profile.tree;
        let itself = tree.nodes().filter(|&node| self.is_it(node));
        let folded: u64 = itself.map(|node| tree.recursive_calls(node).min(tree.calls(node))).sum();
        if folded > 0 {
            let call = self.rows.entry(None).or_default().calls.entry(self.function).or_default();
            call.0 = call.0.saturating_add(folded);
        }
    }

    /// By node: what of its subtree is below an activation of the function, itself included.
    fn below_again(&self, totals: &[Measure]) -> Vec<Measure> {
        let tree = &self.profile.tree;
        let mut below = vec![Measure::default(); tree.len()];
        for node in tree.nodes().rev() {
            if self.is_it(node) {
                below[node.index()] = totals[node.index()];
            }
            if let Some(parent) = tree.parent(node) {
                let cost = below[node.index()];
                below[parent.index()] += cost;
            }
        }
        below
    }

    /// Calls by line, as an arc-only source measured them; those without a cost count as calls.
    fn arcs(&mut self, basis: &Basis) {
        for arc in &self.profile.arcs {
            let callee = self.identity.representative(arc.callee);
            if self.identity.representative(arc.caller) != self.function {
                continue;
            }
            let measured = arc.total_costs.iter().find(|(metric, _)| *metric == basis.metric);
            let call = self.rows.entry(arc.call_site).or_default().calls.entry(callee).or_default();
            call.0 = call.0.saturating_add(arc.calls);
            if callee != self.function {
                call.1 += Measure::new(measured.map_or(0, |&(_, cost)| cost), 0);
            }
        }
    }

    fn into_table(mut self, basis: &Basis) -> LineTable {
        let elsewhere = self.rows.remove(&None).unwrap_or_default();
        let has_hits = self.hits().is_some();
        let mut lines: Vec<LineRow> = self
            .rows
            .into_iter()
            .filter_map(|(line, row)| {
                let line = self.profile.lines[line?];
                Some(LineRow {
                    file: line.file,
                    line: line.line,
                    self_cost: row.self_cost,
                    hits: has_hits.then_some(row.hits),
                    calls: calls(row.calls),
                })
            })
            .collect();
        lines.sort_by(|a, b| {
            let file = |row: &LineRow| &self.profile.strings[row.file];
            file(a).cmp(file(b)).then(a.line.cmp(&b.line))
        });
        let on_lines: Measure = lines.iter().map(|row| row.self_cost).sum();
        let calls_elsewhere = calls(elsewhere.calls);
        let called = lines.iter().flat_map(|row| &row.calls).chain(&calls_elsewhere);
        let called: Measure = called.map(|call| call.total_cost).sum();
        LineTable {
            basis: basis.clone(),
            function: self.function,
            self_cost: self.self_cost,
            total_cost: self.self_cost + called,
            totals: TotalSource::of(self.profile, basis.metric),
            lines,
            self_elsewhere: self.self_cost.saturating_sub(on_lines),
            calls_elsewhere,
        }
    }
}

fn calls(calls: BTreeMap<FunctionId, (u64, Measure)>) -> Vec<LineCall> {
    let call = |(callee, (calls, total_cost))| LineCall { callee, calls, total_cost };
    let mut calls: Vec<_> = calls.into_iter().map(call).collect();
    calls.sort_by_key(|call| (std::cmp::Reverse(call.total_cost), call.callee));
    calls
}
