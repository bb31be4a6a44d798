//! Eviction: blocks whose code has changed or gone are retired, and their predecessors redirected.

use std::io;

use crate::address_space::AddressSpace;
use crate::cache::link::EntryKind;
use crate::program::region::{PAGE, Region};
use crate::sys::remote_syscall::StoppedThread;

impl AddressSpace {
    /// Takes in a region of code, in place of what was there.
    pub(crate) fn add_region(&mut self, region: Region) {
        self.evict(region.start, region.end);
        self.program.snapshots.forget();
        self.program.regions.insert(region);
    }

    /// Takes what was translated from between two addresses out of use. Threads that are in it
    /// leave it with the block that they are in.
    pub(crate) fn evict(&mut self, start: u64, end: u64) {
        // New libraries come to where nothing was.
        if self.program.regions.overlaps(start, end) {
            self.program.regions.remove(start, end);
            self.retire(start, end);
        }
    }

    /// What stands between two addresses may be something else now: it is read again when it is executed next.
    pub(crate) fn read_again(&mut self, start: u64, end: u64) {
        if self.program.regions.overlaps(start, end) {
            self.program.regions.read_again(start, end);
            self.retire(start, end);
        }
    }

    /// Has all code compared from now on before it is executed: the program's memory is written to past its
    /// protection.
    pub(crate) fn distrust(&mut self) {
        self.program.regions.distrust();
        self.read_again(0, u64::MAX);
    }

    fn retire(&mut self, start: u64, end: u64) {
        // What was found out about flags may rest on the code that goes.
        self.program.live.clear();
        let retired = self.cache.blocks.retire(start, end);
        self.cache.generations += u32::from(!retired.is_empty());
        for &id in &retired {
            self.redirect(id);
        }
        self.end_propagation(&retired);
    }

    /// Leads those who come to a retired block to what takes its place.
    pub(crate) fn redirect(&mut self, id: u32) {
        let (address, entry, holds) = {
            let block = self.cache.blocks.get(id);
            // A derived block is only fallen into from a block that is retired with it, and predecessors that propagate
            // their counts are redirected on their own.
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

    /// A write to protected code: the page may be written again, and what was translated from it is
    /// out of use. Whether it was one.
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
