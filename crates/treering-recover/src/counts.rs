//! Executions of stretches by thread.

use std::ops::Range;

use treering_profile::ThreadId;

/// Executions of every stretch, by thread.
///
/// A thread executes few of all stretches, so only those are kept, and they are laid out one thread at a time.
pub(super) struct Counts {
    /// Sorted by thread; of each, stretches with their counts, by index.
    threads: Vec<(ThreadId, Vec<(u32, u64)>)>,
    row: ThreadCounts,
}

/// The counts of one thread while they are added up.
pub(super) struct ThreadCounts {
    /// By stretch.
    counts: Vec<i64>,
    /// Where they may be others than 0.
    touched: Vec<Range<usize>>,
}

impl ThreadCounts {
    /// Adds to the counts of stretches, whose indexes rise.
    pub(super) fn add(&mut self, stretches: impl Iterator<Item = usize>, executions: i64) {
        let mut touched: Option<Range<usize>> = None;
        for at in stretches {
            self.counts[at] = self.counts[at].wrapping_add(executions);
            touched = Some(touched.map_or(at, |range| range.start)..at + 1);
        }
        self.touched.extend(touched);
    }

    /// Shows each count that is not 0, in order, and makes it 0.
    fn take(&mut self, mut show: impl FnMut(usize, i64)) {
        let all = self.touched.iter().map(Range::len).sum::<usize>();
        if all > self.counts.len() / 4 {
            self.touched = std::iter::once(0..self.counts.len()).collect();
        }
        self.touched.sort_unstable_by_key(|range| range.start);
        for at in self.touched.drain(..).flatten() {
            let count = std::mem::take(&mut self.counts[at]);
            if count != 0 {
                show(at, count);
            }
        }
    }
}

impl Counts {
    pub(super) fn new(stretches: usize) -> Self {
        Self { threads: Vec::new(), row: ThreadCounts { counts: vec![0; stretches], touched: Vec::new() } }
    }

    /// Adds a thread, whose counts `fill` adds up; those below 0 become 0. Tells of which stretches they were.
    ///
    /// Threads are added in order.
    pub(super) fn add(&mut self, thread: ThreadId, fill: impl FnOnce(&mut ThreadCounts)) -> Vec<usize> {
        fill(&mut self.row);
        let (mut negative, mut kept) = (Vec::new(), Vec::new());
        self.row.take(|at, count| match u64::try_from(count) {
            Ok(count) => kept.push((at as u32, count)),
            Err(_) => negative.push(at),
        });
        self.threads.push((thread, kept));
        negative
    }

    /// Every thread with the stretches that it executed, in order, and how often.
    pub(super) fn threads(&self) -> impl Iterator<Item = (ThreadId, &[(u32, u64)])> {
        self.threads.iter().map(|(thread, kept)| (*thread, kept.as_slice()))
    }

    /// Shows every thread with the count of each stretch, and with those that it executed, in order.
    pub(super) fn each(&self, mut show: impl FnMut(ThreadId, &[u64], &[(u32, u64)])) {
        let mut row = vec![0; self.row.counts.len()];
        for (thread, kept) in &self.threads {
            kept.iter().for_each(|&(at, count)| row[at as usize] = count);
            show(*thread, &row, kept);
            kept.iter().for_each(|&(at, _)| row[at as usize] = 0);
        }
    }
}
