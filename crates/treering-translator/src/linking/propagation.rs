//! Ends the propagation of counts to blocks that are evicted.

use crate::address_map::AddressSet;
use crate::address_space::AddressSpace;
use crate::cache::block::End;
use crate::cache::link::EntryKind;

impl AddressSpace {
    /// Blocks were retired: the blocks that propagate their counts to them ask the tracer from now on.
    pub(crate) fn end_propagation(&mut self, retired: &[u32]) {
        let mut ended = AddressSet::default();
        for &id in retired {
            let kept = self.cache.blocks.get(id);
            if kept.level != 0 && !self.counting.propagation.ended.contains_key(&kept.address) {
                self.counting.propagation.ended.insert(kept.address, Some(id));
                self.counting.propagation.levels.remove(&kept.address);
                ended.insert(kept.address);
            }
        }
        if ended.is_empty() {
            return;
        }
        for id in 0..self.cache.blocks.len() as u32 {
            let (target, calls, holds) = {
                let block = self.cache.blocks.get(id);
                if !block.propagates || !ended.contains(&block.target) {
                    continue;
                }
                (block.target, matches!(block.end, End::Call | End::IndirectCall), block.holds)
            };
            let entry_kind = EntryKind { propagates: true, calls: calls && self.areas.has_trees(), holds };
            // The block ends in the jump, and the jump ends in its displacement.
            let site = self.cache.blocks.behind_last_instruction(id) - 4;
            if let Some(unit) = self.cache.unit_of(site) {
                let stub = self.cache.add_unlinked(unit, target, site, entry_kind);
                self.cache.units[unit].patch(site, stub);
            }
        }
    }
}
