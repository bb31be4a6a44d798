//! Basic blocks as in static control flow, out of the overlapping blocks of a translator.
//!
//! A translator counts blocks that start wherever execution arrived. [`recover`] reads the instructions of all of
//! them, adds up how often each thread executed each instruction, and divides the code anew: at the targets of
//! branches, behind branches, and where counts differ. The costs of a block, and how often its branches were taken,
//! are exact sums then. The counts obey the law of flow that [`treering_profile::CodeCounts`] states. Where the
//! translator did not count how often a conditional branch was taken, that law gives the number.
//!
//! It is a function of counts and bytes: it reads no file and no process.
//!
//! ```
//! use treering_profile::CodeCounts;
//! use treering_recover::{KnownInstructions, Recovered, recover};
//!
//! // Nothing was translated, so there is nothing to recover.
//! let mut code = CodeCounts::default();
//! let recovered = recover(&mut code, KnownInstructions::default(), &mut |_, _| None);
//! assert_eq!(recovered, Recovered::default());
//! ```
#![forbid(unsafe_code)]

mod bits;
mod counts;
mod decoded;
mod flow;
mod idle;
mod instructions;
mod stretches;
mod threads;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use treering_profile::{
    BasicBlock, BlockExecutions, BlockId, BranchKind, CodeAddress, CodeCounts, Lengths, ThreadId,
};
use treering_x86::disassembly::Flow;

pub use decoded::KnownInstructions;
pub use idle::{idle_blocks, is_conditional};

use counts::Counts;
use instructions::{Block, Instructions};
use stretches::{Before, Stretches};
use threads::{Alike, Tables};

/// Gives bytes of code: at least one, and up to as many as are asked for, from an address on.
/// Nothing where the code cannot be read.
pub type ReadCode<'a> = dyn FnMut(CodeAddress, usize) -> Option<Vec<u8>> + 'a;

/// The counts that could not be recovered exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Translated blocks whose bytes could not be read, or were others than those executed. Their
    /// executions are kept, each block as a whole, with instructions of made-up lengths.
    pub unreadable_blocks: usize,
    /// Conditional branches whose taken count was not counted and does not follow from the law of flow.
    pub unknown_branches: usize,
    /// Counts that came out below 0 and were taken as 0: corrections that fit no block.
    pub negative_counts: usize,
}

/// Replaces translated blocks and their corrections by basic blocks.
///
/// Of blocks that are not `known`, bytes are taken from [`CodeCounts::bytes`] first, else from `read`.
/// Does nothing where there are no translated blocks. Basic blocks that are there already are kept as
/// they are, so they must be of other code.
pub fn recover(code: &mut CodeCounts, known: KnownInstructions, read: &mut ReadCode<'_>) -> Recovered {
    if code.translated.is_empty() {
        return Recovered::default();
    }
    let kept = kept_bytes(code);
    let mut read = |at: CodeAddress, length: usize| {
        kept.read(at, length).or_else(|| read(at, kept.up_to_next(at, length)))
    };
    let (mut tables, alike) = Tables::take(code);
    let (instructions, mut blocks) = Instructions::of(&tables.translated, known, &mut read);
    let unreadable = std::mem::take(&mut blocks.unreadable);
    let mut recovered = Recovered { unreadable_blocks: unreadable.len(), ..Recovered::default() };
    let mut stretches = Stretches::new(&tables, instructions, blocks);
    let counts = thread_counts(&tables, &alike, &stretches, &mut recovered);
    // They may take much memory, and the following steps take more.
    stretches.translated = Vec::new();
    keep_rows_of(&mut tables, &unreadable);
    let derived = flow::branches(&tables, &stretches, &counts);
    recovered.unknown_branches = derived.unknown;
    let leaders = leaders(&tables, &stretches, &counts);
    derived.add_to(&mut tables, &stretches);
    add_blocks(&mut tables, &stretches, &counts, &leaders);
    add_unreadable(&mut tables, &unreadable);
    // They were for the branches alone.
    tables.branches.retain(|row| !row.is_seen_return());
    sort_blocks(code, &mut tables);
    tables.put(code, &alike);
    code.compact();
    recovered
}

