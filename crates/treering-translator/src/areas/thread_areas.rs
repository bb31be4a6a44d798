//! The memory of threads. Each thread has an area with saved registers and counters, followed by its tree.
//!
//! Areas lie in segments, which the program and the tracer share. Translated code reaches its thread's area through
//! GS.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use crate::areas::counter_file::{self, COUNTERS_AT_ONCE, Spare};
use crate::areas::tree_layout::CONTEXT_AREA;
use crate::areas::trees::Trees;
use crate::error::Exhausted;
use crate::sys::layout::{
    AREAS_PER_SEGMENT, CALL_NEXT, COUNTERS, LOG_EMPTY, LOG_POSITION, REQUEST, SAVED_COUNTS, SEGMENT_SIZE,
    SELECTED, THREAD_AREA,
};
use crate::sys::remote_syscall::{RemoteSyscalls, StoppedThread};
use crate::sys::shared_memory::SharedMemory;
use treering_proc::Mapping;

/// The areas of all threads of an address space.
#[derive(Debug)]
pub(crate) struct ThreadAreas {
    segments: Vec<SharedMemory>,
    /// Where each segment lies in the program; see [`COUNTERS`](crate::sys::layout::COUNTERS). With trees,
    /// where each area lies.
    pub(crate) segment_bases: Vec<u64>,
    /// The path of the counters' files, if they are in files.
    pub(crate) files: Option<PathBuf>,
    free_areas: BTreeSet<usize>,
    /// The number of areas, including free ones.
    made: usize,
    /// For each area, the bytes from its start on that have room on the disk.
    reserved: Vec<u64>,
    counters: u32,
    /// The most counters that there may be.
    most_counters: u32,
    /// The trees of threads, if they are kept.
    pub(crate) trees: Option<Box<Trees>>,
}

impl ThreadAreas {
    /// No areas yet; `files` is the path for their files, if they are to be in files.
    pub(crate) fn new(files: Option<PathBuf>, most_counters: u32, trees: Option<Box<Trees>>) -> Self {
        Self {
            segments: Vec::new(),
            segment_bases: Vec::new(),
            files,
            free_areas: BTreeSet::new(),
            made: 0,
            reserved: Vec::new(),
            counters: 0,
            most_counters,
            trees,
        }
    }

    /// Whether trees are kept.
    pub(crate) fn has_trees(&self) -> bool {
        self.trees.is_some()
    }

    /// The entry addresses of functions, by number, if trees are kept.
    pub(crate) fn functions(&self) -> &[u64] {
        self.trees.as_ref().map_or(&[], |trees| &trees.functions.addresses)
    }

    /// Adds memory for more areas. It replaces the mapping at `replaced`, if there is one.
    pub(crate) fn add_segment(
        &mut self,
        thread: &mut StoppedThread<'_>,
        protection: i32,
        replaced: Option<u64>,
        spare: Option<Spare>,
    ) -> io::Result<()> {
        let memory = counter_file::counters(self.files.as_deref(), self.segments.len(), SEGMENT_SIZE, spare)?;
        let tid = thread.tid;
        if !self.has_trees() {
            let map = |calls: &mut RemoteSyscalls<'_, '_>, place, replace| {
                calls.map(&memory, place, SEGMENT_SIZE, protection, replace)
            };
            let base = thread.remotely(|calls| match replaced {
                Some(place) => map(calls, place, true).map(|()| place),
                None => self.place_segment(tid, |place| map(calls, place, false), |_| false),
            })?;
            self.segment_bases.push(base);
        }
        memory.expect_no_order();
        self.segments.push(memory);
        Ok(())
    }

    /// The memory of the first counters, which are no longer used.
    pub(crate) fn into_counters(self) -> Option<SharedMemory> {
        self.segments.into_iter().next().filter(SharedMemory::is_on_disk)
    }

    /// Takes an area for a stopped thread; all its counters are 0.
    pub(crate) fn take_area(&mut self, thread: &mut StoppedThread<'_>) -> io::Result<usize> {
        let area = self.free_area(thread)?;
        self.empty_log(area);
        Ok(area)
    }

    pub(crate) fn free_area(&mut self, thread: &mut StoppedThread<'_>) -> io::Result<usize> {
        if let Some(area) = self.free_areas.pop_first() {
            self.reserve(area)?;
            self.renew_tree(area, thread)?;
            return Ok(area);
        }
        if self.made == self.segments.len() * AREAS_PER_SEGMENT {
            self.add_segment(thread, libc::PROT_READ | libc::PROT_WRITE, None, None)?;
        }
        self.made += 1;
        self.reserve(self.made - 1)?;
        self.map_tree(self.made - 1, thread)?;
        Ok(self.made - 1)
    }

    /// Reserves room for an area's counters, if they are in a file.
    pub(crate) fn reserve(&mut self, area: usize) -> io::Result<()> {
        self.reserved.resize(self.made.max(self.reserved.len()), 0);
        let (memory, offset) = self.area_memory(area);
        self.reserved[area] = counter_file::reserve(memory, offset, self.reserved[area], self.counters)?;
        self.reserve_lasts(area)
    }

    /// The number of threads that have an area.
    pub(crate) fn threads(&self) -> usize {
        self.made - self.free_areas.len()
    }

