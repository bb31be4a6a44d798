//! Basic blocks as in static control flow, out of the overlapping blocks of a translator.
//!
//! A translator counts blocks that start wherever execution arrived. [`recover`] reads the
//! instructions of all of them, adds up how often each thread executed each instruction, and divides
//! the code anew: at the targets of branches, behind branches, and where counts differ. What a block
//! costs and how often its branches were taken are exact sums then. The counts obey the law of flow
//! that [`treering_profile::CodeCounts`] states, and how often a conditional branch was taken is
//! worked out from it where nobody counted it.
//!
//! A function of counts and bytes: it reads no file and no process.

mod counts;
mod flow;
mod instructions;

use std::collections::{BTreeMap, BTreeSet};

use treering_profile::{
    BasicBlock, BlockExecutions, BlockId, BranchCount, BranchKind, CodeAddress, CodeCounts, ThreadId,
    TranslatedBlock,
};
use treering_x86::disassembly::Flow;

use counts::Counts;
use instructions::Instructions;

/// Gives bytes of code: at least one, and up to as many as are asked for, from an address on.
/// Nothing where the code cannot be read.
pub type ReadCode<'a> = dyn FnMut(CodeAddress, usize) -> Option<Vec<u8>> + 'a;

/// What could not be done exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Translated blocks whose bytes could not be read, or were others than those executed. Their
    /// executions are kept, each block as a whole, with instructions of made-up lengths.
    pub unreadable_blocks: usize,
    /// Conditional branches whose taken count nobody counted and the law of flow leaves open.
    pub unknown_branches: usize,
    /// Counts that came out below 0 and were taken as 0: corrections that fit no block.
    pub negative_counts: usize,
}

/// Replaces translated blocks and their corrections by basic blocks.
///
/// Bytes are taken from [`CodeCounts::bytes`] first, else from `read`. Does nothing where there are no
/// translated blocks. Basic blocks that are there already are kept as they are, so they must be
/// of other code.
pub fn recover(code: &mut CodeCounts, read: &mut ReadCode<'_>) -> Recovered {
    if code.translated.is_empty() {
        return Recovered::default();
    }
    let kept = kept_bytes(code);
    let mut read = |at: CodeAddress, length: usize| kept.read(at, length).or_else(|| read(at, length));
    let (instructions, unreadable) = Instructions::read(&code.translated, &mut read);
    let mut recovered = Recovered { unreadable_blocks: unreadable.len(), ..Recovered::default() };
    let counts = thread_counts(code, &instructions, &mut recovered);
    let derived = flow::branches(code, &instructions, &counts);
    recovered.unknown_branches = derived.unknown;
    code.branches.extend(derived.branches);
    let leaders = leaders(code, &instructions, &counts);
    add_blocks(code, &instructions, &counts, &leaders);
    add_unreadable(code, &unreadable);
    code.translated = Vec::new();
    code.partials = Vec::new();
    sort_blocks(code);
    code.compact();
    recovered
}

fn thread_counts(code: &CodeCounts, instructions: &Instructions, recovered: &mut Recovered) -> Counts {
    let mut parts: BTreeMap<ThreadId, Vec<(CodeAddress, u32, i64)>> = BTreeMap::new();
    // As 64-bit numbers wrap, counts beyond 2^63 come out right as long as no correction is larger.
    for row in code.translated.iter().filter(|row| row.executions > 0) {
        let part = (row.start, row.instructions, row.executions.cast_signed());
        parts.entry(row.thread).or_default().push(part);
    }
    for row in &code.partials {
        parts.entry(row.thread).or_default().push((row.start, row.instructions, row.executions));
    }
    let mut counts = Counts::new(instructions.len());
    for (thread, parts) in parts {
        recovered.negative_counts += counts.add(thread, |row| {
            for (start, length, executions) in parts {
                row.add(instructions.run(start).take(length as usize), executions);
            }
        });
    }
    counts
}

/// The instructions at which a block must begin, other than behind a branch.
fn leaders(code: &CodeCounts, instructions: &Instructions, counts: &Counts) -> Vec<bool> {
    let mut leaders = vec![false; instructions.len()];
    let resumed = |kind| matches!(kind, BranchKind::SignalReturn);
    let targets = code.branches.iter().filter(|row| row.count > 0 && !resumed(row.kind));
    let targets = targets.filter_map(|row| instructions.find(row.target?));
    for at in targets.chain(instructions.direct_targets()) {
        leaders[at] = true;
    }
    // Two instructions that share bytes may both lead to the same next one.
    for at in (0..instructions.len()).filter(|&at| instructions.leads_here(at) > 1) {
        leaders[at] = true;
    }
    counts.each(|_, row, executed| {
        for &(at, count) in executed {
            let at = at as usize;
            if let Some(next) = instructions.next(at) {
                leaders[next] |= row[next] != count;
            }
            // One that was executed behind one that was not; of two before it was said above.
            leaders[at] |= instructions.leads_here(at) == 1
                && instructions.previous(at).is_some_and(|before| row[before] != count);
        }
    });
    leaders
}

