//! Batches of blocks whose instructions are added to the tree's count at once.
//!
//! Control reaches a derived block ([`crate::emit::side_exit`]) from the block before it, and mostly continues to the
//! next one. So the first block of such a batch adds the instructions of all of them. Early exits subtract the
//! remaining blocks; entries from elsewhere add the entered block and the remaining ones. The batch's length is known
//! when all of it is written: the numbers are filled in then, before any thread runs it.

use crate::cache::tree_routines::ContextRoutines;
use crate::emit::trace_writer::TraceWriter;
use crate::linking::entry::UNKNOWN;

/// A count batch that is being written.
#[derive(Debug, Default)]
pub(crate) struct CountBatch {
    /// Where its first block holds the number of instructions to add.
    site: u64,
    members: Vec<Member>,
}

/// A block of a count batch.
#[derive(Debug)]
struct Member {
    block: u32,
    instructions: u8,
    /// Where the exit behind it holds the number of instructions to subtract, if there is an exit.
    exit: Option<u64>,
}

impl CountBatch {
    /// Whether a block can be the next one of the batch.
    fn takes(&self, block: u32, instructions: usize) -> bool {
        let all: usize = self.members.iter().map(|member| usize::from(member.instructions)).sum();
        self.members.last().is_some_and(|last| last.block + 1 == block)
            && all + instructions < usize::from(UNKNOWN)
    }

    /// The address of a count of no instructions. An exit behind a block of a batch subtracts it until the
    /// batch's length is known. Nothing outside of batches.
    pub(crate) fn first_count(&self, routines: Option<ContextRoutines>) -> Option<u64> {
        routines.filter(|_| !self.members.is_empty()).map(|routines| routines.count(0))
    }

    /// Notes where the last block's exit holds the number of instructions to subtract.
    pub(crate) fn note_exit(&mut self, exit: Option<u64>) {
        if let Some(last) = self.members.last_mut() {
            last.exit = exit;
        }
    }
}

impl TraceWriter<'_, '_> {
    /// Adds a block's instructions to the tree's count, or adds the block to the batch that is being written.
    pub(crate) fn batch_instructions(&mut self, block: u32, instructions: usize) {
        if !self.space.areas.has_trees() {
            return;
        }
        let is_next = self.block(block).derived && self.count_batch.takes(block, instructions);
        if is_next {
            self.block_mut(block).in_batch = true;
        } else {
            self.begin_count_batch(block, instructions);
        }
        self.block_mut(block).ahead = UNKNOWN;
        self.count_batch.members.push(Member { block, instructions: instructions as u8, exit: None });
    }

    /// Begins a batch: writes the addition for its first block.
    pub(crate) fn begin_count_batch(&mut self, block: u32, instructions: usize) {
        self.end_count_batch();
        let Some(routines) = self.unit().context else { return };
        let count = routines.count(instructions as u8);
        self.count_batch.site = self.emitter.write_step(0, |code| code.add_to_count(count));
        let end = self.emitter.code.here();
        let kept = self.block_mut(block);
        kept.added_from = (end - kept.entry) as u16;
    }

    /// Ends a batch: fills in the numbers, as its length is known now.
    pub(crate) fn end_count_batch(&mut self) {
        let Some(routines) = self.unit().context else { return };
        let mut ahead = 0;
        for Member { block, instructions, exit } in self.count_batch.members.drain(..).rev() {
            self.space.cache.blocks.get_mut(block).ahead = ahead;
            if let Some(exit) = exit {
                self.space.cache.units[self.emitter.unit].patch(exit, routines.count(ahead));
            }
            ahead += instructions;
        }
        if ahead != 0 {
            self.emitter.code.patch(self.count_batch.site, routines.count(ahead));
        }
    }
}
