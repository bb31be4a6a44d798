//! Puts the contents of frames together to a profile.
//!
//! Each content is checked against what is there before any of it is taken over, so that a
//! frame is either used as a whole or reported as lost.

mod code;
mod detail;
mod timeline;

use treering_profile::{
    AddressCost, Arc, EndedWaits, Function, Interner, InvalidProfile, Line, LineCost, Module, Process,
    Profile, RecursionRule, Source, StringTable, Thread, ThreadId, Tree,
};

use crate::budget::Budget;
use crate::trg::Damage;
use crate::trg::content::{Columns, Content, Decoded, End, Meta, Nodes, Table, Totals, Values};

use code::{Code, CodeLengths};
use detail::{Details, Lengths};
use timeline::{TimeLengths, Times};

const NONE: u32 = u32::MAX;

/// A profile being put together.
pub(crate) struct Assembly {
    pub(crate) budget: Budget,
    meta: Meta,
    strings: Vec<Box<str>>,
    modules: Vec<Module>,
    functions: Vec<Function>,
    lines: Vec<Line>,
    processes: Vec<Process>,
    threads: Vec<Thread>,
    parents: Vec<u32>,
    node_functions: Vec<treering_profile::FunctionId>,
    call_sites: Vec<u32>,
    costs: Vec<Vec<u64>>,
    calls: Option<[Vec<u64>; 2]>,
    line_costs: Vec<LineCost>,
    address_costs: Vec<AddressCost>,
    arcs: Vec<Arc>,
    ended_waits: Vec<EndedWaits>,
    sources: Vec<Source>,
    details: Details,
    code: Code,
    times: Times,
    ended: bool,
    /// How many nodes and metrics there will be, or 0 if not known.
    expected_nodes: usize,
    expected_metrics: usize,
}

impl Assembly {
    /// For a file of `length` bytes.
    pub(crate) fn new(length: usize) -> Self {
        let metadata = Default::default();
        let (metrics, runs) = Default::default();
        Self {
            budget: Budget::new(length),
            meta: Meta { metadata, recursion: RecursionRule::Full, metrics, runs },
            strings: Vec::new(),
            modules: Vec::new(),
            functions: Vec::new(),
            lines: Vec::new(),
            processes: Vec::new(),
            threads: Vec::new(),
            parents: Vec::new(),
            node_functions: Vec::new(),
            call_sites: Vec::new(),
            costs: Vec::new(),
            calls: None,
            line_costs: Vec::new(),
            address_costs: Vec::new(),
            arcs: Vec::new(),
            ended_waits: Vec::new(),
            sources: Vec::new(),
            details: Details::default(),
            code: Code::default(),
            times: Times::default(),
            ended: false,
            expected_nodes: 0,
            expected_metrics: 0,
        }
    }

    /// Makes room for what END says will come, within reason.
    pub(crate) fn reserve(&mut self, totals: &Totals) {
        let nodes = usize::try_from(totals.nodes).unwrap_or(usize::MAX);
        if self.budget.allows(nodes, 2 + totals.run_costs.len()) {
            self.expected_metrics = totals.run_costs.len();
            self.expected_nodes = nodes;
            self.parents.reserve_exact(nodes);
            self.node_functions.reserve_exact(nodes);
            self.call_sites.reserve_exact(nodes);
        }
    }

