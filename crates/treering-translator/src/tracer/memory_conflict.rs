//! Memory of ours that the program wants.
//!
//! Where it lies is chosen so that no program is known to want it ([`crate::sys::layout`]). One that maps something there all
//! the same, at an address that it insists on, would tear our memory from under its own code. Counters make room. What
//! cannot be moved is a reason to end the process, or to say what it was not given.

use std::io;

use crate::address_space::AddressSpace;
use crate::program::region::PAGE;
use crate::sys::layout::UNIT_SIZE;
use crate::sys::layout::{
    COUNTERS, ROOM_SIZE, SEGMENT_SIZE, SYSCALL_PAGE, SYSCALL_PAGE_SIZE, TABLES, TABLES_SIZE,
};
use crate::sys::maps::{self, Mapping};
use crate::sys::remote_syscall::StoppedThread;
use crate::sys::{self, Registers};
use crate::tracer::syscall::Verdict;

/// What lies at the same addresses in every process, with its size.
const FIXED: [(u64, u64); 2] = [(SYSCALL_PAGE, SYSCALL_PAGE_SIZE + ROOM_SIZE), (TABLES, TABLES_SIZE)];

/// Where memory of ours must lie and something else does already.
pub(crate) fn taken(mappings: &[Mapping]) -> Option<u64> {
    let overlaps = |&(start, size): &(u64, u64)| {
        mappings.iter().any(|mapping| mapping.start < start + size && start < mapping.end)
    };
    FIXED.into_iter().find(overlaps).map(|(start, _)| start)
}

/// Why a process is ended.
const OVER_COUNTERS: &str = "it wants memory where its counters lie, which cannot be moved while it has several \
                             threads or a tree is kept";
const OVER_CODE: &str = "it wants memory where its translated code and tables lie";
/// What is said of memory that it could have had without us.
const NOT_GIVEN: &str = "it asked for memory at an address where the counter's own lies, and did not get it, as it would \
                         have otherwise";
const SMALL_HEAP: &str = "its heap (brk) could not grow as far as it would have otherwise, as the counter's own memory \
                          lies there";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ours {
    Counters,
    Other,
}

impl AddressSpace {
    /// Maps a segment of thread areas by `map`, at the first place that is free, and returns that.
    pub(crate) fn place_segment(
        &self,
        tid: i32,
        mut map: impl FnMut(u64) -> io::Result<()>,
        is_wanted: impl Fn(u64) -> bool,
    ) -> io::Result<u64> {
        let places = COUNTERS.into_iter().flat_map(|range| range.step_by(SEGMENT_SIZE as usize));
        let mut places = places.filter(|&place| !self.segment_bases.contains(&place) && !is_wanted(place));
        let mut known: Option<Vec<Mapping>> = None;
        let is_free = |place: u64, known: &Option<Vec<Mapping>>| {
            let overlaps = |mapping: &Mapping| mapping.start < place + SEGMENT_SIZE && place < mapping.end;
            !known.iter().flatten().any(overlaps)
        };
        loop {
            let place = places.find(|&place| is_free(place, &known));
            let place = place.ok_or_else(|| io::Error::other("there is no room for its counters"))?;
            match map(place) {
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {
                    known = Some(maps::mappings(tid)?);
                }
                done => return done.map(|()| place),
            }
        }
    }

    /// What of ours lies between two addresses.
    fn ours_within(&self, from: u64, to: u64) -> Option<Ours> {
        let overlaps = |start: u64, size: u64| start < to && from < start + size;
        let is_other = FIXED.iter().any(|&(start, size)| overlaps(start, size))
            || self.units.iter().any(|unit| overlaps(unit.base, UNIT_SIZE));
        match is_other {
            true => Some(Ours::Other),
            false => {
                self.segment_bases.iter().any(|&base| overlaps(base, SEGMENT_SIZE)).then_some(Ours::Counters)
            }
        }
    }

    /// Makes room for memory that the program is about to change, if ours lies there. `gives_way`: the kernel does not
    /// do it then. Nothing if the call may go on.
    pub(crate) fn give_way(
        &mut self,
        (start, length): (u64, u64),
        gives_way: bool,
        area: usize,
        registers: &mut Registers,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<Option<Verdict>> {
        let end = start.saturating_add(length).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
        Ok(match self.ours_within(start, end) {
            None => None,
            Some(Ours::Counters) if !self.has_contexts() && self.threads() == 1 => {
                self.move_counters((start, end), thread)?;
                // The call is made again, from where its thread finds its counters now.
                registers.0.rip -= SYSTEM_CALL;
                registers.0.rax = registers.0.orig_rax;
                registers.0.orig_rax = u64::MAX;
                registers.0.gs_base = self.gs_base(area);
                sys::set_registers(thread.tid, registers)?;
                Some(Verdict::Go)
            }
            Some(_) if gives_way => {
                self.warnings.push(NOT_GIVEN);
                None
            }
            Some(Ours::Other) => Some(Verdict::Refuse(OVER_CODE)),
            Some(Ours::Counters) => Some(Verdict::Refuse(OVER_COUNTERS)),
        })
    }

    /// Moves all counters out of a range, of which no other thread is using any.
    fn move_counters(&mut self, (start, end): (u64, u64), thread: &mut StoppedThread<'_>) -> io::Result<()> {
        let tid = thread.tid;
        let is_wanted = |place: u64| place < end && start < place + SEGMENT_SIZE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        for at in 0..self.segment_bases.len() {
            let (old, memory) = (self.segment_bases[at], &self.segments[at]);
            let new = thread.remotely(|calls| {
                let map = |place| calls.map(memory, place, SEGMENT_SIZE, protection, false);
                self.place_segment(tid, map, is_wanted)
            })?;
            thread.remotely(|calls| calls.call(libc::SYS_munmap, [old, SEGMENT_SIZE, 0, 0, 0, 0]))?;
            self.segment_bases[at] = new;
        }
        Ok(())
    }

    /// Says so if the heap could not grow to an address because of ours.
    pub(crate) fn heap_grown(&mut self, wanted: u64, end: u64) {
        if end < wanted && self.ours_within(end, wanted).is_some() {
            self.warnings.push(SMALL_HEAP);
        }
    }
}

/// The length of the instruction.
const SYSTEM_CALL: u64 = 2;
