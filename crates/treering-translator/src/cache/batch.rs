//! The blocks that one request translates. They are published together, when all of their code is in memory.

use crate::cache::link::EntryKind;
use crate::sys::layout::RETURN_ENTRIES;

/// A block that is written and not published yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written {
    pub(crate) block: u32,
    /// Its inline return check, and that check's jump for other addresses.
    pub(crate) return_check: Option<(u64, u64)>,
    /// Whether it needs a return check outside of the trace.
    pub(crate) returned_to: bool,
}

/// The blocks written for one request. They are published when all of them are in memory, because most of
/// their jumps lead to blocks that the same request writes later.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) written: Vec<Written>,
    /// Jumps to addresses of the program, by unit.
    pub(crate) jumps: Vec<Jump>,
    pub(crate) return_entries: ReturnEntries,
}

impl Batch {
    /// The numbers of blocks, jumps and return checks.
    pub(crate) fn lengths(&self) -> (usize, usize, usize) {
        (self.written.len(), self.jumps.len(), self.return_entries.list.len())
    }

    /// Drops everything added later: a trace that was broken off is not in memory.
    pub(crate) fn truncate(&mut self, (written, jumps, return_table): (usize, usize, usize)) {
        self.written.truncate(written);
        self.jumps.truncate(jumps);
        self.return_entries.truncate(return_table);
    }
}

/// The entries of the return table that the batch will fill.
#[derive(Debug)]
pub(crate) struct ReturnEntries {
    list: Vec<u16>,
    /// A bit for each entry.
    taken: Box<[u64; RETURN_ENTRIES / 64]>,
}

impl Default for ReturnEntries {
    fn default() -> Self {
        Self { list: Vec::new(), taken: Box::new([0; RETURN_ENTRIES / 64]) }
    }
}

impl ReturnEntries {
    /// Takes the entry of an address, unless it is taken already.
    pub(crate) fn take(&mut self, address: u64) -> bool {
        let entry = address as u16;
        let (word, bit) = (&mut self.taken[usize::from(entry) / 64], 1 << (entry % 64));
        let is_free = *word & bit == 0;
        if is_free {
            *word |= bit;
            self.list.push(entry);
        }
        is_free
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        for entry in self.list.drain(length..) {
            self.taken[usize::from(entry) / 64] &= !(1 << (entry % 64));
        }
    }
}

const _: () = assert!(RETURN_ENTRIES == 1 << u16::BITS);

/// A jump whose four displacement bytes are to be filled in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Jump {
    pub(crate) unit: usize,
    pub(crate) site: u64,
    pub(crate) target: u64,
    /// The kind of entry that it needs.
    pub(crate) entry_kind: EntryKind,
}
