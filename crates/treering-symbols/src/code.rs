//! Functions and lines of code whose executions were counted.

use std::collections::{BTreeMap, HashMap};

use treering_profile::{
    Arc, BasicBlock, BlockExecutions, BlockId, BranchCount, BranchKind, CodeAddress, CodeCounts, Function,
    FunctionId, Line, LineCost, LineId, Metric, ModuleId, NodeId, Profile, Unit,
};

use crate::answer::{Answers, NamedFunction};
use crate::symbolise::Resolver;
use crate::{ModuleReport, Progress};

/// Where an instruction is in the source.
#[derive(Clone, Copy, Default)]
struct Source {
    /// The function whose code it is, into which others may be inlined there.
    function: Option<FunctionId>,
    /// The line of the innermost of them.
    line: Option<LineId>,
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
    let source = |at: CodeAddress| sources.get(&at).copied().unwrap_or_default();
    divide(&mut profile.code, &source);
    let places: Vec<_> = profile.code.blocks.iter().flat_map(BasicBlock::places).collect();
    let lines: BTreeMap<_, _> = places.into_iter().map(|(at, _)| (at, source(at).line)).collect();
    profile.code.set_lines(lines);
    if profile.metrics.iter().any(|metric| metric.name == INSTRUCTIONS) {
        return reports;
    }
    add_costs(profile, &source);
    add_arcs(profile, &source);
    reports
}

/// The metric that counts executed instructions.
const INSTRUCTIONS: &str = "instructions";

fn sources(
    profile: &mut Profile,
    resolver: &Resolver<'_, '_>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> (HashMap<CodeAddress, Source>, Vec<ModuleReport>) {
    let mut places: BTreeMap<Option<ModuleId>, Vec<CodeAddress>> = BTreeMap::new();
    for (at, _) in profile.code.blocks.iter().flat_map(BasicBlock::places) {
        places.entry(profile.code.spaces[at.space].module).or_default().push(at);
    }
    let total = places.values().map(Vec::len).sum();
    let (mut sources, mut reports, mut done) = (HashMap::with_capacity(total), Vec::new(), 0);
    for (module, places) in places {
        let mut addresses: Vec<u64> = places.iter().map(|at| at.address.0).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let path = module.map_or("", |module| &profile.strings[profile.modules[module].path]).to_owned();
        progress(Progress { module: &path, done, total });
        let (answers, report) =
            resolver.resolve(module.map(|module| &profile.modules[module]), &path, &addresses);
        let found = Named::new(profile, module, &answers);
        for at in places {
            let index = addresses.binary_search(&at.address.0);
            sources
                .insert(at, index.map_or_else(|_| Source::default(), |index| found.source(&answers, index)));
            done += 1;
        }
        reports.push(report);
    }
    (sources, reports)
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
    let mut order: Vec<usize> = (0..blocks.len()).collect();
    order.sort_by_key(|&at| blocks[at].start);
    let mut moved = vec![BlockId::new(0); order.len()];
    for (to, &from) in order.iter().enumerate() {
        moved[from] = BlockId::from_usize(to);
    }
    code.executions.iter_mut().for_each(|row| row.block = moved[row.block.index()]);
    code.blocks = order.into_iter().map(|at| blocks[at].clone()).collect();
}

/// Charges every function's node with the instructions of its blocks, and their lines.
fn add_costs(profile: &mut Profile, source: &impl Fn(CodeAddress) -> Source) {
    let metric = profile.add_metric(Metric::exact(INSTRUCTIONS, Unit::Count));
    let mut lines: HashMap<(NodeId, LineId), u64> = HashMap::new();
    let code = std::mem::take(&mut profile.code);
    for row in &code.executions {
        let block = &code.blocks[row.block.index()];
        let root = profile.threads[row.thread.index()].root;
        let node = block.function.map_or(root, |function| profile.tree.child(root, function, None));
        profile.tree.add_self_cost(metric, node, row.instructions_executed(block));
        for (at, _) in block.places() {
            if let Some(line) = source(at).line {
                let cost = lines.entry((node, line)).or_default();
                *cost = cost.saturating_add(row.executions);
            }
        }
    }
    profile.code = code;
    let costs = lines.into_iter().map(|((node, line), cost)| LineCost { node, line, metric, cost });
    profile.line_costs.extend(costs);
    profile.compact_line_costs();
    debug_assert_eq!(profile.run_cost(metric), profile.code.block_instructions());
}

/// Adds an arc for every caller, callee and line of the call.
fn add_arcs(profile: &mut Profile, source: &impl Fn(CodeAddress) -> Source) {
    let mut calls: BTreeMap<(FunctionId, FunctionId, Option<LineId>), u64> = BTreeMap::new();
    for branch in &profile.code.branches {
        if let Some(arc) = arc(profile, branch, source) {
            let known = calls.entry(arc).or_default();
            *known = known.saturating_add(branch.count);
        }
    }
    for ((caller, callee, call_site), calls) in calls {
        profile.add_arc(Arc { caller, callee, call_site, calls, total_costs: Vec::new() });
    }
}

/// Caller, callee and call site, if a branch is a call of a function.
fn arc(
    profile: &Profile,
    branch: &BranchCount,
    source: &impl Fn(CodeAddress) -> Source,
) -> Option<(FunctionId, FunctionId, Option<LineId>)> {
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
