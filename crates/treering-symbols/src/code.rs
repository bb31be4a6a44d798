//! Functions and lines of code whose executions were counted.

use std::cell::Cell;
use std::collections::HashMap;

use treering_profile::{
    Arc, BasicBlock, BlockExecutions, BlockId, BranchCount, BranchKind, CodeAddress, CodeCounts, Function,
    FunctionId, Line, LineCost, LineId, Metric, MetricId, ModuleId, NodeId, Profile, Unit,
};

use crate::answer::{Answers, NamedFunction};
use crate::modelled::add_modelled;
use crate::symbolise::Resolver;
use crate::{ModuleReport, Progress};

/// Where an instruction is in the source.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Source {
    /// The function whose code it is, into which others may be inlined there.
    pub(crate) function: Option<FunctionId>,
    /// The line of the innermost of them.
    pub(crate) line: Option<LineId>,
}

/// Resolves the basic blocks of a profile, if it has any: gives them functions, dividing those that
/// reach from one function into another, and their instructions lines.
///
/// Where the tree has no costs, costs and arcs follow from the counts: the metric `instructions`,
/// with one node for each function below each thread's root, and an arc for every call. A jump to
/// the start of another function is a call as well. What has no caller, as signal handlers, is
/// called by the root.
pub(crate) fn resolve(
    profile: &mut Profile,
    resolver: &Resolver<'_, '_>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Vec<ModuleReport> {
    if profile.code.blocks.is_empty() {
        return Vec::new();
    }
    let (sources, reports) = sources(profile, resolver, progress);
    let source = |at: CodeAddress| sources.at(at);
    divide(&mut profile.code, &source);
    profile.code.set_lines(sources.rows.iter().map(|(at, source)| (*at, source.line)));
    if profile.metrics.iter().any(|metric| metric.name == INSTRUCTIONS) {
        return reports;
    }
    add_costs(profile, &source);
    add_modelled(profile, &source);
    for arc in arcs(profile, &source) {
        profile.add_arc(arc);
    }
    reports
}

/// The metric that counts executed instructions.
pub(crate) const INSTRUCTIONS: &str = "instructions";

/// What is known of every instruction of the basic blocks.
pub(crate) struct Sources {
    /// Sorted by place, each once.
    pub(crate) rows: Vec<(CodeAddress, Source)>,
    /// The row that was asked for last: the next question is usually for the one behind it.
    latest: Cell<usize>,
}

impl Sources {
    pub(crate) fn new(mut rows: Vec<(CodeAddress, Source)>) -> Self {
        rows.sort_by_key(|(at, _)| *at);
        rows.dedup_by_key(|(at, _)| *at);
        Self { rows, latest: Cell::new(0) }
    }

    /// What is known of an instruction; nothing of those in no basic block.
    pub(crate) fn at(&self, at: CodeAddress) -> Source {
        let next = self.latest.get() + 1;
        let found = match self.rows.get(next) {
            Some((place, _)) if *place == at => Ok(next),
            _ => self.rows.binary_search_by_key(&at, |(place, _)| *place),
        };
        let Ok(found) = found else { return Source::default() };
        self.latest.set(found);
        self.rows[found].1
    }
}

fn sources(
    profile: &mut Profile,
    resolver: &Resolver<'_, '_>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> (Sources, Vec<ModuleReport>) {
    let spaces = &profile.code.spaces;
    let places = profile.code.blocks.iter().flat_map(BasicBlock::places);
    let mut places: Vec<(Option<ModuleId>, CodeAddress)> =
        places.map(|(at, _)| (spaces[at.space].module, at)).collect();
    // Several spaces may be of one module, which is asked once for each address.
    places.sort_by_key(|&(module, at)| (module, at.address, at.space));
    let (mut rows, mut reports) = (Vec::with_capacity(places.len()), Vec::new());
    for of_module in places.chunk_by(|one, other| one.0 == other.0) {
        let module = of_module[0].0;
        let mut addresses: Vec<u64> = of_module.iter().map(|(_, at)| at.address.0).collect();
        addresses.dedup();
        let path = module.map_or("", |module| &profile.strings[profile.modules[module].path]).to_owned();
        progress(Progress { module: &path, done: rows.len(), total: places.len() });
        let (answers, report) =
            resolver.resolve(module.map(|module| &profile.modules[module]), &path, &addresses);
        let found = Named::new(profile, module, &answers);
        let mut index = 0;
        for &(_, at) in of_module {
            index += usize::from(addresses[index] != at.address.0);
            rows.push((at, found.source(&answers, index)));
        }
        reports.push(report);
    }
    (Sources::new(rows), reports)
}

/// The functions and lines of a module's answers in terms of the profile.
struct Named {
    functions: Vec<FunctionId>,
    lines: HashMap<(usize, u32), LineId>,
}

impl Named {
    fn new(profile: &mut Profile, module: Option<ModuleId>, answers: &Answers) -> Self {
        let functions = answers.functions.iter().map(|named| add_function(profile, module, named)).collect();
        let files: Vec<_> = answers.files.iter().map(|file| profile.strings.intern(file)).collect();
        let stated = answers.places.iter().filter_map(|frames| frames.last()?.line);
        let lines = stated.map(|(file, line)| {
            let id = profile.lines.intern(Line { file: files[file], line });
            ((file, line), id)
        });
        Self { functions, lines: lines.collect() }
    }

    fn source(&self, answers: &Answers, at: usize) -> Source {
        let frames = &answers.places[at];
        Source {
            function: frames.first().map(|frame| self.functions[frame.function]),
            line: frames.last().and_then(|frame| self.lines.get(&frame.line?).copied()),
        }
    }
}

fn add_function(profile: &mut Profile, module: Option<ModuleId>, named: &NamedFunction) -> FunctionId {
    let function = Function {
        name: profile.strings.intern(&named.name),
        linkage_name: profile.strings.intern(&named.linkage_name),
        module,
        file: profile.strings.intern(&named.file),
        line: named.line,
        address: named.start.map(treering_profile::StatedAddress),
        kind: named.kind,
    };
    profile.functions.intern(function)
}

/// Gives blocks their functions, and divides blocks that reach into another one.
fn divide(code: &mut CodeCounts, source: &impl Fn(CodeAddress) -> Source) {
    let mut blocks: Vec<BasicBlock> = Vec::with_capacity(code.blocks.len());
    let mut parts = Vec::with_capacity(code.blocks.len());
    for block in &code.blocks {
        let first = blocks.len();
        let mut lengths = Vec::new();
        let (mut start, mut function) = (block.start, source(block.start).function);
        for (at, length) in block.places() {
            let here = source(at).function;
            if here != function {
                blocks.push(BasicBlock { start, lengths: std::mem::take(&mut lengths).into(), function });
                (start, function) = (at, here);
            }
            lengths.push(length);
        }
        blocks.push(BasicBlock { start, lengths: lengths.into(), function });
        parts.push(first..blocks.len());
    }
    let rows = code.executions.iter().flat_map(|row| {
        let parts = parts[row.block.index()].clone();
        parts.map(|part| BlockExecutions { block: BlockId::from_usize(part), ..*row })
    });
    code.executions = rows.collect();
    // Blocks that share bytes may be out of order now.
    let mut ordered: Vec<(usize, BasicBlock)> = blocks.into_iter().enumerate().collect();
    ordered.sort_by_key(|(_, block)| block.start);
    let mut moved = vec![BlockId::new(0); ordered.len()];
    for (to, (from, _)) in ordered.iter().enumerate() {
        moved[*from] = BlockId::from_usize(to);
    }
    code.executions.iter_mut().for_each(|row| row.block = moved[row.block.index()]);
    code.blocks = ordered.into_iter().map(|(_, block)| block).collect();
}

/// Charges every function's node with the instructions of its blocks, and their lines.
fn add_costs(profile: &mut Profile, source: &impl Fn(CodeAddress) -> Source) {
    let metric = profile.add_metric(Metric::exact(INSTRUCTIONS, Unit::Count));
    let code = std::mem::take(&mut profile.code);
    for row in &code.executions {
        let block = &code.blocks[row.block.index()];
        let root = profile.threads[row.thread.index()].root;
        let node = block.function.map_or(root, |function| profile.tree.child(root, function, None));
        profile.tree.add_self_cost(metric, node, row.instructions_executed(block));
    }
    profile.code = code;
    add_line_costs(profile, metric, &|at| source(at).line);
    debug_assert_eq!(profile.run_cost(metric), profile.code.block_instructions());
}

/// Charges the lines of the functions' nodes with the instructions that have one by `line`.
pub(crate) fn add_line_costs(
    profile: &mut Profile,
    metric: MetricId,
    line: &impl Fn(CodeAddress) -> Option<LineId>,
) {
    let mut lines: HashMap<(NodeId, LineId), u64> = HashMap::new();
    let code = std::mem::take(&mut profile.code);
    for row in &code.executions {
        let block = &code.blocks[row.block.index()];
        let root = profile.threads[row.thread.index()].root;
        let mut known = block.places().filter_map(|(at, _)| line(at)).peekable();
        while let Some(line) = known.next() {
            let mut instructions = 1_u64;
            while known.next_if_eq(&line).is_some() {
                instructions += 1;
            }
            let node = block.function.map_or(root, |function| profile.tree.child(root, function, None));
            let cost = lines.entry((node, line)).or_default();
            *cost = cost.saturating_add(row.executions.saturating_mul(instructions));
        }
    }
    profile.code = code;
    let costs = lines.into_iter().map(|((node, line), cost)| LineCost { node, line, metric, cost });
    profile.line_costs.extend(costs);
    profile.compact_line_costs();
}

/// Caller, callee and line of the call.
type Called = (FunctionId, FunctionId, Option<LineId>);

/// An arc for every caller, callee and line of the call.
pub(crate) fn arcs(profile: &Profile, source: &impl Fn(CodeAddress) -> Source) -> Vec<Arc> {
    let branches = profile.code.branches.iter();
    let mut calls: Vec<(Called, u64)> =
        branches.filter_map(|branch| Some((arc(profile, branch, source)?, branch.count))).collect();
    calls.sort_unstable();
    calls.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 = kept.1.saturating_add(if same { next.1 } else { 0 });
        same
    });
    let arcs = calls.into_iter().map(|((caller, callee, call_site), calls)| Arc {
        caller,
        callee,
        call_site,
        calls,
        total_costs: Vec::new(),
    });
    arcs.collect()
}

/// Caller, callee and call site, if a branch is a call of a function.
fn arc(profile: &Profile, branch: &BranchCount, source: &impl Fn(CodeAddress) -> Source) -> Option<Called> {
    if branch.count == 0 {
        return None;
    }
    let target = branch.target?;
    let callee = source(target).function?;
    if matches!(branch.kind, BranchKind::Start | BranchKind::Signal) {
        return Some((Profile::ROOT, callee, None));
    }
    let from = source(branch.site?);
    let caller = from.function?;
    let starts = profile.functions[callee].address == Some(target.address);
    let is_call = branch.kind.is_call() || (branch.kind.is_jump() && caller != callee && starts);
    is_call.then_some((caller, callee, from.line))
}
