//! The values of a thread's counters, also when only a part of its run is counted.

use std::io;
use std::ops::Range;

use crate::areas::thread_areas::ThreadAreas;
use crate::sys::layout::{FIRST_COUNTER, SAVED_COUNTS, SELECTED, counter_slot};

/// The state of a thread's counters, in its area: they count.
pub(crate) const WHOLE: u64 = 0;
/// They do not count; their earlier values were saved.
pub(crate) const INACTIVE: u64 = 1;
/// They count, and their values are added to the saved ones.
pub(crate) const ACTIVE: u64 = 2;

/// The slot for a counter's saved value.
fn saved_count_slot(counter: u32) -> u32 {
    SAVED_COUNTS + counter * 8
}

/// The values of all counters of a thread.
#[derive(Debug)]
pub(crate) struct CounterValues {
    all: Vec<u64>,
    /// The ranges of counters that may be nonzero.
    parts: Vec<Range<u32>>,
}

impl CounterValues {
    /// The value of a counter.
    pub(crate) fn of(&self, counter: u32) -> u64 {
        self.all[counter as usize]
    }

    /// The nonzero values, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let all = self.parts.iter().cloned().flatten().map(|counter| (counter, self.of(counter)));
        all.filter(|(_, count)| *count != 0)
    }
}

impl ThreadAreas {
    /// The value of a thread's counter, with its saved part.
    pub(crate) fn count(&self, area: usize, counter: u32) -> u64 {
        let now = || self.slot(area, counter_slot(counter));
        match self.slot(area, SELECTED) {
            WHOLE => now(),
            INACTIVE => self.slot(area, saved_count_slot(counter)),
            _ => self.slot(area, saved_count_slot(counter)) + now(),
        }
    }

    /// The values of all counters of a thread.
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
        // Pages that were never written hold zeros, and are not read.
        for written in memory.written(first, u64::from(self.counters()) * 8) {
            let part = counter(written.start)..counter(written.end);
            for (count, at) in all[part.start as usize..part.end as usize].iter_mut().zip(part.clone()) {
                *count = memory.load(first + at * 8);
            }
            parts.push(part.start as u32..part.end as u32);
        }
        CounterValues { all, parts }
    }

    /// Sets a thread's counters to 0, and passes their values to `save`.
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

    /// Begins to count.
    pub(crate) fn activate(&self, area: usize) {
        self.take_counts(area, |_, _| {});
        self.set_slot(area, SELECTED, ACTIVE);
    }

    /// Stops counting, and saves the values.
    ///
    /// # Errors
    /// There is no room for the saved values.
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
