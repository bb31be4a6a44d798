//! Blocks of instructions and how often they were executed.

use smallvec::SmallVec;

use crate::{BlockId, CodeAddress, FunctionId, OfThread, ThreadId};

/// A run of instructions as a translator made it, and how often a thread entered it.
///
/// It begins where execution arrived and ends at the first instruction that may lead elsewhere,
/// or earlier. Translated blocks may overlap, begin in the middle of others, and even in the middle
/// of an instruction of others (a jump over a `lock` prefix). One that was translated and never
/// entered, or translated anew, may be stated with 0 or stated again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TranslatedBlock {
    /// The thread that executed it.
    pub thread: ThreadId,
    /// Its first instruction.
    pub start: CodeAddress,
    /// How many bytes its instructions have in all.
    pub length: u32,
    /// How many instructions it has.
    pub instructions: u32,
    /// How often it was entered. Where it was not left at its end, [`PartialCount`]s say so.
    pub executions: u64,
}

impl TranslatedBlock {
    /// How many instructions its executions are, if all ran to the end; stops at 2^64 − 1.
    pub fn instructions_executed(&self) -> u64 {
        self.executions.saturating_mul(u64::from(self.instructions))
    }
}

impl OfThread for TranslatedBlock {
    fn thread(&self) -> ThreadId {
        self.thread
    }

    fn with_thread(self, thread: ThreadId) -> Self {
        Self { thread, ..self }
    }
}

/// A part of a translated block that was executed more often, or less often, than the executions
/// of blocks say.
///
/// When a signal or a fault stops a block that has been counted, the instructions from the one
/// that did not run up to the end of the block count −1. When it stops a block that counts
/// itself at its end, those that did run count +1. In both cases a
/// [`BranchKind::Signal`](crate::BranchKind::Signal) says where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialCount {
    /// The thread that executed it.
    pub thread: ThreadId,
    /// The first instruction of the part.
    pub start: CodeAddress,
    /// How many bytes the part's instructions have in all.
    pub length: u32,
    /// How many instructions the part has.
    pub instructions: u32,
    /// The addition to the count of each of these instructions.
    pub executions: i64,
}

impl PartialCount {
    /// How many instructions it adds or takes away; stops at the ends of the range.
    pub fn instructions_executed(&self) -> i64 {
        self.executions.saturating_mul(i64::from(self.instructions))
    }
}

/// The number of bytes of each instruction of a block. Those of most blocks lie in place, without memory of their own.
pub type Lengths = SmallVec<[u8; 16]>;

/// A basic block: instructions that follow each other, entered only at the first and left only
/// at the last.
///
/// An instruction is in one block at most. Where two blocks share bytes, one has an instruction
/// that begins within an instruction of the other. A signal that did not return splits a
/// block, so that all instructions of a block have been executed equally often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BasicBlock {
    /// Its first instruction.
    pub start: CodeAddress,
    /// The number of bytes of each instruction, 1 to 15.
    pub lengths: Lengths,
    /// The function that it belongs to; nothing until it is resolved.
    pub function: Option<FunctionId>,
}

impl BasicBlock {
    /// How many instructions it has.
    pub fn instructions(&self) -> usize {
        self.lengths.len()
    }

    /// How many bytes it has.
    pub fn length(&self) -> u64 {
        self.lengths.iter().map(|&length| u64::from(length)).sum()
    }

    /// The place of each instruction with its length in bytes.
    pub fn places(&self) -> impl Iterator<Item = (CodeAddress, u8)> + '_ {
        let mut next = self.start;
        self.lengths.iter().map(move |&length| {
            let here = next;
            next = here.offset(length.into());
            (here, length)
        })
    }

    /// The place behind its last instruction, where execution falls through to.
    pub fn end(&self) -> CodeAddress {
        self.start.offset(self.length())
    }

    /// The place of its last instruction, from which its branches leave.
    pub fn last(&self) -> CodeAddress {
        let last = self.lengths.last().copied().unwrap_or(0);
        self.start.offset(self.length() - u64::from(last))
    }
}

/// How often a thread executed a basic block: every instruction of it, from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockExecutions {
    /// The thread.
    pub thread: ThreadId,
    /// The block.
    pub block: BlockId,
    /// How often.
    pub executions: u64,
}

impl BlockExecutions {
    /// How many instructions that are; stops at 2^64 − 1.
    pub fn instructions_executed(&self, block: &BasicBlock) -> u64 {
        self.executions.saturating_mul(block.instructions() as u64)
    }
}

impl OfThread for BlockExecutions {
    fn thread(&self) -> ThreadId {
        self.thread
    }

    fn with_thread(self, thread: ThreadId) -> Self {
        Self { thread, ..self }
    }
}