    /// Whether END was seen.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// Takes over a content, or says why it does not fit.
    pub(crate) fn add(&mut self, decoded: Decoded) -> Result<(), Damage> {
        self.budget.bytes(decoded.allocated)?;
        match decoded.content {
            Content::Meta(meta) => self.meta(*meta),
            Content::Strings(table) => self.strings(table),
            Content::Modules(table) => self.modules(table),
            Content::Functions(table) => self.functions(table),
            Content::Lines(table) => self.lines(table),
            Content::Processes(table) => self.processes(table),
            Content::Threads(table) => self.threads(table),
            Content::Nodes(nodes) => self.nodes(nodes),
            Content::Costs(columns) => self.costs(columns),
            Content::Calls(columns) => self.calls(columns),
            Content::LineCosts(costs) => self.line_costs(costs),
            Content::AddressCosts(costs) => self.address_costs(costs),
            Content::Arcs(arcs) => self.arcs(arcs),
            Content::Sources(sources) => self.sources(sources),
            Content::Statistics(stated) => self.details.statistics(stated, self.lengths(), &mut self.budget),
            Content::Ports(rows) => self.details.ports(rows, self.lengths(), &mut self.budget),
            Content::Sizes(stated) => self.details.sizes(stated, self.lengths()),
            Content::Points(points) => self.details.points(points, self.lengths()),
            Content::Memory(rows) => self.details.memory(rows, self.lengths(), &mut self.budget),
            Content::CodeSpaces(table) => self.code.spaces(table, self.code_lengths()),
            Content::CodeBytes(rows) => self.code.bytes(rows),
            Content::Translated(rows) => self.code.translated(rows, self.code_lengths()),
            Content::Partials(rows) => self.code.partials(rows, self.code_lengths()),
            Content::Blocks(table) => self.code.blocks(table, self.code_lengths()),
            Content::Executions(rows) => self.code.executions(rows, self.code_lengths()),
            Content::Branches(rows) => self.code.branches(rows, self.code_lengths()),
            Content::CodeLines(rows) => self.code.lines(rows, self.code_lengths()),
            Content::Uncounted(rows) => self.code.uncounted(rows, self.code_lengths()),
            Content::Timeline(heads) => self.times.head(heads, self.time_lengths()),
            Content::TimeCosts(costs) => self.times.costs(costs, self.time_lengths()),
            Content::Waits(waits) => self.times.waits(waits, self.time_lengths()),
            Content::Lives(lives) => self.times.lives(lives, self.time_lengths()),
            Content::Marks(marks) => self.times.marks(marks, self.time_lengths()),
            Content::LostSamples(losses) => self.times.losses(losses),
            Content::EndedWaits(rows) => self.ended_waits(rows),
            Content::Wakings(ends) => self.times.ends(ends, self.time_lengths()),
            Content::End(end) => self.end(&end),
        }
    }

    fn lengths(&self) -> Lengths {
        Lengths {
            nodes: self.parents.len(),
            metrics: self.costs.len(),
            threads: self.threads.len(),
            strings: self.strings.len(),
        }
    }

    fn time_lengths(&self) -> TimeLengths {
        TimeLengths {
            nodes: self.parents.len(),
            lines: self.lines.len(),
            metrics: self.costs.len(),
            threads: self.threads.len(),
            strings: self.strings.len(),
        }
    }

    fn code_lengths(&self) -> CodeLengths {
        CodeLengths {
            strings: self.strings.len(),
            modules: self.modules.len(),
            functions: self.functions.len(),
            lines: self.lines.len(),
            processes: self.processes.len(),
            threads: self.threads.len(),
        }
    }

    fn meta(&mut self, meta: Meta) -> Result<(), Damage> {
        let sound = meta.metadata.call_bias.is_none_or(|bias| bias.is_sound());
        ensure(sound, "the call bias is negative")?;
        let counted = |by: u32| (by as usize) < meta.metrics.len();
        let sampled = meta.metrics.iter().filter_map(|metric| metric.sampling.as_ref());
        ensure(sampled.map(|sampling| sampling.counted_by).all(counted), "a metric's samples are missing")?;
        let mut weights = meta.metrics.iter().filter_map(|metric| metric.weights());
        ensure(
            weights.all(|weights| weights.is_sound(meta.metrics.len())),
            "the weights of samples are missing",
        )?;
        ensure(meta.metrics.len() >= self.meta.metrics.len(), "it has fewer metrics than before")?;
        ensure(meta.runs.len() >= self.meta.runs.len(), "it has fewer runs than before")?;
        let added = meta.metrics.len() - self.meta.metrics.len();
        self.budget.numbers(self.parents.len(), added)?;
        let nodes = self.parents.len();
        let expected = meta.metrics.len() <= self.expected_metrics;
        let room = if expected { self.expected_nodes } else { 0 };
        self.costs.resize_with(meta.metrics.len(), || {
            let mut column = Vec::with_capacity(room);
            column.resize(nodes, 0);
            column
        });
        self.meta = meta;
        Ok(())
    }

