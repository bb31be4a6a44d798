//! Counts of code by address: those of programs whose instructions were all counted.
//!
//! A collector that counts executions rather than sampling them states what it saw in
//! [`CodeCounts`], which stands beside the tree in [`Profile::code`](crate::Profile::code). It knows
//! addresses only. There are two stages, and both use the same [`BranchCount`]s:
//!
//! 1. *As translated.* [`TranslatedBlock`]s start where execution arrived, so several may cover
//!    one instruction; [`PartialCount`]s correct them where a signal or a fault left a block
//!    halfway. The count of an instruction is the sum over all that cover it.
//! 2. *As recovered.* [`BasicBlock`]s in the sense of static control flow, each instruction in one
//!    of them, with [`BlockExecutions`] for every thread.
//!
//! # The law of flow
//!
//! For every instruction address `x` of a thread, with counts of branches by
//! [`BranchKind`]:
//!
//! - arrivals at `x` = fall-throughs into `x` + branches, starts and signal returns to `x`;
//! - executions of `x` = arrivals at `x` − signals at `x`;
//! - executions of `x` = fall-throughs out of `x` + taken branches out of `x` + ends at `x`.
//!
//! Fall-throughs are not stored: they are what is left over. So a conditional branch needs its
//! taken count only, and what was not taken is executions − taken. An instruction that repeats
//! itself (`rep movsb`) is executed once, however often it repeats.
//!
//! Costs follow from the counts: the cost of a block in the metric `instructions` is its number of
//! instructions times its executions, and the self cost of a function the sum over its blocks.
//! Arcs are the branches of kind call, and jumps that lead from one function into another (tail
//! calls, linkage stubs); costs of arcs are not counted, so they are left out, and analysis
//! apportions them.
//!
//! # Example
//!
//! A loop of three instructions is entered at its second and goes round four times: `0x10 inc`
//! (3 bytes), `0x13 cmp` (2), `0x15 jne 0x10` (2). A translator that follows execution makes a
//! block from 0x13 on first, and one from 0x10 on when the branch is taken. They overlap.
//!
//! ```
//! use treering_profile::*;
//!
//! let mut profile = Profile::new(RecursionRule::Full);
//! let thread = profile.add_single_thread("demo");
//! let code = &mut profile.code;
//! let space = code.spaces.intern(CodeSpace { module: None, generation: 0 });
//! let at = |address| CodeAddress { space, address: StatedAddress(address) };
//! let entry = TranslatedBlock { thread, start: at(0x13), length: 4, instructions: 2, executions: 1 };
//! let around = TranslatedBlock { thread, start: at(0x10), length: 7, instructions: 3, executions: 4 };
//! code.translated = vec![entry, around].into();
//! code.branches = ThreadRows::from(vec![
//!     BranchCount { thread, kind: BranchKind::Start, site: None, target: Some(at(0x13)), count: 1 },
//!     BranchCount {
//!         thread,
//!         kind: BranchKind::Conditional,
//!         site: Some(at(0x15)),
//!         target: Some(at(0x10)),
//!         count: 4,
//!     },
//! ]);
//! // `cmp` and `jne` ran 5 times each and `inc` 4 times: 14 instructions. The branch was taken 4
//! // of 5 times, so what follows the loop was reached once.
//! assert_eq!(code.translated_instructions(), 14);
//! assert_eq!(profile.validate(), Ok(()));
//! ```

mod block;
mod branch;
mod join;
mod modelled;
mod space;
mod thread_rows;
mod uncounted;

pub use block::{BasicBlock, BlockExecutions, Lengths, PartialCount, TranslatedBlock};
pub use branch::{BranchCount, BranchKind};
pub use modelled::{ModelledCount, ModelledEvent};
pub use space::{CodeAddress, CodeBytes, CodeLine, CodeSpace};
pub use thread_rows::{OfThread, ThreadRows};
pub use uncounted::{Uncounted, UncountedReason};

pub(crate) use join::{Moved, Parts};

use crate::{CodeSpaceId, Interner, LineId, Profile};

/// Counts of code by address. Empty for profiles of collectors that do not count code.
///
/// Tables, in no order unless said otherwise; equal keys may occur more than once, and their
/// counts add up.
#[derive(Clone, Debug, Default)]
pub struct CodeCounts {
    /// The spaces that addresses are in.
    pub spaces: Interner<CodeSpaceId, CodeSpace>,
    /// The bytes of code that no file holds: of JIT compilers and of the vDSO. Bytes of files are
    /// not kept, as the files can be read again.
    pub bytes: Vec<CodeBytes>,
    /// Blocks as a translator executed them; empty once they are recovered.
    pub translated: ThreadRows<TranslatedBlock>,
    /// Corrections to `translated`; empty once they are recovered.
    pub partials: Vec<PartialCount>,
    /// Basic blocks, sorted by [`BasicBlock::start`]; empty until they are recovered.
    pub blocks: Vec<BasicBlock>,
    /// How often each thread executed each of `blocks`.
    pub executions: ThreadRows<BlockExecutions>,
    /// Where control went, other than to the next instruction.
    ///
    /// A branch that is not here was not counted. Direct branches may be left to recovery, which works
    /// out from the law of flow what it can, as long as all jumps and calls through registers and
    /// memory are counted with their targets. Returns need not be. Once recovered, a conditional branch
    /// is here for every thread that executed it, with a count that may be 0, or for none.
    pub branches: ThreadRows<BranchCount>,
    /// Source lines of executed code, sorted by [`CodeLine::start`]; empty until they are resolved.
    pub lines: Vec<CodeLine>,
    /// Code that ran without being counted.
    pub uncounted: Vec<Uncounted>,
    /// Counts of a model of the processor; empty once it is part of the tree's costs. It is not
    /// part of files.
    pub modelled: Vec<ModelledCount>,
}

