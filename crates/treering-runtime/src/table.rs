//! A hash table that is read without a lock and takes no memory from the program's allocator.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::sys::{SharedWords, Words};

/// Numbers by key. Entries are added by one writer at a time and never removed; readers need no lock. Outgrown tables
/// are kept, since a reader may be using them: all together they are no larger than the one in use.
#[derive(Debug)]
pub(crate) struct Table {
    /// The slots in use, a power of two of them.
    slots: SharedWords,
    used: AtomicUsize,
}

/// A key and its value. The key is 0 while the slot is empty.
type Slot = [AtomicU64; 2];

impl Table {
    pub(crate) const fn new() -> Self {
        Self { slots: SharedWords::none(), used: AtomicUsize::new(0) }
    }

    /// The first value stored under `key` that `is_it` accepts.
    #[inline]
    pub(crate) fn find(&self, key: u64, mut is_it: impl FnMut(u64) -> bool) -> Option<u64> {
        let key = key.max(1);
        for [found, value] in from(self.slots(), key) {
            match found.load(Ordering::Acquire) {
                0 => break,
                found if found == key => {
                    let value = value.load(Ordering::Relaxed);
                    if is_it(value) {
                        return Some(value);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Adds a value; false when there is no memory. One caller at a time.
    pub(crate) fn insert(&self, key: u64, value: u64) -> bool {
        let used = self.used.load(Ordering::Relaxed);
        if used * 4 >= self.slots().len() * 3 && !self.grow() {
            return false;
        }
        put(self.slots(), key.max(1), value);
        self.used.store(used + 1, Ordering::Relaxed);
        true
    }

    /// Removes all values but those that `keep` accepts, by key and value; the slots are kept for present readers.
    /// Without memory for other slots, everything is removed. One caller at a time.
    pub(crate) fn retain(&self, keep: impl Fn(u64, u64) -> bool) {
        let entries: usize = self.entries().filter(|&(key, value)| keep(key, value)).count();
        let Some(words) = words_for((entries * 2).next_power_of_two()) else { return self.clear() };
        let (fresh, _) = words.get().as_chunks();
        self.entries().filter(|&(key, value)| keep(key, value)).for_each(|(key, value)| put(fresh, key, value));
        self.slots.set(Some(words));
        self.used.store(entries, Ordering::Relaxed);
    }

    /// Removes all values; the slots are kept for present readers.
    pub(crate) fn clear(&self) {
        self.slots.set(None);
        self.used.store(0, Ordering::Relaxed);
    }

    #[inline]
    fn slots(&self) -> &'static [Slot] {
        self.slots.get().as_chunks().0
    }

    fn entries(&self) -> impl Iterator<Item = (u64, u64)> {
        let both = |[key, value]: &Slot| (key.load(Ordering::Relaxed), value.load(Ordering::Relaxed));
        self.slots().iter().map(both).filter(|&(key, _)| key != 0)
    }

    fn grow(&self) -> bool {
        let Some(words) = words_for(self.slots().len() * 2) else { return false };
        let (new, _) = words.get().as_chunks();
        self.entries().for_each(|(key, value)| put(new, key, value));
        self.slots.set(Some(words));
        true
    }
}

/// Words for so many slots, or for the least that a table has.
fn words_for(slots: usize) -> Option<Words> {
    Words::new(slots.max(128) * 2)
}

/// All slots, from the one on that a key should have.
#[inline]
fn from(slots: &'static [Slot], key: u64) -> impl Iterator<Item = &'static Slot> {
    let mask = slots.len().wrapping_sub(1);
    (0..slots.len()).map(move |further| &slots[(spread(key) + further) & mask])
}

/// Writes to the first empty slot for `key`; there is one.
fn put(slots: &'static [Slot], key: u64, value: u64) {
    let empty = from(slots, key).find(|[key, _]| key.load(Ordering::Relaxed) == 0);
    if let Some([place, number]) = empty {
        number.store(value, Ordering::Relaxed);
        place.store(key, Ordering::Release);
    }
}

/// Spreads keys that are addresses or small numbers.
#[inline]
fn spread(key: u64) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) as usize
}

/// A hash of several texts, good enough to tell names apart (FNV-1a with a final mix).
pub(crate) fn hash(texts: &[&[u8]]) -> u64 {
    let mut state = 0xCBF2_9CE4_8422_2325_u64;
    for text in texts {
        let mut words = text.chunks_exact(8);
        for word in &mut words {
            let word =
                u64::from_le_bytes([word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7]]);
            state = (state ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            state ^= state >> 32;
        }
        for byte in words.remainder() {
            state = (state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
        state = (state ^ text.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        state ^= state >> 29;
    }
    state.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserted_keys_are_found_after_growing() {
        let table = Table::new();
        assert_eq!(table.find(1, |_| true), None);
        for key in 1..1000 {
            assert!(table.insert(key, key * 2));
        }
        assert!((1..1000).all(|key| table.find(key, |_| true) == Some(key * 2)));
        assert_eq!(table.find(1000, |_| true), None);
    }

    #[test]
    fn only_retained_keys_are_found() {
        let table = Table::new();
        (1..1000).for_each(|key| assert!(table.insert(key, key * 2)));
        table.retain(|key, value| value == key * 2 && key % 3 == 0);
        assert!((1..1000).all(|key| table.find(key, |_| true) == (key % 3 == 0).then_some(key * 2)));
        assert!(table.insert(1, 7));
        assert_eq!(table.find(1, |_| true), Some(7));
    }

    #[test]
    fn equal_keys_are_told_apart_by_their_values() {
        let table = Table::new();
        table.insert(7, 1);
        table.insert(7, 2);
        assert_eq!(table.find(7, |value| value == 2), Some(2));
        assert_eq!(table.find(7, |value| value == 3), None);
    }

    #[test]
    fn texts_that_only_differ_in_where_they_are_cut_have_different_hashes() {
        assert_ne!(hash(&[b"ab", b"c"]), hash(&[b"a", b"bc"]));
        assert_ne!(hash(&[b"12345678"]), hash(&[b"12345678", b""]));
    }
}
