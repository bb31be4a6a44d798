//! The return table, by which returns find their translated target: an entry for the lower 16 bits of an
//! address, and a chain of return checks for the rest.

use crate::address_map::AddressSet;
use crate::cache::code_cache::CodeCache;
use crate::cache::target_check::{TargetCheck, TargetLocation};
use crate::sys::layout::RETURN_ENTRIES;

/// The chains behind the return table. Addresses with equal lower bits share a chain: each return check
/// compares the address, and jumps to the next check if it is another one.
#[derive(Debug)]
pub(crate) struct ReturnTable {
    /// Addresses that have a return check.
    pub(crate) known: AddressSet,
    /// For each entry, by parts, where the jump of the last return check of its chain is; 0 if there is none.
    /// Short programs use few parts.
    tails: Vec<Option<Box<[u64; TAILS]>>>,
}

/// The number of entries in a part of the [tails](ReturnTable::tails).
const TAILS: usize = 64;

impl Default for ReturnTable {
    fn default() -> Self {
        Self {
            known: AddressSet::default(),
            tails: std::iter::repeat_n(None, RETURN_ENTRIES / TAILS).collect(),
        }
    }
}

impl ReturnTable {
    /// Whether no return check uses the table's entry of the address.
    pub(crate) fn is_free(&self, address: u64) -> bool {
        self.tail(address) == 0
    }

    fn tail(&self, address: u64) -> u64 {
        let entry = address as usize % RETURN_ENTRIES;
        self.tails[entry / TAILS].as_ref().map_or(0, |part| part[entry % TAILS])
    }

    /// Notes the jump that now ends the chain of the address.
    pub(crate) fn set_tail(&mut self, address: u64, jump: u64) {
        let entry = address as usize % RETURN_ENTRIES;
        self.tails[entry / TAILS].get_or_insert_with(|| Box::new([0; TAILS]))[entry % TAILS] = jump;
    }
}

impl CodeCache {
    /// Puts a written return check into the table; `jump` is its jump for other addresses.
    pub(crate) fn open_return(&mut self, address: u64, return_check: u64, jump: u64) {
        self.return_table.known.insert(address);
        self.return_table.set_tail(address, jump);
        self.tables.store((address as usize % RETURN_ENTRIES * 8) as u64, return_check);
    }

    /// Makes sure that returns to an address find its translation.
    pub(crate) fn ensure_return(&mut self, address: u64, entry: u64) {
        let tail = self.return_table.tail(address);
        let place = if tail == 0 { self.unit_of(entry) } else { self.unit_of(tail) };
        // Without room for a check, the return asks the tracer, which makes room at its next request.
        let Some(unit) = self.unit_for_stub(place.unwrap_or(0)) else { return };
        if !self.return_table.known.insert(address) {
            return;
        }
        let otherwise = self.units[unit].routines.miss;
        let check = TargetCheck { address, location: TargetLocation::Popped, otherwise };
        let (start, jump) = self.write_target(unit, check, None, entry);
        self.return_table.set_tail(address, jump);
        match tail {
            0 => self.tables.store((address as usize % RETURN_ENTRIES * 8) as u64, start),
            _ => self.patch(tail, start),
        }
    }
}
