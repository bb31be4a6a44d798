//! Functions and lines of code whose executions were counted.

use std::collections::BTreeMap;
use std::ops::Range;

use hashbrown::HashMap;
use treering_profile::{
    BasicBlock, BlockExecutions, BlockId, CodeAddress, CodeCounts, Function, FunctionId, Lengths, Line,
    LineCost, LineId, Metric, MetricId, ModuleId, NodeId, Profile, ThreadId, Unit,
};

use crate::answer::{Answers, NamedFunction};
use crate::arcs::arcs;
use crate::lazy_binding::bound;
use crate::modelled::add_modelled;
use crate::pieces::Pieces;
use crate::source_map::{Source, Sources};
use crate::symbolise::Resolver;
use crate::{ModuleReport, Progress};

/// Resolves the basic blocks of a profile, if it has any: gives them functions, dividing those that
/// reach from one function into another, and their instructions lines.
///
/// Where the tree has no costs, costs and arcs follow from the counts: the metric `instructions`,
/// with one node for each function below each thread's root, and an arc for every call; see
/// [`arcs`](crate::arcs).
pub(crate) fn resolve(
    profile: &mut Profile,
    resolver: &Resolver<'_, '_>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Vec<ModuleReport> {
    if profile.code.blocks.is_empty() {
        return Vec::new();
    }
    let mut divided = Pieces::default();
    let (sources, reports) = sources(profile, resolver, &mut divided, progress);
    divide(&mut profile.code, &sources);
    profile.code.set_lines(sources.lines());
    if profile.metrics.iter().any(|metric| metric.name == INSTRUCTIONS) {
        return reports;
    }
    add_costs(profile, &sources);
    add_modelled(profile, &sources);
    let bound = bound(profile, &sources, resolver);
    let arcs = arcs(profile, &sources, &bound, &|from, to| divided.stays(profile, from, to));
    arcs.into_iter().for_each(|arc| profile.add_arc(arc));
    reports
}

/// The metric that counts executed instructions.
pub(crate) const INSTRUCTIONS: &str = "instructions";

fn sources(
    profile: &mut Profile,
    resolver: &Resolver<'_, '_>,
    divided: &mut Pieces,
    progress: &mut dyn FnMut(Progress<'_>),
) -> (Sources, Vec<ModuleReport>) {
    let mut modules = spaces_by_module(&profile.code);
    let mut entered = entered_only(&profile.code);
    entered.keys().for_each(|module| _ = modules.entry(*module).or_default());
    let total = profile.code.blocks.iter().map(BasicBlock::instructions).sum();
    let (mut known, mut reports, mut done) = (Vec::new(), Vec::new(), 0);
    for (module, spaces) in &modules {
        let blocks = || spaces.iter().flat_map(|space| &profile.code.blocks[space.clone()]);
        let entered = entered.remove(module).unwrap_or_default();
        let (addresses, instructions) =
            (addresses(blocks(), entered), blocks().map(BasicBlock::instructions));
        let instructions: usize = instructions.sum();
        let path = module.map_or("", |module| &profile.strings[profile.modules[module].path]).to_owned();
        progress(Progress { module: &path, done, total });
        let (answers, report) =
            resolver.resolve(module.map(|module| &profile.modules[module]), &path, &addresses);
        let named = Named::new(profile, *module, &answers);
        named.functions.iter().zip(&answers.functions).for_each(|(&id, named)| divided.note(id, named));
        let runs = named.runs(&answers, &addresses);
        known.push((spaces, runs));
        reports.push(report);
        done += instructions;
    }
    let pieces = known.iter().flat_map(|(spaces, runs)| {
        spaces.iter().flat_map(|space| pieces(&profile.code.blocks[space.clone()], runs))
    });
    (Sources::new(pieces), reports)
}

/// The blocks of each module's spaces.
fn spaces_by_module(code: &CodeCounts) -> BTreeMap<Option<ModuleId>, Vec<Range<usize>>> {
    let mut modules: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let mut first = 0;
    for blocks in code.blocks.chunk_by(|one, other| one.start.space == other.start.space) {
        let module = code.spaces[blocks[0].start.space].module;
        modules.entry(module).or_default().push(first..first + blocks.len());
        first += blocks.len();
    }
    modules
}

/// Addresses in files that control went to and where no instruction was executed, by module: the first instruction
/// faulted each time.
fn entered_only(code: &CodeCounts) -> BTreeMap<Option<ModuleId>, Vec<u64>> {
    let mut entered: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    let taken = code.branches.distinct().filter(|(branch, _)| branch.count > 0);
    for target in taken.filter_map(|(branch, _)| branch.target) {
        let module = code.spaces[target.space].module;
        let after = code.blocks.partition_point(|block| block.start <= target);
        // Few blocks share bytes, and one that begins earlier may reach further.
        let near = &code.blocks[after.saturating_sub(4)..after];
        if module.is_some() && !near.iter().any(|block| target < block.end()) {
            entered.entry(module).or_default().push(target.address.0);
        }
    }
    entered
}

/// The addresses of the instructions of a module's blocks, and others, sorted, each once.
fn addresses<'a>(blocks: impl Iterator<Item = &'a BasicBlock>, others: Vec<u64>) -> Vec<u64> {
    let mut addresses: Vec<u64> =
        blocks.flat_map(|block| block.places().map(|(at, _)| at.address.0)).collect();
    addresses.extend(others);
    // Blocks that share bytes are out of order, and several spaces may be of one module.
    if !addresses.is_sorted_by(|one, other| one < other) {
        addresses.sort_unstable();
        addresses.dedup();
    }
    addresses
}

/// The code of a space, divided by `runs`: addresses, and the source from each of them on. A block is one piece if
/// all of its instructions have the same source.
fn pieces(blocks: &[BasicBlock], runs: &[(u64, Source)]) -> Vec<(CodeAddress, u64, Source)> {
    let mut pieces = Vec::with_capacity(blocks.len());
    let (mut run, mut end) = (0, 0);
    for (at, block) in blocks.iter().enumerate() {
        let (start, length) = (block.start.address.0, block.length());
        let begun = |run: usize, address| runs.get(run).is_some_and(|(start, _)| *start <= address);
        while begun(run + 1, start) {
            run += 1;
        }
        let behind = start.saturating_add(length);
        let room = blocks.get(at + 1).map_or(u64::MAX, |next| next.start.address.0).saturating_sub(start);
        // Another block may share its bytes.
        let alone = end <= start && (1..=room).contains(&length);
        if alone && !begun(run + 1, behind - 1) {
            pieces.push((block.start, length, runs[run].1));
        } else {
            let mut run = run;
            pieces.extend(block.places().map(|(at, length)| {
                while begun(run + 1, at.address.0) {
                    run += 1;
                }
                (at, length.into(), runs[run].1)
            }));
        }
        end = end.max(behind);
    }
    // Those of blocks that share bytes are out of order.
    if !pieces.is_sorted_by_key(|(at, ..)| at.address) {
        pieces.sort_by_key(|(at, ..)| at.address);
    }
    pieces
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
        let stated = answers.places.runs().filter_map(|(_, frames)| frames.last()?.line);
        let lines = stated.map(|(file, line)| {
            let id = profile.lines.intern(Line { file: files[file], line });
            ((file, line), id)
        });
        Self { functions, lines: lines.collect() }
    }

    /// Of the addresses that were asked for, the first of each run with the same answer, with what
    /// is known from there on.
    fn runs(&self, answers: &Answers, addresses: &[u64]) -> Vec<(u64, Source)> {
        let runs = answers.places.runs();
        runs.map(|(run, frames)| {
            let source = Source {
                function: frames.first().map(|frame| self.functions[frame.function]),
                line: frames.last().and_then(|frame| self.lines.get(&frame.line?).copied()),
            };
            (addresses[run.start], source)
        })
        .collect()
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
fn divide(code: &mut CodeCounts, sources: &Sources) {
    let mut whole = true;
    for block in &mut code.blocks {
        let first = sources.at(block.start);
        block.function = first.function;
        let alike = |(at, _)| sources.at(at).function == first.function;
        whole &= sources.throughout(block.start, block.end()).is_some() || block.places().all(alike);
    }
    if !whole {
        divide_blocks(code, sources);
    }
    if !code.blocks.is_sorted_by_key(|block| block.start) {
        sort_blocks(code);
    }
}

fn divide_blocks(code: &mut CodeCounts, sources: &Sources) {
    let mut blocks: Vec<BasicBlock> = Vec::with_capacity(code.blocks.len());
    let mut parts = Vec::with_capacity(code.blocks.len());
    for block in std::mem::take(&mut code.blocks) {
        let first = blocks.len();
        match sources.throughout(block.start, block.end()) {
            Some(source) => blocks.push(BasicBlock { function: source.function, ..block }),
            None => divide_block(&block, sources, &mut blocks),
        }
        parts.push(first..blocks.len());
    }
    if blocks.len() > parts.len() {
        code.executions.rewrite(|rows| {
            let divided = rows.iter().flat_map(|row| {
                let parts = parts[row.block.index()].clone();
                parts.map(|part| BlockExecutions { block: BlockId::from_usize(part), ..*row })
            });
            *rows = divided.collect();
        });
    }
    code.blocks = blocks;
}

/// Adds the parts of a block, each of one function.
fn divide_block(block: &BasicBlock, sources: &Sources, blocks: &mut Vec<BasicBlock>) {
    let mut lengths = Lengths::new();
    let (mut start, mut function) = (block.start, sources.at(block.start).function);
    for (at, length) in block.places() {
        let here = sources.at(at).function;
        if here != function {
            blocks.push(BasicBlock { start, lengths: std::mem::take(&mut lengths), function });
            (start, function) = (at, here);
        }
        lengths.push(length);
    }
    blocks.push(BasicBlock { start, lengths, function });
}

/// Sorts blocks by place: those that share bytes may be out of order once they are divided.
fn sort_blocks(code: &mut CodeCounts) {
    let mut ordered: Vec<(usize, BasicBlock)> =
        std::mem::take(&mut code.blocks).into_iter().enumerate().collect();
    ordered.sort_by_key(|(_, block)| block.start);
    let mut moved = vec![BlockId::new(0); ordered.len()];
    for (to, (from, _)) in ordered.iter().enumerate() {
        moved[*from] = BlockId::from_usize(to);
    }
    code.executions.rewrite(|rows| rows.iter_mut().for_each(|row| row.block = moved[row.block.index()]));
    code.blocks = ordered.into_iter().map(|(_, block)| block).collect();
}

/// Charges every function's node with the instructions of its blocks, and their lines.
fn add_costs(profile: &mut Profile, sources: &Sources) {
    let metric = profile.add_metric(Metric::exact(INSTRUCTIONS, Unit::Count));
    let code = std::mem::take(&mut profile.code);
    let costs = |row: &BlockExecutions, add: &mut dyn FnMut(Option<FunctionId>, u64)| {
        let block = &code.blocks[row.block.index()];
        add(block.function, row.instructions_executed(block));
    };
    for_each_thread(
        &code,
        costs,
        |_| {},
        |thread, function, cost| {
            let node = node_of(profile, thread, function);
            profile.tree.add_self_cost(metric, node, cost);
        },
    );
    profile.code = code;
    add_line_costs(profile, metric, sources);
    debug_assert_eq!(profile.run_cost(metric), profile.code.block_instructions());
}

/// The node of a function below a thread's root; the root for code of no function.
fn node_of(profile: &mut Profile, thread: ThreadId, function: Option<FunctionId>) -> NodeId {
    let root = profile.threads[thread.index()].root;
    function.map_or(root, |function| profile.tree.child(root, function, None))
}

/// Adds up costs of rows by a key, and shows the sums of every thread, in the order in which the keys come up, or as
/// `arrange` puts them. Those of threads that share their rows are added up once.
fn for_each_thread<K: Copy + Eq + std::hash::Hash>(
    code: &CodeCounts,
    costs: impl Fn(&BlockExecutions, &mut dyn FnMut(K, u64)),
    arrange: impl Fn(&mut [(K, u64)]),
    mut show: impl FnMut(ThreadId, K, u64),
) {
    let mut known: HashMap<Option<u32>, Vec<(K, u64)>> = HashMap::new();
    for thread in code.executions.threads() {
        let sums = known.entry(code.executions.list(thread)).or_insert_with(|| {
            let (mut sums, mut places) = (Vec::new(), HashMap::new());
            for row in code.executions.of(thread) {
                costs(&row, &mut |key, cost| {
                    let place = *places.entry(key).or_insert(sums.len());
                    match sums.get_mut(place) {
                        Some((_, sum)) => *sum = u64::saturating_add(*sum, cost),
                        None => sums.push((key, cost)),
                    }
                });
            }
            arrange(&mut sums);
            sums
        });
        sums.iter().for_each(|&(key, cost)| show(thread, key, cost));
    }
}

/// Charges the lines of the functions' nodes with the instructions that have one by `sources`.
pub(crate) fn add_line_costs(profile: &mut Profile, metric: MetricId, sources: &Sources) {
    if !sources.has_lines() {
        return profile.compact_line_costs();
    }
    let code = std::mem::take(&mut profile.code);
    let costs = |row: &BlockExecutions, add: &mut dyn FnMut((Option<FunctionId>, LineId), u64)| {
        let block = &code.blocks[row.block.index()];
        let mut add = |line: LineId, instructions: u64| {
            add((block.function, line), row.executions.saturating_mul(instructions));
        };
        if let Some(source) = sources.throughout(block.start, block.end()) {
            source.line.into_iter().for_each(|line| add(line, block.instructions() as u64));
            return;
        }
        let mut known = block.places().filter_map(|(at, _)| sources.at(at).line).peekable();
        while let Some(line) = known.next() {
            let mut instructions = 1_u64;
            while known.next_if_eq(&line).is_some() {
                instructions += 1;
            }
            add(line, instructions);
        }
    };
    let mut latest = None;
    for_each_thread(&code, costs, by_function, |thread, (function, line), cost| {
        let node = match latest {
            Some((of, node)) if of == (thread, function) => node,
            _ => node_of(profile, thread, function),
        };
        latest = Some(((thread, function), node));
        profile.line_costs.push(LineCost { node, line, metric, cost });
    });
    profile.code = code;
    profile.compact_line_costs();
}

/// Sorts costs of lines as their nodes are, whose order is that in which the functions come up: there may be millions in
/// all, which need no sorting then.
fn by_function(costs: &mut [((Option<FunctionId>, LineId), u64)]) {
    let mut places = HashMap::new();
    for function in costs.iter().filter_map(|((function, _), _)| *function) {
        let next = places.len();
        places.entry(function).or_insert(next);
    }
    costs.sort_unstable_by_key(|((function, line), _)| (function.map(|function| places[&function]), *line));
}
