//! The entries of blocks: counting and non-counting ones, for jumps and for calls.

use std::io;

use treering_x86::context::HOLD;
use treering_x86::{Assembler, Register};

use crate::address_space::AddressSpace;
use crate::areas::tree_layout::SLOTS as CONTEXT_SLOTS;
use crate::cache::code_cache::CodeCache;
use crate::cache::link::EntryKind;
use crate::sys::layout::{SAVED_RCX, counter_slot};

/// The most bytes of an entry stub that only counts and jumps.
pub(crate) const ROOM: u64 = 64;
/// The same where no flag is live: there are many of these, which share cache lines.
pub(crate) const SHORT_ROOM: u64 = 20;

/// The most bytes of an entry stub, which may also hold or release registers and add to the tree's count.
pub(crate) fn room(flags_are_dead: bool, holds: bool, adds: bool) -> u64 {
    let counting = if flags_are_dead { SHORT_ROOM } else { ROOM };
    counting + if holds { HOLD } else { 0 } + if adds { ADDITION } else { 0 }
}

/// The bytes that adding to the tree's count, or subtracting from it, adds to a stub.
pub(crate) const ADDITION: u64 = 8;

/// The number of instructions ahead of a block while it is unknown. No count batch is as long.
pub(crate) const UNKNOWN: u8 = u8::MAX;

impl AddressSpace {
    /// The entry to an address that jumps may use without asking the tracer.
    pub(crate) fn entry_of(&mut self, target: u64) -> Option<u64> {
        let block =
            self.cache.blocks.at(target).filter(|_| self.program.regions.watched(target).is_none())?;
        // Without a counter for the entry, jumps ask the tracer, which reports the lack.
        if self.cache.compared.contains_key(&block) { None } else { self.counted_entry(block).ok() }
    }

    /// Where a jump to an address of the program should go now: to its translation, or to the exit stub.
    /// Returns whether it is the stub.
    pub(crate) fn entry_or_stub(&mut self, unit: usize, target: u64) -> (u64, bool) {
        match self.entry_of(target) {
            Some(entry) => (entry, false),
            None => (self.cache.stub(unit, target, EntryKind::default()).1, true),
        }
    }

    /// The entry that a jump of the given kind, out of a unit, may use without asking.
    pub(crate) fn entry_for(&mut self, target: u64, entry_kind: EntryKind, unit: usize) -> Option<u64> {
        let counted = self.entry_of(target)?;
        match entry_kind {
            EntryKind { calls: true, propagates: true, .. }
                if !self
                    .counting
                    .propagation
                    .lets_in_uncounted(&self.cache.blocks, self.cache.blocks.at(target)?) =>
            {
                None
            }
            EntryKind { calls: true, propagates, holds } => {
                let stub = self.entering_stub_for(unit, target, propagates)?;
                Some(if holds { stub + HOLD } else { stub })
            }
            // Only retired code is reached like this: the tracer is asked.
            EntryKind { holds: true, .. } => None,
            EntryKind { propagates: true, .. } => self.uncounted_entry(self.cache.blocks.at(target)?),
            EntryKind { .. } => Some(counted),
        }
    }

    /// The entry of a block for control from elsewhere, which counts it.
    ///
    /// # Errors
    /// There is no counter left.
    pub(crate) fn counted_entry(&mut self, block: u32) -> io::Result<u64> {
        let kept = self.cache.blocks.get(block);
        let (counts, derived, own) = (kept.counted_before, kept.derived, kept.counter);
        if !counts && !kept.holds {
            return Ok(kept.entry);
        }
        if let Some(&stub) = self.cache.entry_stubs.get(&(block, true)) {
            return Ok(stub);
        }
        let counter = if derived { self.areas.new_counter()? } else { own };
        let stub = self.cache.write_entry_stub(block, counts.then_some(counter), 0)?;
        self.cache.entry_stubs.insert((block, true), stub);
        if derived {
            let address = self.cache.blocks.get(block).address;
            self.cache.add_arc(block - 1, address, Some(counter), self.program.region_at(address));
        }
        Ok(stub)
    }

    /// The entry of a block for predecessors that have counted for it, if it has one.
    pub(crate) fn uncounted_entry(&mut self, block: u32) -> Option<u64> {
        if !self.counting.propagation.lets_in_uncounted(&self.cache.blocks, block) {
            return None;
        }
        let kept = self.cache.blocks.get(block);
        let behind = if kept.counted_before { 0 } else { u64::from(kept.counted_from) };
        if !kept.holds && !kept.in_batch {
            return Some(kept.entry + behind);
        }
        if let Some(&stub) = self.cache.entry_stubs.get(&(block, false)) {
            return Some(stub);
        }
        let stub = self.cache.write_entry_stub(block, None, behind).ok()?;
        self.cache.entry_stubs.insert((block, false), stub);
        Some(stub)
    }
}

/// Writes code between two blocks that adds one to a counter.
pub(crate) fn write_count(code: &mut Assembler, counter: u32, flags_are_dead: bool) {
    let slot = counter_slot(counter);
    if flags_are_dead {
        return code.inc_gs(slot);
    }
    code.store_gs(SAVED_RCX, Register::RCX);
    code.count_by(Register::RCX, slot);
    code.load_gs(Register::RCX, SAVED_RCX);
}

impl CodeCache {
    /// Writes an entry stub that counts the block and adds its instructions to the tree's count, each if
    /// necessary, and enters the block behind its first bytes.
    fn write_entry_stub(&mut self, block: u32, counter: Option<u32>, behind: u64) -> io::Result<u64> {
        let kept = self.blocks.get(block);
        let (entry, flags_are_dead, holds) = (kept.entry, kept.begins_without_flags, kept.holds);
        let unit = self.unit_of(entry).unwrap_or(0);
        let not_added = self.not_added(block, unit)?;
        let room = room(flags_are_dead, holds, not_added.is_some());
        let stub = self.units[unit].append_cold(room, |code| {
            if let Some(counter) = counter {
                write_count(code, counter, flags_are_dead);
            }
            if let Some(count) = not_added {
                code.add_to_count(count);
            }
            if holds {
                code.hold(&CONTEXT_SLOTS);
            }
            code.jump(entry + behind);
        });
        Ok(stub)
    }

    /// The address of the number of instructions that an entry from elsewhere must add to the tree's count.
    ///
    /// # Errors
    /// It is unknown: writing the batch failed, and the process cannot continue.
    pub(crate) fn not_added(&self, block: u32, unit: usize) -> io::Result<Option<u64>> {
        let kept = self.blocks.get(block);
        let Some(routines) = self.units[unit].context.filter(|_| kept.in_batch) else { return Ok(None) };
        match kept.ahead {
            UNKNOWN => Err(io::Error::other("a batch of blocks was not written to its end")),
            ahead => Ok(Some(routines.count(kept.instructions + ahead))),
        }
    }
}
