//! Rows that are only ever added.

use std::ops::{Index, IndexMut};

/// How many rows lie behind each other in memory.
const AT_ONCE: usize = 1 << 12;

/// A list that grows without being moved: as a vector it would leave its former places behind, which add up
/// to as much memory again.
#[derive(Debug)]
pub(crate) struct Pile<T> {
    /// All but the last are full.
    parts: Vec<Vec<T>>,
    length: usize,
}

impl<T> Default for Pile<T> {
    fn default() -> Self {
        Self { parts: Vec::new(), length: 0 }
    }
}

impl<T> Pile<T> {
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

impl<T> Index<usize> for Pile<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.parts[at / AT_ONCE][at % AT_ONCE]
    }
}

impl<T> IndexMut<usize> for Pile<T> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.parts[at / AT_ONCE][at % AT_ONCE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_their_numbers() {
        let mut pile = Pile::default();
        (0..3 * AT_ONCE + 1).for_each(|row| pile.push(row));
        assert_eq!(pile.len(), 3 * AT_ONCE + 1);
        pile[AT_ONCE] = 7;
        for at in [0, AT_ONCE - 1, 2 * AT_ONCE, 3 * AT_ONCE] {
            assert_eq!((pile[at], pile.get(at)), (at, Some(&at)));
        }
        assert_eq!((pile.get(3 * AT_ONCE + 1), pile[AT_ONCE]), (None, 7));
    }
}
