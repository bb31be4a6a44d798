//! A hash table that is read without a lock and takes no memory from the program's allocator.

use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crate::sys;

/// Numbers by key. Entries are added by one writer at a time and never removed; readers need no lock. Outgrown tables
/// are kept, since a reader may be using them: all together they are no larger than the one in use.
#[derive(Debug)]
pub(crate) struct Table {
    /// The slots in use. The first is no slot: its key is their number, a power of two.
    slots: AtomicPtr<Slot>,
    used: AtomicUsize,
}

#[derive(Debug)]
#[repr(C)]
struct Slot {
    /// 0 while the slot is empty.
    key: AtomicU64,
    value: AtomicU64,
}

impl Table {
    pub(crate) const fn new() -> Self {
        Self { slots: AtomicPtr::new(core::ptr::null_mut()), used: AtomicUsize::new(0) }
    }

    /// The first value stored under `key` that `is_it` accepts.
    #[inline]
    pub(crate) fn find(&self, key: u64, mut is_it: impl FnMut(u64) -> bool) -> Option<u64> {
        let slots = self.slots.load(Ordering::Acquire);
        if slots.is_null() {
            return None;
        }
        let key = key.max(1);
        // SAFETY: tables are made by `grow`, which writes their size first, and never freed.
        let (slots, mask) = unsafe { (slots.add(1), (*slots).key.load(Ordering::Relaxed) as usize - 1) };
        let mut at = spread(key) & mask;
        loop {
            // SAFETY: `at` is below the number of slots.
            let slot = unsafe { &*slots.add(at) };
            match slot.key.load(Ordering::Acquire) {
                0 => return None,
                found if found == key => {
                    let value = slot.value.load(Ordering::Relaxed);
                    if is_it(value) {
                        return Some(value);
                    }
                }
                _ => {}
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a value; false when there is no memory. One caller at a time.
    pub(crate) fn insert(&self, key: u64, value: u64) -> bool {
        let used = self.used.load(Ordering::Relaxed);
        if used * 4 >= self.size() * 3 && !self.grow() {
            return false;
        }
        put(self.slots.load(Ordering::Relaxed), key.max(1), value);
        self.used.store(used + 1, Ordering::Relaxed);
        true
    }

    /// Removes all values but those that `keep` accepts, by key and value; the slots are kept for present readers.
    /// Without memory for other slots, everything is removed. One caller at a time.
    pub(crate) fn retain(&self, keep: impl Fn(u64, u64) -> bool) {
        let (old, old_size) = (self.slots.load(Ordering::Relaxed), self.size());
        let entries = (1..=old_size).map(|at| {
            // SAFETY: there are as many slots as the first one says.
            let slot = unsafe { &*old.add(at) };
            (slot.key.load(Ordering::Relaxed), slot.value.load(Ordering::Relaxed))
        });
        let fresh = Self::new();
        for (key, value) in entries.filter(|&(key, value)| key != 0 && keep(key, value)) {
            if !fresh.insert(key, value) {
                return self.clear();
            }
        }
        self.slots.store(fresh.slots.load(Ordering::Relaxed), Ordering::Release);
        self.used.store(fresh.used.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Removes all values; the slots are kept for present readers.
    pub(crate) fn clear(&self) {
        self.slots.store(core::ptr::null_mut(), Ordering::Release);
        self.used.store(0, Ordering::Relaxed);
    }

    fn size(&self) -> usize {
        let slots = self.slots.load(Ordering::Relaxed);
        // SAFETY: tables are made by `grow`, which writes their size first, and never freed.
        if slots.is_null() { 0 } else { unsafe { (*slots).key.load(Ordering::Relaxed) as usize } }
    }

    fn grow(&self) -> bool {
        let old = self.slots.load(Ordering::Relaxed);
        let old_size = self.size();
        let size = (old_size * 2).max(128);
        let new: *mut Slot = sys::map_private((size + 1) * size_of::<Slot>()).cast();
        if new.is_null() {
            return false;
        }
        // SAFETY: the new table has room for its size, written here, and that many slots; the
        // old one for as many as it says.
        unsafe {
            (*new).key.store(size as u64, Ordering::Relaxed);
            for at in 1..=old_size {
                let slot = &*old.add(at);
                match slot.key.load(Ordering::Relaxed) {
                    0 => {}
                    key => put(new, key, slot.value.load(Ordering::Relaxed)),
                }
            }
        }
        self.slots.store(new, Ordering::Release);
        true
    }
}

/// Writes to the first empty slot for `key`; there is one.
fn put(slots: *mut Slot, key: u64, value: u64) {
    // SAFETY: tables are made by `grow`, which writes their size first, and are never freed; the mask keeps the index below
    // it.
    unsafe {
        let mask = (*slots).key.load(Ordering::Relaxed) as usize - 1;
        let mut at = spread(key) & mask;
        while (*slots.add(1 + at)).key.load(Ordering::Relaxed) != 0 {
            at = (at + 1) & mask;
        }
        let slot = &*slots.add(1 + at);
        slot.value.store(value, Ordering::Relaxed);
        slot.key.store(key, Ordering::Release);
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
