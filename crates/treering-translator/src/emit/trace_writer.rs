//! Traces: blocks that follow each other in the program's likely order, written behind each other in a unit.

use std::io;

use treering_x86::memory::{Access, MemoryUse, Operand};
use treering_x86::{Decoded, Refusal, Register, decode};

use crate::address_space::AddressSpace;
use crate::areas::tree_layout::SLOTS as CONTEXT_SLOTS;
use crate::cache::batch::Written;
use crate::cache::block::{Block, End};
use crate::cache::emitter::Emitter;
use crate::cache::link::EntryKind;
use crate::cache::unit::Unit;
use crate::emit::count_batch::CountBatch;
use crate::emit::self_modifying::LONGEST_COMPARED;
use crate::emit::side_exit::SideExit;
use crate::sys::remote_syscall::StoppedThread;

/// The longest block, in instructions.
const LONGEST_BLOCK: usize = 48;
/// The most bytes that are decoded for one block; further instructions begin another block.
const WINDOW: usize = 256;

/// How control reaches the next code of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Continuation {
    /// By falling through from the previous block, or as the beginning of the trace.
    Through(u64),
    /// By a return; nothing falls through.
    Return(u64),
    /// Not at all: the trace ends.
    None,
}

/// Writes a trace. The whole address space is borrowed until the trace ends, as its blocks need counters, stubs,
/// and what is known of the program.
#[derive(Debug)]
pub(crate) struct TraceWriter<'a, 't> {
    pub(crate) space: &'a mut AddressSpace,
    pub(crate) thread: &'a mut StoppedThread<'t>,
    pub(crate) emitter: &'a mut Emitter,
    /// The number of its first block.
    first: usize,
    /// Once there are this many blocks, no other is begun.
    most: usize,
    /// The side exit of the branch before the next block, if it has one.
    pub(crate) side_exit: Option<SideExit>,
    /// Whether control reaches the next block with registers held: see [`treering_x86::context`].
    pub(crate) held: bool,
    /// The count batch that is being written.
    pub(crate) count_batch: CountBatch,
}

impl<'a, 't> TraceWriter<'a, 't> {
    /// Prepares to write a trace from an address on. Once there are `most` blocks, no other is begun.
    ///
    /// # Errors
    /// There is no room for it.
    pub(crate) fn new(
        address: u64,
        most: usize,
        space: &'a mut AddressSpace,
        emitter: &'a mut Emitter,
        thread: &'a mut StoppedThread<'t>,
    ) -> io::Result<Self> {
        let unit = space.cache.unit_near(address, space.areas.has_trees(), thread)?;
        let first = space.cache.blocks.len();
        emitter.unit = unit;
        emitter.code.restart(space.cache.units[unit].here());
        let count_batch = CountBatch::default();
        Ok(Self { space, thread, emitter, first, most, side_exit: None, held: false, count_batch })
    }

    /// Writes the trace.
    ///
    /// # Errors
    /// There is no counter left.
    pub(crate) fn write(mut self, address: u64) -> io::Result<()> {
        if !self.space.areas.has_trees() {
            self.emitter.begin_line();
        }
        self.held = self.write_entering(address);
        let mut continuation = Continuation::Through(address);
        while let Continuation::Through(at) | Continuation::Return(at) = continuation {
            let returned_to = matches!(continuation, Continuation::Return(_));
            let begins = self.space.cache.blocks.len() == self.first;
            self.space.program.regions.look_for_mark(at, self.thread);
            let next = match begins || !self.ends_trace(at) {
                true => self.write_block(at, returned_to)?,
                false => None,
            };
            if next.is_none() && !begins {
                self.leave_trace(at, returned_to);
            }
            continuation = next.unwrap_or(Continuation::None);
        }
        self.end_count_batch();
        self.space.cache.units[self.emitter.unit].append(self.emitter.code.bytes());
        Ok(())
    }

    pub(crate) fn block(&self, block: u32) -> &Block {
        self.space.cache.blocks.get(block)
    }

    pub(crate) fn block_mut(&mut self, block: u32) -> &mut Block {
        self.space.cache.blocks.get_mut(block)
    }

