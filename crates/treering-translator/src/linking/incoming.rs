//! Incoming links: jumps that waited for a block are linked to it when it is published.

use crate::address_space::AddressSpace;
use crate::cache::link::{EntryKind, ExitStub, waiting_for};

impl AddressSpace {
    /// Links all jumps that wait for a block to it.
    pub(crate) fn link_incoming(&mut self, block: u32) {
        let target = self.cache.blocks.get(block).address;
        let has_contexts = self.areas.has_trees();
        for entry_kind in EntryKind::ALL.into_iter().filter(|entry_kind| has_contexts || !entry_kind.calls) {
            if let Some(&number) = self.cache.exits.of_code.get(&waiting_for(target, entry_kind)) {
                self.link_incoming_of(number, target, entry_kind);
            }
        }
    }

    /// Links jumps to the entry of their kind. Without a counter for the entry, or if the code is compared
    /// each time, they continue to ask the tracer.
    fn link_incoming_of(&mut self, mut number: u32, target: u64, entry_kind: EntryKind) {
        while let ExitStub::Code { jumps, unit, next, .. } = &mut self.cache.exits.list[number as usize] {
            let (unit, following) = (usize::from(*unit), *next);
            let mut jump = *jumps;
            if jump != 0 {
                let Some(entry) = self.entry_for(target, entry_kind, unit) else { return };
                if let ExitStub::Code { jumps, .. } = &mut self.cache.exits.list[number as usize] {
                    *jumps = 0;
                }
                while jump != 0 {
                    let (site, next) = self.cache.exits.jumps[jump as usize - 1];
                    self.cache.units[unit].patch(site, entry);
                    jump = next;
                }
            }
            number = following;
        }
    }
}
