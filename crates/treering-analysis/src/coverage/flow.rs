//! How control went between the blocks of a function.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use treering_profile::{BranchKind, CodeAddress, CodeCounts, Piece, StatedCode, StatedFunction};

use crate::block_table::{Ways, executions};

/// An executed block.
struct FlowBlock {
    start: CodeAddress,
    end: u64,
    last: CodeAddress,
    /// The addresses of its instructions.
    places: Vec<u64>,
    executions: u64,
}

/// A jump that was taken: from where, to where, how often.
struct Jump {
    from: CodeAddress,
    to: CodeAddress,
    conditional: bool,
    count: u64,
}

/// The executed blocks of a module, and the jumps between them.
pub(super) struct ModuleFlow {
    /// Sorted by address.
    blocks: Vec<FlowBlock>,
    /// Sorted by where they left from.
    jumps: Vec<Jump>,
    /// The executions that arrive at an address other than from the block before it, returns left out: they are the call going on.
    arrivals: HashMap<CodeAddress, u64>,
    /// How often control came to the beginnings of pieces of functions, and where from.
    entries: HashMap<u64, Vec<(u64, u64)>>,
    /// Sites from which control does not go on to the next instruction.
    leaving: BTreeSet<CodeAddress>,
}

impl ModuleFlow {
    pub(super) fn of(code: &CodeCounts, stated: &StatedCode) -> Self {
        let module = stated.module;
        let pieces = stated.functions.iter().filter(|function| function.piece != Piece::default());
        let mut entries: HashMap<u64, Vec<(u64, u64)>> =
            pieces.map(|function| (function.code[0].start, Vec::new())).collect();
        let is_its = |at: CodeAddress| code.spaces[at.space].module == Some(module);
        let executed = code.blocks.iter().zip(executions(code));
        let executed = executed.filter(|(block, executions)| *executions > 0 && is_its(block.start));
        let blocks = executed.map(|(block, executions)| FlowBlock {
            start: block.start,
            end: block.end().address.0,
            last: block.last(),
            places: block.places().map(|(at, _)| at.address.0).collect(),
            executions,
        });
        let mut blocks: Vec<_> = blocks.collect();
        blocks.sort_by_key(|block| block.start.address);
        let (mut jumps, mut arrivals, mut leaving) = (BTreeMap::new(), HashMap::new(), BTreeSet::new());
        for (branch, threads) in code.branches.distinct() {
            let count = branch.count.saturating_mul(threads);
            if let Some(target) = branch.target.filter(|&target| is_its(target))
                && !matches!(branch.kind, BranchKind::Return | BranchKind::Signal | BranchKind::SignalReturn)
            {
                let known: &mut u64 = arrivals.entry(target).or_default();
                *known = known.saturating_add(count);
            }
            let Some(site) = branch.site.filter(|&site| is_its(site)) else { continue };
            let enters = branch.kind.is_jump() || branch.kind.is_call();
            if let Some(entry) = branch.target.filter(|&target| enters && is_its(target))
                && let Some(known) = entries.get_mut(&entry.address.0)
            {
                known.push((site.address.0, count));
            }
            let conditional = branch.kind == BranchKind::Conditional;
            if matches!(
                branch.kind,
                BranchKind::Jump | BranchKind::IndirectJump | BranchKind::Return | BranchKind::End
            ) {
                leaving.insert(site);
            }
            if let Some(target) = branch.target.filter(|_| branch.kind.is_jump()) {
                let known: &mut u64 = jumps.entry((site, target, conditional)).or_default();
                *known = known.saturating_add(count);
            }
        }
        let jumps =
            jumps.into_iter().map(|((from, to, conditional), count)| Jump { from, to, conditional, count });
        Self { blocks, jumps: jumps.collect(), arrivals, entries, leaving }
    }

    /// The blocks that begin in a range of addresses.
    fn blocks_in(&self, code: &std::ops::Range<u64>) -> &[FlowBlock] {
        let first = self.blocks.partition_point(|block| block.start.address.0 < code.start);
        let end = self.blocks.partition_point(|block| block.start.address.0 < code.end);
        &self.blocks[first.min(end)..end]
    }

    /// How often a piece of a function was entered from code for which `is_within` holds.
    pub(super) fn entered_from(&self, piece: &StatedFunction, is_within: impl Fn(u64) -> bool) -> u64 {
        let entries = self.entries.get(&piece.code[0].start).into_iter().flatten();
        let within = entries.filter(|(site, _)| is_within(*site)).map(|(_, count)| *count);
        within.fold(0, u64::saturating_add)
    }

    fn jumps_from(&self, site: CodeAddress) -> &[Jump] {
        let first = self.jumps.partition_point(|jump| jump.from < site);
        let end = self.jumps.partition_point(|jump| jump.from <= site);
        &self.jumps[first..end]
    }

    /// How often control went from a block to the one that begins where it ends, by itself or by a call that returned.
    fn falls_through(&self, block: &FlowBlock, next: &FlowBlock) -> u64 {
        if self.leaving.contains(&block.last) {
            return 0;
        }
        let conditional = self.jumps_from(block.last).iter().filter(|jump| jump.conditional);
        let mut conditional = conditional.peekable();
        if conditional.peek().is_some() {
            let taken = conditional.map(|jump| jump.count).fold(0, u64::saturating_add);
            return block.executions.saturating_sub(taken);
        }
        let arrived = self.arrivals.get(&next.start).copied().unwrap_or(0);
        block.executions.min(next.executions.saturating_sub(arrived))
    }
}

