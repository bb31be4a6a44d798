//! Code that changes.

use std::io;

use crate::region::{PAGE, Region};
use crate::remote::Stopped;
use crate::space::Space;

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
        let (address, entry) = {
            let block = self.blocks.get(id);
            // Who falls into a derived one comes from a block that is taken out of use with it.
            let entry = if block.derived { self.ways_in.get(&id).copied() } else { Some(block.entry) };
            (block.address, entry)
        };
        let Some(entry) = entry else { return };
        let Some(arena) = self.arena_of(entry) else { return };
        let (stub, _) = self.way_to(arena, address);
        self.arenas[arena].replace_by_jump(entry, stub);
        self.await_code(arena, address, entry + 1, false);
    }

    /// A write to protected code: the page may be written again, and what was translated from it is
    /// out of use. Whether it was one.
    pub(crate) fn release_written(&mut self, address: u64, thread: &mut Stopped<'_>) -> io::Result<bool> {
        if !self.regions.is_protected(address) {
            return Ok(false);
        }
        self.regions.release(address, thread)?;
        let page = address & !(PAGE - 1);
        self.retire(page, page + PAGE);
        Ok(true)
    }
}
