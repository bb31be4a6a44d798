//! Instructions that use the register of the tree's count: the program's own value is loaded for their duration.

use treering_x86::lending::{Lending, Own, clears_upper_parts, write_clearing};
use treering_x86::{Assembler, Decoded};

use crate::address_space::AddressSpace;
use crate::areas::tree_frame::Lent;
use crate::areas::tree_layout::{COUNT, OWN, SLOTS};
use crate::cache::emitter::Emitter;

impl Emitter {
    /// Loads the program's own value into the register for an instruction that needs it. Returns how that was done.
    pub(crate) fn write_lending(&mut self, one: &Decoded, own: &Own) -> Option<Lending> {
        if clears_upper_parts(one) {
            // The parts of the value that no register holds.
            self.write_step(0, |code| write_clearing(code, own));
        }
        let lending = Lending::of(one)?;
        self.write_step(0, |code| code.store_count(COUNT));
        self.write_step(0, |code| lending.write_load(code, own));
        Some(lending)
    }

    /// Puts the count back.
    pub(crate) fn write_return_of_count(&mut self, lending: &Lending, own: &Own) {
        self.write_step(0, |code| lending.write_store(code, own));
        self.write_step(0, |code| code.load_count(COUNT));
    }
}

impl AddressSpace {
    /// Where the program's own value of the register lies, if trees are kept.
    pub(crate) fn own_place(&self) -> Option<Own> {
        self.areas.has_trees().then_some(Own { slot: OWN, wide: self.context.wide, rcx: SLOTS.rcx })
    }

    /// How much of the program's own value is in the register before the instruction at an address; none if
    /// the count is there.
    pub(crate) fn lent(&self, rip: u64) -> Option<Lent> {
        let own = self.own_place()?;
        let unit = &self.cache.units[self.cache.unit_of(rip)?];
        let stands = |at: u64, bytes: &[u8]| {
            let mut found = vec![0; bytes.len()];
            unit.read(at, &mut found);
            found == bytes
        };
        let mut count = Assembler::new(0);
        count.load_count(COUNT);
        if stands(rip, count.bytes()) {
            return Some(Lent::Nothing);
        }
        let is_before = |bytes: &[u8]| {
            let before = rip - bytes.len() as u64;
            before >= unit.base && stands(before, bytes)
        };
        let parts = [Lent::Lower, Lent::Whole];
        let stored = parts.into_iter().zip(Lending::stores(&own)).find(|(_, bytes)| stands(rip, bytes));
        let loaded = || parts.into_iter().zip(Lending::loads(&own)).find(|(_, bytes)| is_before(bytes));
        stored.or_else(loaded).map(|(lent, _)| lent)
    }
}