    /// The number of counters.
    pub(crate) fn counters(&self) -> u32 {
        self.counters
    }

    /// Frees the area of a thread that has ended.
    pub(crate) fn give_area_back(&mut self, area: usize) {
        self.clear_tree(area);
        let (memory, offset) = self.area_memory(area);
        if memory.load(offset + u64::from(SELECTED)) != 0 {
            memory.zero(offset + u64::from(SAVED_COUNTS), u64::from(self.counters) * 8);
        }
        memory.zero(offset, u64::from(crate::sys::layout::counter_slot(self.counters)));
        self.free_areas.insert(area);
    }

    /// The memory of an area's counters, for mapping it.
    pub(crate) fn area_memory(&self, area: usize) -> (&SharedMemory, u64) {
        let offset = (area % AREAS_PER_SEGMENT) as u64 * THREAD_AREA;
        (&self.segments[area / AREAS_PER_SEGMENT], offset)
    }

    /// Reserves room for the saved values of an area's counters.
    pub(crate) fn reserve_saved_counts(&self, area: usize) -> io::Result<()> {
        let (memory, offset) = self.area_memory(area);
        memory.reserve(offset + u64::from(SAVED_COUNTS), u64::from(self.counters) * 8)
    }

    /// Reads a part of an area whose thread is stopped.
    pub(crate) fn read_area(&self, area: usize, slot: u32, bytes: &mut [u8]) {
        let (memory, offset) = self.area_memory(area);
        memory.read(offset + u64::from(slot), bytes);
    }

    /// Eight bytes of a thread's area.
    pub(crate) fn slot(&self, area: usize, slot: u32) -> u64 {
        if u64::from(slot) >= THREAD_AREA {
            return self.tree_memory(area).load(u64::from(slot) - THREAD_AREA);
        }
        let (memory, offset) = self.area_memory(area);
        memory.load(offset + u64::from(slot))
    }

    /// Stores eight bytes in a thread's area.
    pub(crate) fn set_slot(&self, area: usize, slot: u32, value: u64) {
        if u64::from(slot) >= THREAD_AREA {
            return self.tree_memory(area).store(u64::from(slot) - THREAD_AREA, value);
        }
        let (memory, offset) = self.area_memory(area);
        memory.store(offset + u64::from(slot), value);
    }

    /// Reads bytes of a thread's area.
    pub(crate) fn read_slots(&self, area: usize, from: u32, bytes: &mut [u8]) {
        let (memory, offset) = self.area_memory(area);
        memory.read(offset + u64::from(from), bytes);
    }

    /// The base of GS for a thread with this area.
    pub(crate) fn gs_base(&self, area: usize) -> u64 {
        match self.has_trees() {
            true => self.segment_bases[area],
            false => {
                self.segment_bases[area / AREAS_PER_SEGMENT] + (area % AREAS_PER_SEGMENT) as u64 * THREAD_AREA
            }
        }
    }

    /// The distance between two areas.
    pub(crate) fn stride(&self) -> u64 {
        if self.has_trees() { CONTEXT_AREA } else { THREAD_AREA }
    }

    /// A new counter.
    ///
    /// # Errors
    /// There is no room for another one.
    pub(crate) fn new_counter(&mut self) -> io::Result<u32> {
        if self.counters >= self.most_counters {
            return Err(Exhausted::Counters.into());
        }
        self.counters += 1;
        if self.counters.is_multiple_of(COUNTERS_AT_ONCE) {
            (0..self.made).try_for_each(|area| self.reserve(area))?;
        }
        Ok(self.counters - 1)
    }

    /// Maps a segment of thread areas with `map`, at the first place that is free, and returns the place.
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
                    known = Some(treering_proc::mappings(tid)?);
                }
                done => return done.map(|()| place),
            }
        }
    }

    /// Moves all counters out of an address range. No other thread may be using them.
    pub(crate) fn move_counters(
        &mut self,
        (start, end): (u64, u64),
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<()> {
        let tid = thread.tid;
        let is_wanted = |place: u64| place < end && start < place + SEGMENT_SIZE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        for at in 0..self.segment_bases.len() {
            let (old, memory) = (self.segment_bases[at], &self.segments[at]);
            let new = thread.remotely(|calls| {
                let map = |place| calls.map(memory, place, SEGMENT_SIZE, protection, false);
                self.place_segment(tid, map, is_wanted)
            })?;
            thread.remotely(|calls| calls.unmap(old, SEGMENT_SIZE))?;
            self.segment_bases[at] = new;
        }
        Ok(())
    }

    /// Where a thread with the area continues after its last call on the system call page.
    pub(crate) fn call_next(&self, area: usize) -> u64 {
        self.slot(area, CALL_NEXT)
    }

    /// Sets where a thread continues after its call.
    pub(crate) fn set_call_next(&self, area: usize, next: u64) {
        self.set_slot(area, CALL_NEXT, next);
    }

    /// Removes all entries from an area's log.
    pub(crate) fn empty_log(&self, area: usize) {
        self.set_slot(area, LOG_POSITION, LOG_EMPTY.into());
    }

    /// Whether a thread with the area makes a request.
    pub(crate) fn has_request(&self, area: usize) -> bool {
        self.slot(area, REQUEST) as u32 != 0
    }
}
