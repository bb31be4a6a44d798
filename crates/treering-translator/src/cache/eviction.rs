//! Code that changes.

use std::io;

use crate::counting::propagated_counts::Coming;
use crate::program::region::{PAGE, Region};
use crate::space::Space;
use crate::sys::remote_syscall::StoppedThread;

impl Space {
    /// Takes in a region of code, in place of what was there.
    pub(crate) fn add_region(&mut self, region: Region) {
        self.forget(region.start, region.end);
        self.glances.forget();
        self.regions.insert(region);
    }

    /// Takes what was translated from between two addresses out of use. Threads that are in it
    /// leave it with the block that they are in.
    pub(crate) fn forget(&mut self, start: u64, end: u64) {
        // New libraries come to where nothing was.
        if self.regions.overlaps(start, end) {
            self.regions.remove(start, end);
            self.retire(start, end);
        }
    }

    /// What stands between two addresses may be something else now: it is read again when it is executed next.
    pub(crate) fn read_again(&mut self, start: u64, end: u64) {
        if self.regions.overlaps(start, end) {
            self.regions.read_again(start, end);
            self.retire(start, end);
        }
    }

    /// Has all code compared from now on before it is executed: the program's memory is written to past its
    /// protection.
    pub(crate) fn distrust(&mut self) {
        self.regions.distrust();
        self.read_again(0, u64::MAX);
    }

    fn retire(&mut self, start: u64, end: u64) {
        // What was found out about flags may rest on the code that goes.
        self.live.clear();
        let retired = self.blocks.retire(start, end);
        self.generations += u32::from(!retired.is_empty());
        for &id in &retired {
            self.replace(id);
        }
        self.end_credit(&retired);
    }

    /// Leads those who come to a retired block to what takes its place.
    pub(crate) fn replace(&mut self, id: u32) {
        let (address, entry, holds) = {
            let block = self.blocks.get(id);
            // Who falls into a derived one comes from a block that is taken out of use with it, and who has credited
            // it is led elsewhere.
            match block.counted_before {
                true => (block.address, self.ways_in.get(&(id, true)).copied(), false),
                false => (block.address, Some(block.entry), block.holds),
            }
        };
        let Some(entry) = entry else { return };
        let Some(arena) = self.arena_of(entry) else { return };
        let coming = Coming { holds, ..Coming::default() };
        let place = match self.entry_for(address, coming, arena) {
            Some(place) => place,
            None => self.await_code(arena, address, entry + 1, coming),
        };
        self.arenas[arena].replace_by_jump(entry, place);
    }

    /// A write to protected code: the page may be written again, and what was translated from it is
    /// out of use. Whether it was one.
    pub(crate) fn release_written(
        &mut self,
        address: u64,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<bool> {
        if !self.regions.is_protected(address) {
            return Ok(false);
        }
        self.regions.release(address, thread)?;
        let page = address & !(PAGE - 1);
        self.retire(page, page + PAGE);
        Ok(true)
    }
}