    fn strings(&mut self, table: Table<Box<str>>) -> Result<(), Damage> {
        let empty = table.first != 0 || table.entries.first().is_none_or(|text| text.is_empty());
        ensure(empty, "string 0 is not the empty string")?;
        extend(&mut self.strings, table)
    }

    fn modules(&mut self, table: Table<Module>) -> Result<(), Damage> {
        let strings = self.strings.len();
        ensure(
            table.entries.iter().all(|module| module.path.index() < strings),
            "a module's path is missing",
        )?;
        extend(&mut self.modules, table)
    }

    fn functions(&mut self, table: Table<Function>) -> Result<(), Damage> {
        let (strings, modules) = (self.strings.len(), self.modules.len());
        let root = table.first != 0 || table.entries.first().is_none_or(|first| *first == Function::root());
        ensure(root, "function 0 is not the root")?;
        ensure(
            table.entries.iter().all(|function| {
                [function.name, function.linkage_name, function.file]
                    .iter()
                    .all(|text| text.index() < strings)
                    && function.module.is_none_or(|module| module.index() < modules)
            }),
            "a function refers to something missing",
        )?;
        extend(&mut self.functions, table)
    }

    fn lines(&mut self, table: Table<Line>) -> Result<(), Damage> {
        let strings = self.strings.len();
        ensure(table.entries.iter().all(|line| line.file.index() < strings), "a line's file is missing")?;
        extend(&mut self.lines, table)
    }

    fn processes(&mut self, table: Table<Process>) -> Result<(), Damage> {
        let runs = self.meta.runs.len();
        ensure(table.entries.iter().all(|process| process.run.index() < runs), "a process's run is missing")?;
        replace(&mut self.processes, table)
    }

    fn threads(&mut self, table: Table<Thread>) -> Result<(), Damage> {
        let processes = self.processes.len();
        let fits = |thread: &Thread| {
            let root = self.parents.get(thread.root.index());
            thread.process.index() < processes && root.is_none_or(|&parent| parent == NONE)
        };
        ensure(table.entries.iter().all(fits), "a thread refers to something missing")?;
        let first = usize::try_from(table.first).unwrap_or(usize::MAX);
        let restated = first..first.saturating_add(table.entries.len());
        let others = self.threads.iter().enumerate().filter(|(at, _)| !restated.contains(at));
        let mut roots: Vec<_> =
            others.map(|(_, thread)| thread).chain(&table.entries).map(|thread| thread.root).collect();
        roots.sort_unstable();
        ensure(roots.windows(2).all(|pair| pair[0] != pair[1]), "two threads have the same root")?;
        replace(&mut self.threads, table)
    }

    fn nodes(&mut self, nodes: Nodes) -> Result<(), Damage> {
        continues(nodes.first, self.parents.len())?;
        let (functions, lines) = (self.functions.len(), self.lines.len());
        ensure(nodes.functions.iter().all(|function| function.index() < functions), "a function is missing")?;
        let known = |&line: &u32| line == NONE || (line as usize) < lines;
        ensure(nodes.call_sites.iter().all(known), "a call site is missing")?;
        self.check_roots(&nodes)?;
        let call_columns = if self.calls.is_some() { 2 } else { 0 };
        self.budget.numbers(nodes.parents.len(), 2 + self.costs.len() + call_columns)?;
        self.parents.extend(nodes.parents);
        self.node_functions.extend(nodes.functions);
        self.call_sites.extend(nodes.call_sites);
        let length = self.parents.len();
        let calls = self.calls.iter_mut().flatten();
        for column in self.costs.iter_mut().chain(calls) {
            column.resize(length, 0);
        }
        Ok(())
    }

    /// Every root must be that of a thread, and no other node may be.
    fn check_roots(&self, nodes: &Nodes) -> Result<(), Damage> {
        let range = nodes.first..nodes.first + nodes.parents.len() as u64;
        let roots = self.threads.iter().map(|thread| u64::from(thread.root.raw()));
        let mut expected: Vec<_> = roots.filter(|root| range.contains(root)).collect();
        expected.sort_unstable();
        let found = range.zip(&nodes.parents).filter(|(_, parent)| **parent == NONE).map(|(node, _)| node);
        ensure(found.eq(expected), "its roots are not those of the threads")
    }