fn thread_counts(code: &Tables, alike: &Alike, stretches: &Stretches, recovered: &mut Recovered) -> Counts {
    let translated = by_thread(&code.translated, |row| row.thread);
    let partials = by_thread(&code.partials, |row| row.thread);
    let threads: BTreeSet<ThreadId> = translated.keys().chain(partials.keys()).copied().collect();
    let mut counts = Counts::new(stretches.len());
    for thread in threads {
        let rows = |of: &RowsOfThreads| of.get(&thread).cloned().into_iter().flatten().flatten();
        // As 64-bit numbers wrap, counts beyond 2^63 come out right as long as no correction is larger.
        let blocks = rows(&translated).map(|at| {
            let row = &code.translated[at];
            let start = stretches.starts[stretches.translated[at] as usize];
            (start, row.instructions, row.executions.cast_signed())
        });
        let partials = rows(&partials).map(|at| {
            let row = &code.partials[at];
            (stretches.partials[at], row.instructions, row.executions)
        });
        let negative = counts.add(thread, |row| {
            for (start, instructions, executions) in blocks.chain(partials) {
                let Some(start) = start.filter(|_| executions != 0) else { continue };
                row.add(stretches.run(start, instructions), executions);
            }
        });
        let negative: usize = negative.into_iter().map(|at| stretches.lengths(at).len()).sum();
        recovered.negative_counts += negative * alike.count(thread);
    }
    counts
}

/// The rows of each thread, which mostly follow each other.
type RowsOfThreads = BTreeMap<ThreadId, Vec<Range<usize>>>;

fn by_thread<T>(rows: &[T], thread: impl Fn(&T) -> ThreadId) -> RowsOfThreads {
    let (mut threads, mut first) = (RowsOfThreads::new(), 0);
    for part in rows.chunk_by(|one, other| thread(one) == thread(other)) {
        threads.entry(thread(&part[0])).or_default().push(first..first + part.len());
        first += part.len();
    }
    threads
}

/// Leaves out the rows of blocks that could be read.
fn keep_rows_of(code: &mut Tables, unreadable: &BTreeSet<Block>) {
    code.translated.retain(|row| unreadable.contains(&(row.start, row.length, row.instructions)));
    code.translated.shrink_to_fit();
}

/// The stretches at which a block must begin, other than behind a branch.
fn leaders(code: &Tables, stretches: &Stretches, counts: &Counts) -> Vec<bool> {
    let mut leaders = vec![false; stretches.len()];
    let rows = code.branches.iter().zip(&stretches.stated);
    let rows = rows.filter(|(row, _)| row.count > 0 && !matches!(row.kind, BranchKind::SignalReturn));
    for at in rows.filter_map(|(_, (_, target))| *target) {
        leaders[at as usize] = true;
    }
    for at in 0..stretches.len() {
        stretches.direct_target(at).into_iter().for_each(|target| leaders[target] = true);
        leaders[at] |= stretches.before(at) == Before::Several;
    }
    counts.each(|_, row, executed| {
        for &(at, count) in executed {
            let at = at as usize;
            if let Some(next) = stretches.next(at) {
                leaders[next] |= row[next] != count;
            }
            // One that was executed behind one that was not; of two before it was said above.
            if let Before::One(before) = stretches.before(at) {
                leaders[at] |= row[before] != count;
            }
        }
    });
    leaders
}

