//! Vectors that only grow, in chunks, so that growing never copies.

use std::ops::{Index, IndexMut};

/// The number of rows in a chunk.
const AT_ONCE: usize = 1 << 10;

/// A list that grows without being moved. A vector would leave its former places behind when it grows, which
/// add up to as much memory again.
#[derive(Debug)]
pub(crate) struct ChunkedVec<T> {
    /// All chunks but the last are full.
    parts: Vec<Vec<T>>,
    length: usize,
}

impl<T> Default for ChunkedVec<T> {
    fn default() -> Self {
        Self { parts: Vec::new(), length: 0 }
    }
}

impl<T> ChunkedVec<T> {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn push(&mut self, row: T) {
        self.length += 1;
        if let Some(part) = self.parts.last_mut().filter(|part| part.len() < AT_ONCE) {
            return part.push(row);
        }
        let mut part = Vec::with_capacity(AT_ONCE);
        part.push(row);
        self.parts.push(part);
    }

    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        self.parts.get(at / AT_ONCE)?.get(at % AT_ONCE)
    }
}

impl<T> Index<usize> for ChunkedVec<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.parts[at / AT_ONCE][at % AT_ONCE]
    }
}

impl<T> IndexMut<usize> for ChunkedVec<T> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.parts[at / AT_ONCE][at % AT_ONCE]
    }
}

/// Runs of values, each contiguous, that are only ever added and never moved.
#[derive(Debug, Default)]
pub(crate) struct Runs<T> {
    parts: Vec<Vec<T>>,
}

/// The number of values in a chunk of runs; no run has more.
const RUNS_AT_ONCE: usize = 1 << 14;

impl<T: Copy> Runs<T> {
    /// Adds a run, of at most `RUNS_AT_ONCE` values. Returns its number.
    pub(crate) fn add(&mut self, run: &[T]) -> u32 {
        if self.parts.last().is_none_or(|part| part.len() + run.len() > RUNS_AT_ONCE) {
            self.parts.push(Vec::with_capacity(RUNS_AT_ONCE));
        }
        let number = self.parts.len() - 1;
        let part = &mut self.parts[number];
        let at = part.len();
        part.extend_from_slice(run);
        (number * RUNS_AT_ONCE + at) as u32
    }

    /// A run, whose length the caller knows.
    pub(crate) fn get(&self, number: u32, length: usize) -> &[T] {
        let (part, at) = (number as usize / RUNS_AT_ONCE, number as usize % RUNS_AT_ONCE);
        self.parts.get(part).map_or(&[], |part| &part[at..at + length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_stand_in_one_stub() {
        let mut runs = Runs::default();
        let lengths = [RUNS_AT_ONCE - 1, 3, 0, 2, RUNS_AT_ONCE, 1];
        let numbers: Vec<u32> =
            (0..).zip(lengths).map(|(value, length)| runs.add(&vec![value; length])).collect();
        for ((value, length), number) in (0..).zip(lengths).zip(numbers) {
            assert_eq!(runs.get(number, length), vec![value; length]);
        }
    }

    #[test]
    fn rows_are_found_by_their_numbers() {
        let mut pile = ChunkedVec::default();
        (0..3 * AT_ONCE + 1).for_each(|row| pile.push(row));
        assert_eq!(pile.len(), 3 * AT_ONCE + 1);
        pile[AT_ONCE] = 7;
        for at in [0, AT_ONCE - 1, 2 * AT_ONCE, 3 * AT_ONCE] {
            assert_eq!((pile[at], pile.get(at)), (at, Some(&at)));
        }
        assert_eq!((pile.get(3 * AT_ONCE + 1), pile[AT_ONCE]), (None, 7));
    }
}