    fn costs(&mut self, columns: Columns) -> Result<(), Damage> {
        check_columns(&columns, self.parents.len(), self.costs.len())?;
        for (metric, values) in columns.columns {
            add(&mut self.costs[metric as usize], columns.first as usize, values);
        }
        Ok(())
    }

    fn calls(&mut self, columns: Columns) -> Result<(), Damage> {
        let nodes = self.parents.len();
        check_columns(&columns, nodes, 2)?;
        if self.calls.is_none() {
            self.budget.numbers(nodes, 2)?;
        }
        let calls = self.calls.get_or_insert_with(|| [vec![0; nodes], vec![0; nodes]]);
        for (which, values) in columns.columns {
            add(&mut calls[which as usize], columns.first as usize, values);
        }
        Ok(())
    }

    fn line_costs(&mut self, costs: Vec<LineCost>) -> Result<(), Damage> {
        let (nodes, lines, metrics) = (self.parents.len(), self.lines.len(), self.costs.len());
        let fits = |cost: &LineCost| {
            cost.node.index() < nodes && cost.line.index() < lines && cost.metric.index() < metrics
        };
        ensure(costs.iter().all(fits), "a line cost refers to something missing")?;
        append(&mut self.line_costs, costs);
        Ok(())
    }

    fn address_costs(&mut self, costs: Vec<AddressCost>) -> Result<(), Damage> {
        let (functions, lines, metrics) = (self.functions.len(), self.lines.len(), self.costs.len());
        let fits = |cost: &AddressCost| {
            cost.thread.index() < self.threads.len()
                && cost.function.index() < functions
                && cost.holder.index() < functions
                && cost.line.is_none_or(|line| line.index() < lines)
                && cost.metric.index() < metrics
        };
        ensure(costs.iter().all(fits), "a cost by address refers to something missing")?;
        append(&mut self.address_costs, costs);
        Ok(())
    }

    fn arcs(&mut self, arcs: Vec<Arc>) -> Result<(), Damage> {
        let (functions, lines, metrics) = (self.functions.len(), self.lines.len(), self.costs.len());
        let fits = |arc: &Arc| {
            arc.caller.index() < functions
                && arc.callee.index() < functions
                && arc.call_site.is_none_or(|line| line.index() < lines)
                && arc.total_costs.iter().all(|(metric, _)| metric.index() < metrics)
        };
        ensure(arcs.iter().all(fits), "an arc refers to something missing")?;
        append(&mut self.arcs, arcs);
        Ok(())
    }

    fn ended_waits(&mut self, rows: Vec<EndedWaits>) -> Result<(), Damage> {
        let nodes = self.parents.len();
        let fits = |row: &EndedWaits| {
            row.waiting.index() < nodes && row.waker.is_none_or(|waker| waker.index() < nodes)
        };
        ensure(rows.iter().all(fits), "the end of a wait refers to something missing")?;
        append(&mut self.ended_waits, rows);
        Ok(())
    }

    fn sources(&mut self, sources: Vec<Source>) -> Result<(), Damage> {
        let strings = self.strings.len();
        ensure(sources.iter().all(|source| source.file.index() < strings), "a source's path is missing")?;
        append(&mut self.sources, sources);
        Ok(())
    }

    fn end(&mut self, end: &End) -> Result<(), Damage> {
        self.ended = true;
        if self.totals() == end.totals { Ok(()) } else { Err(Damage::Totals) }
    }

    fn totals(&self) -> Totals {
        let run_cost = |costs: &Vec<u64>| costs.iter().fold(0, |sum: u64, &cost| sum.wrapping_add(cost));
        Totals {
            strings: self.strings.len() as u64,
            modules: self.modules.len() as u64,
            functions: self.functions.len() as u64,
            lines: self.lines.len() as u64,
            threads: self.threads.len() as u64,
            nodes: self.parents.len() as u64,
            line_costs: self.line_costs.len() as u64,
            arcs: self.arcs.len() as u64,
            run_costs: self.costs.iter().map(run_cost).collect(),
        }
    }

