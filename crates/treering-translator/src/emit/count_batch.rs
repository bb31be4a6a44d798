//! Batches of blocks whose instructions are added to the tree's count at once.
//!
//! Control reaches a derived block ([`crate::emit::side_exit`]) from the block before it, and mostly continues to the
//! next one. So the first block of such a batch adds the instructions of all of them. Early exits subtract the
//! remaining blocks; entries from elsewhere add the entered block and the remaining ones. The batch's length is known
//! when all of it is written: the numbers are filled in then, before any thread runs it.

use crate::address_space::AddressSpace;
use crate::cache::code_cache::CodeCache;
use crate::emit::translate::Trace;
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
}

impl AddressSpace {
    /// Adds a block's instructions to the tree's count, or adds the block to the batch that is being written.
    pub(crate) fn batch_instructions(&mut self, block: u32, instructions: usize, trace: &mut Trace) {
        if !self.areas.has_trees() {
            return;
        }
        let is_next = self.cache.blocks.get(block).derived && trace.count_batch.takes(block, instructions);
        if is_next {
            self.cache.blocks.get_mut(block).in_batch = true;
        } else {
            self.begin_count_batch(block, instructions, trace);
        }
        self.cache.blocks.get_mut(block).ahead = UNKNOWN;
        trace.count_batch.members.push(Member { block, instructions: instructions as u8, exit: None });
    }

    /// Begins a batch: writes the addition for its first block.
    pub(crate) fn begin_count_batch(&mut self, block: u32, instructions: usize, trace: &mut Trace) {
        self.end_count_batch(trace);
        let Some(routines) = self.cache.units[trace.unit].context else { return };
        let code = &mut self.emitter.code;
        let start = code.here();
        trace.count_batch.site = code.add_to_count(routines.count(instructions as u8));
        let end = code.here();
        self.emitter.steps.push(0, end - start);
        self.cache.blocks.get_mut(block).added_from = (end - self.cache.blocks.get(block).entry) as u16;
    }

    /// Ends a batch: fills in the numbers, as its length is known now.
    pub(crate) fn end_count_batch(&mut self, trace: &mut Trace) {
        let Some(routines) = self.cache.units[trace.unit].context else { return };
        let mut ahead = 0;
        for Member { block, instructions, exit } in trace.count_batch.members.drain(..).rev() {
            self.cache.blocks.get_mut(block).ahead = ahead;
            if let Some(exit) = exit {
                self.cache.units[trace.unit].patch(exit, routines.count(ahead));
            }
            ahead += instructions;
        }
        if ahead != 0 {
            self.emitter.code.patch(trace.count_batch.site, routines.count(ahead));
        }
    }
}

impl CodeCache {
    /// The address of a count of no instructions. An exit behind a block of a batch subtracts it until the
    /// batch's length is known. Nothing outside of batches.
    pub(crate) fn first_count(&self, trace: &Trace) -> Option<u64> {
        let routines = self.units[trace.unit].context.filter(|_| !trace.count_batch.members.is_empty());
        routines.map(|routines| routines.count(0))
    }
}

impl Trace {
    /// Notes where the last block's exit holds the number of instructions to subtract.
    pub(crate) fn note_exit(&mut self, exit: Option<u64>) {
        if let Some(last) = self.count_batch.members.last_mut() {
            last.exit = exit;
        }
    }
}