/// The executed code of a function.
#[derive(Default)]
pub(super) struct FunctionFlow {
    /// How often it was entered at its beginning.
    pub(super) calls: u64,
    /// How many blocks of it were executed.
    pub(super) blocks: u64,
    /// By file and line, how often control came to it.
    pub(super) lines: BTreeMap<(usize, u32), u64>,
    /// Its conditional branches whose counts are known.
    pub(super) branches: BTreeMap<u64, Ways>,
}

type Line = Option<(usize, u32)>;

/// How often control went from the end of one block to the beginning of another, both in one line. Blocks are numbered by
/// address.
struct Edge {
    from: usize,
    to: usize,
    count: u64,
}

impl Edge {
    /// Whether it goes back to where control had come from without leaving the line, of which these are all edges.
    fn goes_round(&self, all: &[Self]) -> bool {
        if self.to > self.from {
            return false;
        }
        let (mut reached, mut next) = (BTreeSet::from([self.to]), vec![self.to]);
        while let Some(block) = next.pop() {
            for edge in all.iter().filter(|edge| edge.from == block) {
                if reached.insert(edge.to) {
                    next.push(edge.to);
                }
            }
        }
        reached.contains(&self.from)
    }
}

impl FunctionFlow {
    pub(super) fn of(flow: &ModuleFlow, stated: &StatedCode, function: &StatedFunction) -> Self {
        let mut own = Self::default();
        let mut blocks: Vec<(&FlowBlock, Vec<Line>)> = Vec::new();
        for block in function.code.iter().flat_map(|range| flow.blocks_in(range)) {
            let mut lines: Vec<Line> = block.places.iter().map(|&at| stated.line(at)).collect();
            lines.dedup();
            blocks.push((block, lines));
        }
        own.blocks = blocks.len() as u64;
        let by_start: HashMap<CodeAddress, usize> =
            blocks.iter().enumerate().map(|(at, (block, _))| (block.start, at)).collect();
        for (block, lines) in &blocks {
            let each: BTreeSet<(usize, u32)> = lines.iter().copied().flatten().collect();
            for line in each {
                own.add(line, block.executions);
            }
        }
        let mut inside: HashMap<usize, u64> = HashMap::new();
        let mut within: BTreeMap<(usize, u32), Vec<Edge>> = BTreeMap::new();
        for (at, (block, _)) in blocks.iter().enumerate() {
            let next = by_start
                .get(&CodeAddress { address: treering_profile::StatedAddress(block.end), ..block.start });
            let mut edges: Vec<(usize, u64)> = Vec::new();
            if let Some(&next) = next {
                edges.push((next, flow.falls_through(block, blocks[next].0)));
            }
            for jump in flow.jumps_from(block.last) {
                edges.extend(by_start.get(&jump.to).map(|&to| (to, jump.count)));
            }
            for (to, count) in edges {
                *inside.entry(to).or_default() += count;
                if let (Some(&Some(line)), Some(&Some(next))) = (blocks[at].1.last(), blocks[to].1.first())
                    && line == next
                    && count > 0
                {
                    within.entry(line).or_default().push(Edge { from: at, to, count });
                }
            }
            own.branch(flow, block);
        }
        for (line, edges) in &within {
            own.take_edges(*line, edges);
        }
        own.calls = function.code.first().map_or(0, |first| {
            let entered =
                blocks.iter().enumerate().filter(|(_, (block, _))| block.start.address.0 == first.start);
            let entered = entered.map(|(at, (block, _))| {
                block.executions.saturating_sub(inside.get(&at).copied().unwrap_or(0))
            });
            entered.fold(0, u64::saturating_add)
        });
        own
    }

    fn add(&mut self, line: (usize, u32), executions: u64) {
        let known = self.lines.entry(line).or_default();
        *known = known.saturating_add(executions);
    }

    /// Control that stays in a line has not come to it again, unless it goes round: then the line is a loop.
    fn take_edges(&mut self, line: (usize, u32), edges: &[Edge]) {
        let within = edges.iter().filter(|edge| !edge.goes_round(edges));
        let within = within.map(|edge| edge.count).fold(0, u64::saturating_add);
        if let Some(known) = self.lines.get_mut(&line) {
            *known = known.saturating_sub(within);
        }
    }

    fn branch(&mut self, flow: &ModuleFlow, block: &FlowBlock) {
        let conditional = flow.jumps_from(block.last).iter().filter(|jump| jump.conditional);
        let mut conditional = conditional.peekable();
        if conditional.peek().is_none() {
            return;
        }
        let taken = conditional.map(|jump| jump.count).fold(0, u64::saturating_add);
        let not_taken = block.executions.saturating_sub(taken);
        let known = self.branches.entry(block.last.address.0).or_insert(Ways { taken: 0, not_taken: 0 });
        known.taken = known.taken.saturating_add(taken);
        known.not_taken = known.not_taken.saturating_add(not_taken);
    }
}
