//! Memory conflicts: the program asks for addresses where the tracer's memory lies.
//!
//! The tracer's memory lies where no known program asks for memory ([`crate::sys::layout`]). A program that
//! insists on such an address would replace it while the translated code uses it. Counters can move. For
//! memory that cannot move, the process is ended, or the result says which memory the program did not get.

use std::io;

use crate::program::region::PAGE;
use crate::sys::layout::{
    ROOM_SIZE, SEGMENT_SIZE, SYSCALL_PAGE, SYSCALL_PAGE_SIZE, TABLES, TABLES_SIZE, UNIT_SIZE,
};
use crate::sys::{self, Registers};
use crate::tracer::thread::Verdict;
use crate::tracer::thread_stop::ThreadStop;
use treering_proc::Mapping;

/// The areas that lie at the same addresses in every process, with their sizes.
const FIXED: [(u64, u64); 2] = [(SYSCALL_PAGE, SYSCALL_PAGE_SIZE + ROOM_SIZE), (TABLES, TABLES_SIZE)];

/// The address at which our memory has to lie and another mapping is already.
pub(crate) fn taken(mappings: &[Mapping]) -> Option<u64> {
    let overlaps = |&(start, size): &(u64, u64)| {
        mappings.iter().any(|mapping| mapping.start < start + size && start < mapping.end)
    };
    FIXED.into_iter().find(overlaps).map(|(start, _)| start)
}

/// Why the process is ended.
const OVER_COUNTERS: &str = "it wants memory where its counters lie, which cannot be moved while it has several \
                             threads or a tree is kept";
const OVER_CODE: &str = "it wants memory where its translated code and tables lie";
/// The note on memory that the program would have got without the tracer.
const NOT_GIVEN: &str = "it asked for memory at an address where the tracer's own memory lies, and did not get it; \
                         without the tracer it would have";
const SMALL_HEAP: &str =
    "its heap (brk) could not grow as far as it asked, because the tracer's own memory lies there";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ours {
    Counters,
    Other,
}

impl ThreadStop<'_, '_> {
    /// The part of our memory that lies between two addresses.
    fn ours_within(&self, from: u64, to: u64) -> Option<Ours> {
        let overlaps = |start: u64, size: u64| start < to && from < start + size;
        let is_other = FIXED.iter().any(|&(start, size)| overlaps(start, size))
            || self.space.cache.units.iter().any(|unit| overlaps(unit.base, UNIT_SIZE));
        match is_other {
            true => Some(Ours::Other),
            false => self
                .space
                .areas
                .segment_bases
                .iter()
                .any(|&base| overlaps(base, SEGMENT_SIZE))
                .then_some(Ours::Counters),
        }
    }

    /// Makes room for memory that the program is about to change, if ours lies there. `gives_way`: the kernel
    /// refuses the call if something is mapped there. Returns nothing if the call may go on.
    pub(crate) fn give_way(
        &mut self,
        (start, length): (u64, u64),
        gives_way: bool,
        registers: &mut Registers,
    ) -> io::Result<Option<Verdict>> {
        let end = start.saturating_add(length).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
        Ok(match self.ours_within(start, end) {
            None => None,
            Some(Ours::Counters) if !self.space.areas.has_trees() && self.space.areas.threads() == 1 => {
                self.space.areas.move_counters((start, end), self.stopped)?;
                // The thread makes the call again, from where its counters are now.
                registers.0.rip -= SYSTEM_CALL;
                registers.0.rax = registers.0.orig_rax;
                registers.0.orig_rax = u64::MAX;
                registers.0.gs_base = self.space.areas.gs_base(self.thread.area);
                sys::set_registers(self.stopped.tid, registers)?;
                Some(Verdict::Go)
            }
            Some(_) if gives_way => {
                self.space.warnings.push(NOT_GIVEN);
                None
            }
            Some(Ours::Other) => Some(Verdict::Refuse(OVER_CODE)),
            Some(Ours::Counters) => Some(Verdict::Refuse(OVER_COUNTERS)),
        })
    }

    /// Notes that the heap could not grow to an address because our memory is in the way.
    pub(crate) fn heap_grown(&mut self, wanted: u64, end: u64) {
        if end < wanted && self.ours_within(end, wanted).is_some() {
            self.space.warnings.push(SMALL_HEAP);
        }
    }
}

/// The length of the instruction.
const SYSTEM_CALL: u64 = 2;
