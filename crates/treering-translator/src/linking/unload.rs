//! Unloaded code: its addresses may be used again, by another library or by code made at run time.
//!
//! The same instruction and target address stand for different calls before and after unloading. So each arc
//! and each function of a tree belongs to the region of its target. When a region is unloaded, all links into
//! it are removed: their sites ask the tracer again, and get new arcs.

use crate::address_space::AddressSpace;
use crate::cache::code_cache::CodeCache;
use crate::cache::indirect::table_entry;
use crate::sys::layout::SITE_ENTRIES;

impl AddressSpace {
    /// Removes the code between two addresses, which is no longer mapped.
    pub(crate) fn unload(&mut self, start: u64, end: u64) {
        if !self.program.regions.overlaps(start, end) {
            return;
        }
        self.retire_direct_callers(start, end);
        self.evict(start, end);
        self.cache.unlink_targets(start, end);
        self.cache.forget_targets();
        self.forget_functions(start, end);
    }

    /// Retires the blocks of other regions whose calls and jumps lead here: the code that is mapped here next
    /// is different.
    fn retire_direct_callers(&mut self, start: u64, end: u64) {
        let leads_there = |block: &u32| {
            let kept = self.cache.blocks.get(*block);
            !kept.retired && (start..end).contains(&kept.target)
        };
        let callers: Vec<u32> = self.cache.direct_targets.keys().copied().filter(leads_there).collect();
        for &block in &callers {
            self.cache.blocks.retire_one(block);
            self.redirect(block);
        }
        self.end_propagation(&callers);
    }
}

impl CodeCache {
    /// Has sites ask for all of their targets again if any of these is unloaded; the others keep their arcs.
    fn unlink_targets(&mut self, start: u64, end: u64) {
        let blocks = self.arcs.end_between(start, end);
        for number in 0..self.sites.len() {
            let (block, jump, miss) = {
                let site = &self.sites[number];
                (site.block, site.jump, site.miss)
            };
            if !blocks.contains(&block) {
                continue;
            }
            self.forget_checks(block);
            if let Some(table) = self.sites[number].unlink() {
                (0..SITE_ENTRIES).for_each(|entry| self.tables.store(table_entry(table, entry), miss));
            }
            let in_line = self.blocks.get(block).target;
            if let Some(unit) = self.unit_of(jump) {
                if self.sites[number].has_no_table() {
                    self.units[unit].patch(jump, miss);
                }
                if in_line != 0 && (start..end).contains(&in_line) {
                    // The block ends in the jump to the target of its inline check. From now on it leads to the
                    // jump for other targets, whose checks load the target themselves.
                    let found = self.blocks.behind_last_instruction(block) - 4;
                    self.units[unit].patch(found, jump - 1);
                }
            }
        }
    }
}
