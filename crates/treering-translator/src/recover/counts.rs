//! Executions of instructions by thread.

use treering_profile::ThreadId;

/// Executions of every instruction, by thread.
///
/// A thread executes few of all instructions, so what is kept of it are those, and they are laid out
/// one thread at a time.
pub(super) struct Counts {
    instructions: usize,
    /// Sorted by thread; of each, instructions with their counts, by index.
    threads: Vec<(ThreadId, Vec<(u32, u64)>)>,
}

impl Counts {
    pub(super) fn new(instructions: usize) -> Self {
        Self { instructions, threads: Vec::new() }
    }

    /// Adds a thread, whose counts `fill` adds up; those below 0 become 0. Tells how many they were.
    ///
    /// Threads are added in order.
    pub(super) fn add(&mut self, thread: ThreadId, fill: impl FnOnce(&mut [i64])) -> usize {
        let mut row = vec![0; self.instructions];
        fill(&mut row);
        let negative = row.iter().filter(|&&count| count < 0).count();
        let counted = row.iter().enumerate().filter(|(_, count)| **count > 0);
        let kept = counted.map(|(at, count)| (at as u32, count.cast_unsigned())).collect();
        self.threads.push((thread, kept));
        negative
    }

    /// Shows every thread with the count of each instruction, and with those that it executed.
    pub(super) fn each(&self, mut show: impl FnMut(ThreadId, &[u64], &[(u32, u64)])) {
        let mut row = vec![0; self.instructions];
        for (thread, kept) in &self.threads {
            kept.iter().for_each(|&(at, count)| row[at as usize] = count);
            show(*thread, &row, kept);
            kept.iter().for_each(|&(at, _)| row[at as usize] = 0);
        }
    }
}