fn add_blocks(code: &mut Tables, stretches: &Stretches, counts: &Counts, leaders: &[bool]) {
    // By stretch, the first of its block.
    let mut block_of: Vec<Option<u32>> = vec![None; stretches.len()];
    let begins = |at: usize| leaders[at] || stretches.before(at) == Before::None;
    let first = (0..stretches.len()).filter(|&at| begins(at));
    for start in first.chain(0..stretches.len()) {
        let mut next = Some(start);
        while let Some(at) = next.filter(|&at| block_of[at].is_none()) {
            block_of[at] = Some(start as u32);
            next = stretches.falls_into(at).filter(|&next| !leaders[next]);
        }
    }
    let mut executed = vec![false; stretches.len()];
    counts.threads().flat_map(|(_, rows)| rows).for_each(|&(at, _)| executed[at as usize] = true);
    // By stretch, the block that begins there, plus one.
    let mut block_at = vec![0_u32; stretches.len()];
    let blocks = (0..stretches.len()).filter(|&at| block_of[at] == Some(at as u32) && executed[at]).count();
    code.blocks.reserve_exact(blocks);
    let rows = counts.threads().flat_map(|(_, rows)| rows);
    code.executions.reserve(rows.filter(|(at, _)| block_of[*at as usize] == Some(*at)).count());
    let mut lengths = Vec::new();
    for start in 0..stretches.len() {
        let within = |at: &usize| block_of[*at] == Some(start as u32);
        if !within(&start) || !executed[start] {
            continue;
        }
        let all = std::iter::successors(Some(start), |&at| stretches.falls_into(at).filter(within));
        lengths.clear();
        all.for_each(|at| lengths.extend_from_slice(stretches.lengths(at)));
        let lengths = lengths.as_slice().into();
        code.blocks.push(BasicBlock { start: stretches.start(start), lengths, function: None });
        block_at[start] = code.blocks.len() as u32;
    }
    for (thread, executed) in counts.threads() {
        let blocks = executed.iter().filter_map(|&(at, executions)| {
            let block = BlockId::new(block_at[at as usize].checked_sub(1)?);
            Some(BlockExecutions { thread, block, executions })
        });
        code.executions.extend(blocks);
    }
}

/// Keeps blocks whose instructions are not known, each as one block.
fn add_unreadable(code: &mut Tables, unreadable: &BTreeSet<Block>) {
    let mut executed: BTreeMap<Block, Vec<(ThreadId, u64)>> = BTreeMap::new();
    for row in code.translated.iter().filter(|row| row.executions > 0 && row.instructions > 0) {
        let block = (row.start, row.length, row.instructions);
        if unreadable.contains(&block) {
            executed.entry(block).or_default().push((row.thread, row.executions));
        }
    }
    for ((start, length, instructions), rows) in executed {
        let block = BlockId::from_usize(code.blocks.len());
        let lengths = shared_out(length, instructions);
        code.blocks.push(BasicBlock { start, lengths, function: None });
        let rows = rows.into_iter().map(|(thread, executions)| BlockExecutions { thread, block, executions });
        code.executions.extend(rows);
    }
}

/// As many lengths as there are instructions, which add up to `length`, as far as 1 to 15 bytes each can.
fn shared_out(length: u32, instructions: u32) -> Lengths {
    let length = length.clamp(instructions, instructions.saturating_mul(15));
    let share = |at: u32| {
        let up_to = |count: u32| u64::from(length) * u64::from(count) / u64::from(instructions);
        (up_to(at + 1) - up_to(at)) as u8
    };
    (0..instructions).map(share).collect()
}

/// Sorts blocks by address, and leaves out those that no thread executed; `counted` has the executions of earlier blocks.
fn sort_blocks(counted: &mut CodeCounts, code: &mut Tables) {
    let mut executed = vec![false; code.blocks.len()];
    let before = counted.executions.distinct().map(|(row, _)| row);
    before.chain(code.executions.iter().copied()).for_each(|row| executed[row.block.index()] = true);
    if executed.iter().all(|executed| *executed) && code.blocks.is_sorted_by_key(|block| block.start) {
        return;
    }
    let mut moved = vec![BlockId::new(0); code.blocks.len()];
    let all = std::mem::take(&mut code.blocks).into_iter().enumerate();
    let mut kept: Vec<(usize, BasicBlock)> = all.filter(|(at, _)| executed[*at]).collect();
    kept.sort_by_key(|(_, block)| block.start);
    for (to, (from, _)) in kept.iter().enumerate() {
        moved[*from] = BlockId::from_usize(to);
    }
    code.blocks = kept.into_iter().map(|(_, block)| block).collect();
    let to_its_place = |row: &mut BlockExecutions| row.block = moved[row.block.index()];
    code.executions.iter_mut().for_each(to_its_place);
    counted.executions.rewrite(|rows| rows.iter_mut().for_each(to_its_place));
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

    /// `length` bytes, or as many as there are up to the next ones that are kept.
    fn up_to_next(&self, at: CodeAddress, length: usize) -> usize {
        let next = self.0.get(self.0.partition_point(|(start, _)| *start <= at));
        let space = next.filter(|(start, _)| start.space == at.space);
        let between = space.and_then(|(start, _)| usize::try_from(start.address.0 - at.address.0).ok());
        between.map_or(length, |between| between.min(length))
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
