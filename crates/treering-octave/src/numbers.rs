//! Tables by address, quick enough for every call.

use core::hash::{BuildHasherDefault, Hasher};
use std::collections::HashMap;

/// Hashes addresses and short texts.
pub(crate) type Numbers = BuildHasherDefault<Spread>;

/// Spreads a number over all bits; texts are taken eight bytes at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // 2^64 divided by the golden ratio.
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}

/// How many objects are found at once.
const NEAR: usize = 512;

/// A value for each object, by address. Those asked for lately are found without hashing.
#[derive(Debug)]
pub(crate) struct Objects<T> {
    near: [Option<(usize, T)>; NEAR],
    all: HashMap<usize, T, Numbers>,
}

impl<T: Copy> Objects<T> {
    /// Knows nothing.
    pub(crate) const fn new() -> Self {
        Self { near: [None; NEAR], all: HashMap::with_hasher(BuildHasherDefault::new()) }
    }

    /// The value of an object that was asked for lately.
    #[inline(always)]
    pub(crate) fn near(&self, address: usize) -> Option<T> {
        match self.near[near(address)] {
            Some((known, value)) if known == address => Some(value),
            _ => None,
        }
    }

    /// The value of an object.
    pub(crate) fn get(&mut self, address: usize) -> Option<T> {
        self.near(address).or_else(|| self.get_far(address))
    }

    fn get_far(&mut self, address: usize) -> Option<T> {
        let value = *self.all.get(&address)?;
        self.near[near(address)] = Some((address, value));
        Some(value)
    }

    /// Keeps the value of an object.
    pub(crate) fn insert(&mut self, address: usize, value: T) {
        self.near[near(address)] = Some((address, value));
        self.all.insert(address, value);
    }

    /// Forgets an object.
    pub(crate) fn remove(&mut self, address: usize) {
        let place = &mut self.near[near(address)];
        if place.is_some_and(|(known, _)| known == address) {
            *place = None;
        }
        self.all.remove(&address);
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.near = [None; NEAR];
        self.all.clear();
    }
}

/// Objects stand at multiples of 16 bytes; higher bits tell those apart that are far away.
#[inline(always)]
fn near(address: usize) -> usize {
    (address >> 4 ^ address >> 13) % NEAR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_until_they_are_forgotten() {
        let mut objects = Objects::new();
        // Twice as many as have a place near, so that they take each other's.
        let addresses: Vec<usize> = (1..=2 * NEAR).map(|number| number * 16).collect();
        addresses.iter().for_each(|&address| objects.insert(address, address + 1));
        assert!(addresses.iter().all(|&address| objects.get(address) == Some(address + 1)));
        objects.remove(32);
        assert_eq!((objects.get(32), objects.get(48)), (None, Some(49)));
        objects.clear();
        assert_eq!(objects.get(48), None);
    }

    #[test]
    fn an_address_that_is_used_again_is_another_object() {
        let mut objects = Objects::new();
        objects.insert(64, 1);
        objects.remove(64);
        assert_eq!(objects.get(64), None);
        objects.insert(64, 2);
        assert_eq!(objects.get(64), Some(2));
    }
}
