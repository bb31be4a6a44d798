//! Watched returns, which ask the tracer each time: by them a selected function is seen to end.

use std::io;

use crate::address_space::AddressSpace;
use crate::cache::code_cache::CodeCache;
use crate::cache::target_check::{TargetCheck, TargetLocation};
use crate::sys::layout::RETURN_ENTRIES;

impl AddressSpace {
    /// From now on, returns to an address ask the tracer, each time: in front of what the table of
    /// return checks leads to, another check is put that takes the address for one without a return check.
    ///
    /// Blocks that stand at the address stay as they are, as threads may be in them; jumps to it do not
    /// ask.
    ///
    /// # Errors
    /// There is no room for the check.
    pub(crate) fn watch_return(&mut self, address: u64) -> io::Result<()> {
        if !self.program.regions.contains(address) || !self.cache.watched_returns.insert(address) {
            return Ok(());
        }
        let Some(unit) = (0..self.cache.units.len()).find(|&unit| self.cache.units[unit].has_some_room())
        else {
            return Err(io::Error::other("no room for translated code that watches a function's return"));
        };
        let entry = (address as usize % RETURN_ENTRIES * 8) as u64;
        let start = match self.cache.return_table.is_free(address) {
            true => self.cache.write_first_check(unit, address),
            false => self.cache.write_check_before(unit, address, self.cache.tables.load(entry)),
        };
        self.cache.tables.store(entry, start);
        Ok(())
    }
}

/// No check has more bytes.
const MOST: u64 = 128;

impl CodeCache {
    /// The check, as the first return check of its entry: others are chained behind it.
    fn write_first_check(&mut self, unit: usize, address: u64) -> u64 {
        let routines = self.units[unit].routines;
        let mut tail = 0;
        let start = self.units[unit].append_cold(MOST, |code| {
            tail = TargetCheck { address, location: TargetLocation::Popped, otherwise: routines.miss }
                .write(code);
            code.jump(routines.miss);
        });
        self.return_table.set_tail(address, tail);
        start
    }

    /// The check, in front of a chain of return checks that begins at `old`, perhaps in another unit.
    fn write_check_before(&mut self, unit: usize, address: u64, old: u64) -> u64 {
        let routines = self.units[unit].routines;
        let chain = self.units[unit].constant(old);
        let mut start = 0;
        self.units[unit].append_cold(MOST, |code| {
            let before = code.here();
            code.jump_through(chain);
            start = code.here();
            TargetCheck { address, location: TargetLocation::Popped, otherwise: before }.write(code);
            code.jump(routines.miss);
        });
        start
    }
}
