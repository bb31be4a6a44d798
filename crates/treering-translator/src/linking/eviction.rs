//! Eviction: blocks whose code has changed or gone are retired, and their predecessors redirected.

use std::io;

use crate::address_space::AddressSpace;
use crate::cache::link::EntryKind;
use crate::program::region::{PAGE, Region};
use crate::sys::remote_syscall::StoppedThread;

impl AddressSpace {
    /// Adds a region of code, which replaces the code there.
    pub(crate) fn add_region(&mut self, region: Region) {
        self.evict(region.start, region.end);
        self.program.snapshots.forget();
        self.program.regions.insert(region);
    }

    /// Evicts the translation of the code between two addresses. Threads that are in it leave it at the end
    /// of their block.
    pub(crate) fn evict(&mut self, start: u64, end: u64) {
        // A new library is mostly mapped where there was no code.
        if self.program.regions.overlaps(start, end) {
            self.program.regions.remove(start, end);
            self.retire(start, end);
        }
    }

    /// The contents between two addresses may have changed: the code is read again before its next execution.
    pub(crate) fn read_again(&mut self, start: u64, end: u64) {
        if self.program.regions.overlaps(start, end) {
            self.program.regions.read_again(start, end);
            self.retire(start, end);
        }
    }

    /// Has all code compared before each execution from now on: the program's memory is written to in spite
    /// of its protection.
    pub(crate) fn distrust(&mut self) {
        self.program.regions.distrust();
        self.read_again(0, u64::MAX);
    }

    fn retire(&mut self, start: u64, end: u64) {
        // Facts about live flags may rest on the evicted code.
        self.program.live.clear();
        let retired = self.cache.blocks.retire(start, end);
        self.cache.generations += u32::from(!retired.is_empty());
        for &id in &retired {
            self.redirect(id);
        }
        self.end_propagation(&retired);
    }

    /// Makes a retired block lead to the code that replaces it.
    pub(crate) fn redirect(&mut self, id: u32) {
        let (address, entry, holds) = {
            let block = self.cache.blocks.get(id);
            // Control falls into a derived block only from a block that is retired with it. Predecessors that
            // propagate their counts are redirected separately.
            match block.counted_before {
                true => (block.address, self.cache.entry_stubs.get(&(id, true)).copied(), false),
                false => (block.address, Some(block.entry), block.holds),
            }
        };
        let Some(entry) = entry else { return };
        let Some(unit) = self.cache.unit_of(entry) else { return };
        let entry_kind = EntryKind { holds, ..EntryKind::default() };
        let place = match self.entry_for(address, entry_kind, unit) {
            Some(place) => place,
            None => self.cache.add_unlinked(unit, address, entry + 1, entry_kind),
        };
        self.cache.units[unit].replace_by_jump(entry, place);
    }

    /// Handles a write to protected code: makes the page writable again, and evicts its translation. Returns
    /// whether it was such a write.
    pub(crate) fn release_written(
        &mut self,
        address: u64,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<bool> {
        if !self.program.regions.is_protected(address) {
            return Ok(false);
        }
        self.program.regions.release(address, thread)?;
        let page = address & !(PAGE - 1);
        self.retire(page, page + PAGE);
        Ok(true)
    }
}