fn add_blocks(code: &mut CodeCounts, instructions: &Instructions, counts: &Counts, leaders: &[bool]) {
    // By instruction, the block that begins there, plus one.
    let mut block_at = vec![0_u32; instructions.len()];
    let mut done = vec![false; instructions.len()];
    let mut lengths = Vec::new();
    let begins = |at: usize| leaders[at] || instructions.leads_here(at) == 0;
    let first = (0..instructions.len()).filter(|&at| begins(at));
    for at in first.chain(0..instructions.len()) {
        if done[at] {
            continue;
        }
        lengths.clear();
        lengths.push(instructions.length(at));
        done[at] = true;
        let mut last = at;
        while let Some(next) = instructions.falls_into(last).filter(|&next| !leaders[next] && !done[next]) {
            lengths.push(instructions.length(next));
            done[next] = true;
            last = next;
        }
        let lengths = lengths.as_slice().into();
        code.blocks.push(BasicBlock { start: instructions.place(at), lengths, function: None });
        block_at[at] = code.blocks.len() as u32;
    }
    counts.each(|thread, _, executed| {
        let blocks = executed.iter().filter_map(|&(at, executions)| {
            let block = BlockId::new(block_at[at as usize].checked_sub(1)?);
            Some(BlockExecutions { thread, block, executions })
        });
        code.executions.extend(blocks);
    });
}

/// Keeps blocks whose instructions are not known, each as one block.
fn add_unreadable(code: &mut CodeCounts, unreadable: &BTreeSet<(CodeAddress, u32, u32)>) {
    for &(start, length, instructions) in unreadable {
        let same = |row: &&TranslatedBlock| {
            (row.start, row.length, row.instructions) == (start, length, instructions)
        };
        let executed = code.translated.iter().filter(same).filter(|row| row.executions > 0);
        let rows: Vec<_> = executed.map(|row| (row.thread, row.executions)).collect();
        if rows.is_empty() || instructions == 0 {
            continue;
        }
        let block = BlockId::from_usize(code.blocks.len());
        let lengths = shared_out(length, instructions);
        code.blocks.push(BasicBlock { start, lengths, function: None });
        let rows = rows.into_iter().map(|(thread, executions)| BlockExecutions { thread, block, executions });
        code.executions.extend(rows);
    }
}

/// That many lengths that add up to `length`, as far as 1 to 15 bytes each can.
fn shared_out(length: u32, instructions: u32) -> Box<[u8]> {
    let length = length.clamp(instructions, instructions.saturating_mul(15));
    let share = |at: u32| {
        let up_to = |count: u32| u64::from(length) * u64::from(count) / u64::from(instructions);
        (up_to(at + 1) - up_to(at)) as u8
    };
    (0..instructions).map(share).collect()
}

/// Sorts blocks by address, and leaves out those that nobody executed.
fn sort_blocks(code: &mut CodeCounts) {
    let mut executed = vec![false; code.blocks.len()];
    code.executions.iter().for_each(|row| executed[row.block.index()] = true);
    let mut moved = vec![BlockId::new(0); code.blocks.len()];
    let all = std::mem::take(&mut code.blocks).into_iter().enumerate();
    let mut kept: Vec<(usize, BasicBlock)> = all.filter(|(at, _)| executed[*at]).collect();
    kept.sort_by_key(|(_, block)| block.start);
    for (to, (from, _)) in kept.iter().enumerate() {
        moved[*from] = BlockId::from_usize(to);
    }
    code.blocks = kept.into_iter().map(|(_, block)| block).collect();
    for row in &mut code.executions {
        row.block = moved[row.block.index()];
    }
}

/// Bytes that the profile itself has.
struct KeptBytes(Vec<(CodeAddress, Box<[u8]>)>);

fn kept_bytes(code: &CodeCounts) -> KeptBytes {
    let mut kept: Vec<_> = code.bytes.iter().map(|row| (row.start, row.bytes.clone())).collect();
    kept.sort_unstable();
    KeptBytes(kept)
}

impl KeptBytes {
    fn read(&self, at: CodeAddress, length: usize) -> Option<Vec<u8>> {
        let after = self.0.partition_point(|(start, _)| *start <= at);
        // The nearest that begins before may be shorter than one that begins earlier.
        let before = self.0[..after].iter().rev().take(4);
        let found = before.filter(|(start, _)| start.space == at.space).find_map(|(start, bytes)| {
            let skipped = usize::try_from(at.address.0 - start.address.0).ok()?;
            bytes.get(skipped..).filter(|rest| !rest.is_empty())
        })?;
        Some(found[..found.len().min(length)].to_vec())
    }
}

/// The kind of branch that a direct flow is.
fn direct(flow: Flow) -> Option<(BranchKind, u64)> {
    match flow {
        Flow::Conditional(target) => Some((BranchKind::Conditional, target)),
        Flow::Jump(target) => Some((BranchKind::Jump, target)),
        Flow::Call(target) => Some((BranchKind::Call, target)),
        _ => None,
    }
}

/// A row for a branch that was worked out.
fn branch(thread: ThreadId, kind: BranchKind, site: CodeAddress, target: u64, count: u64) -> BranchCount {
    let target = CodeAddress { address: treering_profile::StatedAddress(target), ..site };
    BranchCount { thread, kind, site: Some(site), target: Some(target), count }
}
