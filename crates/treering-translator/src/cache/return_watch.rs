//! Returns that ask the tracer.

use std::io;

use crate::cache::target_check::{Check, Left};
use crate::space::Space;
use crate::sys::layout::LANDINGS;

impl Space {
    /// From now on, returns to an address ask the tracer, each time: in front of what the table of
    /// landings leads to, another check is put that takes the address for one without a landing.
    ///
    /// Blocks that stand at the address stay as they are, as threads may be in them; jumps to it do not
    /// ask.
    ///
    /// # Errors
    /// There is no room for the check.
    pub(crate) fn watch_return(&mut self, address: u64) -> io::Result<()> {
        if !self.regions.contains(address) || !self.returns.insert(address) {
            return Ok(());
        }
        let Some(arena) = (0..self.arenas.len()).find(|&arena| self.arenas[arena].has_some_room()) else {
            return Err(io::Error::other("no room for translated code that watches a function's return"));
        };
        let entry = (address as usize % LANDINGS * 8) as u64;
        let start = match self.landings.is_free(address) {
            true => self.write_first_check(arena, address),
            false => self.write_check_before(arena, address, self.tables.load(entry)),
        };
        self.tables.store(entry, start);
        Ok(())
    }

    /// The check, as the first landing of its entry: others are chained behind it.
    fn write_first_check(&mut self, arena: usize, address: u64) -> u64 {
        let pieces = self.arenas[arena].pieces;
        let mut tail = 0;
        let start = self.arenas[arena].append_cold(MOST, |code| {
            tail = Check { address, left: Left::Popped, otherwise: pieces.miss }.write(code);
            code.jump(pieces.miss);
        });
        self.landings.set_tail(address, tail);
        start
    }

    /// The check, in front of a chain of landings that begins at `old`, perhaps in another arena.
    fn write_check_before(&mut self, arena: usize, address: u64, old: u64) -> u64 {
        let pieces = self.arenas[arena].pieces;
        let chain = self.arenas[arena].constant(old);
        let mut start = 0;
        self.arenas[arena].append_cold(MOST, |code| {
            let before = code.here();
            code.jump_through(chain);
            start = code.here();
            Check { address, left: Left::Popped, otherwise: before }.write(code);
            code.jump(pieces.miss);
        });
        start
    }
}

/// No check has more bytes.
const MOST: u64 = 128;