    /// The unit that the trace is written to.
    pub(crate) fn unit(&mut self) -> &mut Unit {
        &mut self.space.cache.units[self.emitter.unit]
    }

    /// Whether the trace ends before an address.
    pub(crate) fn ends_trace(&self, at: u64) -> bool {
        self.space.cache.blocks.at(at).is_some()
            || self.space.cache.blocks.len() >= self.most
            || self.space.program.regions.asks(at)
            || !self.space.program.regions.contains(at)
            || self.space.warm_start.is_cold(&self.space.program.regions, at)
            // Control must not fall into a block that does not count itself, except from a block that counts for it.
            || self.space.counting.propagation.wanted_level(at).is_some()
    }

    /// Leads from the end of the trace to an address.
    fn leave_trace(&mut self, at: u64, returned_to: bool) {
        self.release();
        // The return check is made at the first return to the address.
        if !returned_to {
            self.emitter.write_jump(at, EntryKind::default());
        }
    }

    /// Gives held registers back.
    fn release(&mut self) {
        if std::mem::take(&mut self.held) {
            self.emitter.code.release(&CONTEXT_SLOTS);
        }
    }

    /// Writes one block; nothing if there is no instruction. Returns how the trace continues.
    fn write_block(&mut self, at: u64, returned_to: bool) -> io::Result<Option<Continuation>> {
        let window = self.space.program.regions.window(at, WINDOW, self.thread);
        let mut decoded = std::mem::take(&mut self.emitter.decoded);
        decoded.clear();
        let most = if self.space.program.regions.is_own_writer(at) { 1 } else { LONGEST_BLOCK };
        let longest =
            if self.space.program.regions.is_any_restless(at, WINDOW) { LONGEST_COMPARED } else { WINDOW };
        decode(&window[..window.len().min(longest)], at, most, &mut decoded);
        if let Some(length) = self.space.program.regions.cut(&decoded, &window) {
            decoded.truncate(length);
        }
        if self.space.program.regions.is_written_often(at) {
            decoded.truncate(up_to_store(&decoded));
        }
        let result = match decoded.is_empty() {
            true if self.first == self.space.cache.blocks.len() => {
                self.write_nothing(at, window.is_empty()).map(Some)
            }
            true => Ok(None),
            false => self.write_decoded(&decoded, &window, returned_to).map(Some),
        };
        self.emitter.decoded = decoded;
        result
    }

    /// Handles bytes that cannot be decoded. The program gets the fault that they cause. If the processor
    /// executes them after all, the program is ended. If the address cannot be read, the program reads it
    /// itself, and gets that fault.
    fn write_nothing(&mut self, at: u64, is_empty: bool) -> io::Result<Continuation> {
        let counter = self.space.areas.new_counter()?;
        self.release();
        let entry = self.emitter.code.here();
        let block = self.space.cache.blocks.begin(at, entry, counter);
        let propagation = &mut self.space.counting.propagation;
        let wanted = propagation.wanted_level(at);
        propagation.note_level(&mut self.space.cache.blocks, block, wanted, None, None);
        self.emitter.steps.clear();
        match is_empty && !self.space.program.regions.asks(at) {
            true => self.write_touch(block),
            false => self.write_refusal(at, Refusal::Invalid),
        }
        self.block_mut(block).end = End::Stop;
        self.finish_block(block);
        self.emitter.batch.written.push(Written { block, return_check: None, returned_to: false });
        Ok(Continuation::None)
    }
}

/// The number of instructions up to the first that writes to memory other than the stack, with it: it may change those
/// behind it.
fn up_to_store(decoded: &[Decoded]) -> usize {
    let (mut memory, mut operands) = (MemoryUse::default(), Vec::new());
    let mut stores = |one: &Decoded| {
        operands.clear();
        memory.operands(one, &mut operands);
        let writes = |operand: &Operand| operand.access != Access::Read;
        operands.iter().any(|operand| writes(operand) && operand.base_only() != Some(Register::RSP))
    };
    decoded.iter().position(&mut stores).map_or(decoded.len(), |at| at + 1)
}
