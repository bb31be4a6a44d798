//! Batches of blocks whose instructions are added to the tree's count at once.
//!
//! Control reaches a derived block ([`crate::emit::side_exit`]) from the block before it, and mostly goes on to the
//! next one. So the first block of such a batch adds the instructions of all of them. Early exits subtract the
//! remaining blocks; entries from elsewhere add the entered block and the remaining ones. The batch's length is known
//! when all of it is written: its numbers are filled in then, before any thread runs it.

use crate::address_space::AddressSpace;
use crate::cache::code_cache::CodeCache;
use crate::emit::translate::Trace;
use crate::linking::entry::UNKNOWN;

/// A batch that is being written.
#[derive(Debug, Default)]
pub(crate) struct CountBatch {
    /// Where its first block says how many instructions are added.
    site: u64,
    members: Vec<Member>,
}

/// A block of it.
#[derive(Debug)]
struct Member {
    block: u32,
    instructions: u8,
    /// Where the exit behind it says how many instructions it subtracts, if there is one.
    exit: Option<u64>,
}

impl CountBatch {
    /// Whether a block can be its next one.
    fn takes(&self, block: u32, instructions: usize) -> bool {
        let all: usize = self.members.iter().map(|member| usize::from(member.instructions)).sum();
        self.members.last().is_some_and(|last| last.block + 1 == block)
            && all + instructions < usize::from(UNKNOWN)
    }
}

impl AddressSpace {
    /// Adds a block's instructions to the tree's count, or adds the block to the batch that has just been written.
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

    /// Begins a batch: writes the addition for a block that belongs to none.
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

    /// Ends a batch, whose length is known now: fills its numbers in.
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
    /// Where a count of no instructions stands: what an exit behind the last block of a batch subtracts until the batch
    /// has its length. Nothing outside of batches.
    pub(crate) fn first_count(&self, trace: &Trace) -> Option<u64> {
        let routines = self.units[trace.unit].context.filter(|_| !trace.count_batch.members.is_empty());
        routines.map(|routines| routines.count(0))
    }
}

impl Trace {
    /// Notes where the last block's exit says how many instructions it subtracts.
    pub(crate) fn note_exit(&mut self, exit: Option<u64>) {
        if let Some(last) = self.count_batch.members.last_mut() {
            last.exit = exit;
        }
    }
}