    /// The profile. Threads whose root was not read have no nodes and are left out.
    pub(crate) fn finish(self) -> Result<Profile, InvalidProfile> {
        let nodes = self.parents.len();
        let mut profile = Profile::new(self.meta.recursion);
        profile.metadata = self.meta.metadata;
        profile.metrics = self.meta.metrics;
        profile.runs = self.meta.runs;
        profile.processes = self.processes;
        profile.threads = self.threads.iter().filter(|thread| thread.root.index() < nodes).cloned().collect();
        if !self.strings.is_empty() {
            let strings = StringTable::from_entries(self.strings);
            profile.strings = strings.ok_or(InvalidProfile("string 0 is not the empty string"))?;
        }
        profile.modules = Interner::from_entries(self.modules);
        if !self.functions.is_empty() {
            profile.functions = Interner::from_entries(self.functions);
        }
        profile.lines = Interner::from_entries(self.lines);
        let [calls, recursive] = self.calls.unwrap_or_default();
        let (functions, sites) = (self.node_functions, self.call_sites);
        profile.tree = Tree::from_columns(self.parents, functions, sites, calls, recursive, self.costs)
            .map_err(InvalidProfile)?;
        profile.line_costs = self.line_costs;
        profile.address_costs = self.address_costs;
        let places = detail::thread_places(profile.tree.len(), &self.threads);
        profile.address_costs.retain_mut(|row| {
            let place = places[row.thread.index()];
            row.thread = place.map_or(row.thread, ThreadId::from_usize);
            place.is_some()
        });
        profile.arcs = self.arcs;
        profile.ended_waits = self.ended_waits;
        profile.compact_ended_waits();
        profile.sources = self.sources;
        self.details.finish(&mut profile, &self.threads);
        self.code.finish(&mut profile, &self.threads);
        self.times.finish(&mut profile, &self.threads);
        profile.validate()?;
        Ok(profile)
    }
}

fn ensure(holds: bool, otherwise: &'static str) -> Result<(), Damage> {
    if holds { Ok(()) } else { Err(Damage::Content(otherwise)) }
}

/// Whether a piece that starts with entry `first` continues a table of `known` entries.
fn continues(first: u64, known: usize) -> Result<(), Damage> {
    let known = known as u64;
    match first.cmp(&known) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(Damage::Gap { first, known }),
        std::cmp::Ordering::Less => Err(Damage::Content("it repeats earlier data")),
    }
}

fn extend<T>(known: &mut Vec<T>, table: Table<T>) -> Result<(), Damage> {
    continues(table.first, known.len())?;
    ensure(known.len() + table.entries.len() < NONE as usize, "a table has over 2^32 entries")?;
    append(known, table.entries);
    Ok(())
}

/// Takes over all entries; without a copy when they are the first.
fn append<T>(known: &mut Vec<T>, mut added: Vec<T>) {
    if known.is_empty() {
        *known = added;
    } else {
        known.append(&mut added);
    }
}

/// Like [`extend`], for tables whose entries may be stated anew.
fn replace<T>(known: &mut Vec<T>, table: Table<T>) -> Result<(), Damage> {
    let first = usize::try_from(table.first).unwrap_or(usize::MAX);
    if first > known.len() {
        return Err(Damage::Gap { first: table.first, known: known.len() as u64 });
    }
    let end = known.len().min(first + table.entries.len());
    known.splice(first..end, table.entries);
    Ok(())
}

fn check_columns(columns: &Columns, nodes: usize, known: usize) -> Result<(), Damage> {
    let end = columns.first.checked_add(columns.count).filter(|&end| end <= nodes as u64);
    ensure(end.is_some(), "a cost belongs to a node that is missing")?;
    ensure(columns.columns.iter().all(|(at, _)| (*at as usize) < known), "a cost is of an unknown metric")
}

/// Adds values to a column; stops at 2^64 - 1, and the sum is refused later.
fn add(column: &mut [u64], first: usize, values: Values) {
    match values {
        Values::Dense(values) => {
            for (cell, value) in column[first..].iter_mut().zip(values) {
                *cell = cell.saturating_add(value);
            }
        }
        Values::Sparse(values) => {
            for (at, value) in values {
                let cell = &mut column[first + at as usize];
                *cell = cell.saturating_add(value);
            }
        }
    }
}
