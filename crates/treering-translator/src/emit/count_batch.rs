//! Batches of blocks whose instructions are added to the tree's count at once.
//!
//! Control reaches a derived block ([`crate::emit::side_exit`]) from the block before it, and mostly goes on to the
//! next one. So the first block of such a batch adds the instructions of all of them. Early exits subtract the
//! remaining blocks; entries from elsewhere add the entered block and the remaining ones. The batch's length is known
//! when all of it is written: its numbers are filled in then, before any thread runs it.

use crate::address_space::AddressSpace;
use crate::emit::translate::Trace;
use crate::linking::entry::UNKNOWN;

/// A row that is being written.
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
    /// Where it is said how many are taken back when the row is left behind it, if it can be.
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
    /// A block's instructions are added to the count, unless the row has done so that it belongs to.
    pub(crate) fn pay(&mut self, block: u32, instructions: usize, trace: &mut Trace) {
        if !self.areas.has_trees() {
            return;
        }
        let is_next = self.cache.blocks.get(block).derived && trace.count_batch.takes(block, instructions);
        if is_next {
            self.cache.blocks.get_mut(block).prepaid = true;
        } else {
            self.pay_alone(block, instructions, trace);
        }
        self.cache.blocks.get_mut(block).ahead = UNKNOWN;
        trace.count_batch.members.push(Member { block, instructions: instructions as u8, exit: None });
    }

    /// The same for a block that nothing is paid with.
    pub(crate) fn pay_alone(&mut self, block: u32, instructions: usize, trace: &mut Trace) {
        self.end_count_batch(trace);
        let Some(routines) = self.cache.units[trace.unit].context else { return };
        let code = &mut self.emitter.code;
        let start = code.here();
        trace.count_batch.site = code.add_to_count(routines.count(instructions as u8));
        let end = code.here();
        self.emitter.steps.push(0, end - start);
        self.cache.blocks.get_mut(block).paid_from = (end - self.cache.blocks.get(block).entry) as u16;
    }

    /// All of a row is written.
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

    /// Where a count of no instruction stands, which those are given at first who leave the row behind its last block
    /// so far, if there is one.
    pub(crate) fn first_count(&self, trace: &Trace) -> Option<u64> {
        let routines = self.cache.units[trace.unit].context.filter(|_| !trace.count_batch.members.is_empty());
        routines.map(|routines| routines.count(0))
    }
}

impl Trace {
    /// Notes where the last block's exit says how many instructions it takes back.
    pub(crate) fn note_exit(&mut self, exit: Option<u64>) {
        if let Some(last) = self.count_batch.members.last_mut() {
            last.exit = exit;
        }
    }
}
