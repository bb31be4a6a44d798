//! The values of a thread's counters, also when only a part of its run is counted.

use std::io;
use std::ops::Range;

use crate::areas::thread_areas::ThreadAreas;
use crate::sys::layout::{FIRST_COUNTER, SAVED_COUNTS, SELECTED, counter_slot};

/// Whether a thread's counters count, as its area states it.
pub(crate) const WHOLE: u64 = 0;
/// They do not; what was counted before was saved.
pub(crate) const INACTIVE: u64 = 1;
/// They do, and are to be added to what was saved.
pub(crate) const ACTIVE: u64 = 2;

/// The slot of what a counter had come to.
fn saved_count_slot(counter: u32) -> u32 {
    SAVED_COUNTS + counter * 8
}

/// What all counters of a thread come to.
#[derive(Debug)]
pub(crate) struct CounterValues {
    all: Vec<u64>,
    /// Those that may be other than 0.
    parts: Vec<Range<u32>>,
}

impl CounterValues {
    /// What a counter comes to.
    pub(crate) fn of(&self, counter: u32) -> u64 {
        self.all[counter as usize]
    }

    /// Those that are not 0, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let all = self.parts.iter().cloned().flatten().map(|counter| (counter, self.of(counter)));
        all.filter(|(_, count)| *count != 0)
    }
}

impl ThreadAreas {
    /// What a counter of a thread comes to.
    pub(crate) fn count(&self, area: usize, counter: u32) -> u64 {
        let now = || self.slot(area, counter_slot(counter));
        match self.slot(area, SELECTED) {
            WHOLE => now(),
            INACTIVE => self.slot(area, saved_count_slot(counter)),
            _ => self.slot(area, saved_count_slot(counter)) + now(),
        }
    }

    /// What all counters of a thread come to, by number.
    pub(crate) fn counts(&self, area: usize) -> CounterValues {
        if self.slot(area, SELECTED) != WHOLE {
            let all = (0..self.counters()).map(|counter| self.count(area, counter)).collect();
            let whole = 0..self.counters();
            return CounterValues { all, parts: Vec::from([whole]) };
        }
        let (memory, offset) = self.area_memory(area);
        let first = offset + u64::from(FIRST_COUNTER);
        let counter = |at: u64| (at - first) / 8;
        let mut all = vec![0; self.counters() as usize];
        let mut parts = Vec::new();
        // What was never touched need not be read.
        for written in memory.written(first, u64::from(self.counters()) * 8) {
            let part = counter(written.start)..counter(written.end);
            for (count, at) in all[part.start as usize..part.end as usize].iter_mut().zip(part.clone()) {
                *count = memory.load(first + at * 8);
            }
            parts.push(part.start as u32..part.end as u32);
        }
        CounterValues { all, parts }
    }

    /// Sets a thread's counters to 0; what they counted goes to `save`.
    fn take_counts(&self, area: usize, mut save: impl FnMut(u32, u64)) {
        let mut bytes = vec![0; self.counters() as usize * 8];
        self.read_area(area, FIRST_COUNTER, &mut bytes);
        for (counter, bytes) in (0..).zip(bytes.as_chunks::<8>().0) {
            let count = u64::from_le_bytes(*bytes);
            if count != 0 {
                save(counter, count);
                self.set_slot(area, counter_slot(counter), 0);
            }
        }
    }

    /// Counts from now on.
    pub(crate) fn activate(&self, area: usize) {
        self.take_counts(area, |_, _| {});
        self.set_slot(area, SELECTED, ACTIVE);
    }

    /// Counts nothing from now on.
    ///
    /// # Errors
    /// There is no room for what was counted.
    pub(crate) fn deactivate(&self, area: usize) -> io::Result<()> {
        if self.slot(area, SELECTED) != INACTIVE {
            self.reserve_saved_counts(area)?;
            self.take_counts(area, |counter, count| {
                let slot = saved_count_slot(counter);
                self.set_slot(area, slot, self.slot(area, slot) + count);
            });
        }
        self.set_slot(area, SELECTED, INACTIVE);
        Ok(())
    }
}
