//! Watched returns, which ask the tracer each time, so that it sees the end of a selected function.

use std::io;

use crate::cache::code_cache::CodeCache;
use crate::cache::target_check::{TargetCheck, TargetLocation};
use crate::sys::layout::RETURN_ENTRIES;

/// The most bytes of a check.
const MOST: u64 = 128;

impl CodeCache {
    /// From now on, returns to an address ask the tracer, each time. A check in front of the return checks of
    /// the table's entry treats the address as one without a return check.
    ///
    /// Blocks at the address stay as they are, as threads may be in them; jumps to it do not ask.
    ///
    /// # Errors
    /// There is no room for the check.
    pub(crate) fn watch_return(&mut self, address: u64) -> io::Result<()> {
        if !self.watched_returns.insert(address) {
            return Ok(());
        }
        let Some(unit) = (0..self.units.len()).find(|&unit| self.units[unit].has_some_room()) else {
            return Err(io::Error::other("no room for translated code that watches a function's return"));
        };
        let entry = (address as usize % RETURN_ENTRIES * 8) as u64;
        let start = match self.return_table.is_free(address) {
            true => self.write_first_check(unit, address),
            false => self.write_check_before(unit, address, self.tables.load(entry)),
        };
        self.tables.store(entry, start);
        Ok(())
    }

    /// Writes the check as the first one of its table entry: return checks are chained behind it.
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

    /// Writes the check in front of a chain of return checks that begins at `old`, perhaps in another unit.
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