impl CodeCounts {
    /// Whether nothing was counted, and nothing is known to have run uncounted.
    pub fn is_empty(&self) -> bool {
        let rows = [self.translated.is_empty(), self.executions.is_empty(), self.branches.is_empty()];
        rows.iter().all(|&none| none) && self.partials.is_empty() && self.uncounted.is_empty()
    }

    /// How many instructions the translated blocks executed, corrections included; stops at the
    /// ends of the range of 64 bits.
    pub fn translated_instructions(&self) -> u64 {
        let whole = self.translated.distinct();
        let whole = whole.map(|(row, threads)| i128::from(row.instructions_executed()) * i128::from(threads));
        let parts = self.partials.iter().map(PartialCount::instructions_executed);
        let sum: i128 = whole.chain(parts.map(i128::from)).sum();
        sum.clamp(0, u64::MAX.into()) as u64
    }

    /// How many instructions the basic blocks executed; stops at 2^64 − 1.
    pub fn block_instructions(&self) -> u64 {
        let cost = |(row, threads): (BlockExecutions, u64)| {
            row.instructions_executed(&self.blocks[row.block.index()]).saturating_mul(threads)
        };
        self.executions.distinct().map(cost).fold(0, u64::saturating_add)
    }

    /// Takes the source lines of instructions, which are sorted by address.
    pub fn set_lines(&mut self, lines: impl IntoIterator<Item = (CodeAddress, Option<LineId>)>) {
        self.lines = join::line_rows(lines);
    }

    /// Every address that is stated anywhere.
    fn addresses(&self) -> impl Iterator<Item = CodeAddress> + '_ {
        let bytes = self.bytes.iter().map(|row| row.start);
        let translated = self.translated.distinct().map(|(row, _)| row.start);
        let partials = self.partials.iter().map(|row| row.start);
        let blocks = self.blocks.iter().map(|row| row.start);
        let branches = self.branches.distinct().flat_map(|(row, _)| [row.site, row.target]).flatten();
        let lines = self.lines.iter().map(|row| row.start);
        let uncounted = self.uncounted.iter().filter_map(|row| row.at);
        let uncounted = uncounted.chain(self.modelled.iter().map(|row| row.at));
        bytes.chain(translated).chain(partials).chain(blocks).chain(branches).chain(lines).chain(uncounted)
    }

    /// The fault of the tables as part of `profile`, if there is one.
    pub(crate) fn problem(&self, profile: &Profile) -> Option<&'static str> {
        let module = |space: &CodeSpace| space.module.is_none_or(|m| m.index() < profile.modules.len());
        let threads = profile.threads.len();
        let stated = self.translated.threads().chain(self.partials.iter().map(|row| row.thread));
        let stated = stated.chain(self.executions.threads()).chain(self.branches.threads());
        let mut stated = stated.chain(self.uncounted.iter().filter_map(|row| row.thread));
        let block = |(row, _): (BlockExecutions, u64)| row.block.index() < self.blocks.len();
        let function = |row: &BasicBlock| row.function.is_none_or(|f| f.index() < profile.functions.len());
        let line = |row: &CodeLine| row.line.is_none_or(|line| line.index() < profile.lines.len());
        let process = |row: &Uncounted| row.process.is_none_or(|p| p.index() < profile.processes.len());
        let detail = |row: &Uncounted| row.detail.index() < profile.strings.len();
        let sound = |row: &BasicBlock| row.lengths.iter().all(|length| (1..=15).contains(length));
        let checks = [
            (self.spaces.entries().iter().all(module), "the module of a code space is missing"),
            (self.addresses().all(|at| at.space.index() < self.spaces.len()), "a code space is missing"),
            (stated.all(|thread| thread.index() < threads), "the thread of a code count is missing"),
            (self.executions.distinct().all(block), "executions belong to a block that is missing"),
            (self.blocks.iter().all(function), "the function of a block is missing"),
            (self.blocks.iter().all(sound), "an instruction is longer than 15 bytes or empty"),
            (self.blocks.is_sorted_by_key(|row| row.start), "the blocks are not sorted"),
            (self.lines.iter().all(line), "the line of an address is missing"),
            (self.lines.is_sorted_by_key(|row| row.start), "the lines of addresses are not sorted"),
            (self.uncounted.iter().all(process), "the process of an uncounted part is missing"),
            (self.uncounted.iter().all(detail), "the text on an uncounted part is missing"),
        ];
        checks.into_iter().find(|(holds, _)| !holds).map(|(_, problem)| problem)
    }
}
