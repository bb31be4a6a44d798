//! Tables keyed by code addresses.
//!
//! The next lookup is mostly near the last one: in the same function. So the entries of a page are stored
//! together, in address order, and one lookup brings its neighbours into the processor's cache.

use std::hash::{BuildHasherDefault, Hasher};

use hashbrown::{HashMap, HashSet};

/// Values by address.
pub(crate) type AddressMap<V> = HashMap<u64, V, BuildHasherDefault<Near>>;
/// Addresses.
pub(crate) type AddressSet = HashSet<u64, BuildHasherDefault<Near>>;

/// A hash of one address: its lower bits choose the place, and its uppermost bits tell keys in a place apart.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Near(u64);

/// The address bits that share a place in a page. Few blocks are shorter than that, and blocks that share a
/// place find a free one beside it.
const STEP: u32 = 4;
const PAGE_BITS: u32 = 12;
/// The golden ratio, as a fraction of 2^64.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for Near {
    fn write_u64(&mut self, address: u64) {
        let page = (address >> PAGE_BITS).wrapping_mul(SPREAD) >> 24;
        let within = (address % (1 << PAGE_BITS)) >> STEP;
        let tag = address.wrapping_mul(SPREAD) & !(u64::MAX >> 8);
        self.0 = tag | page.wrapping_add(within) & (u64::MAX >> 8);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(self.0.rotate_left(8) ^ u64::from(byte)));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher as _;

    use super::*;

    fn place(address: u64) -> u64 {
        BuildHasherDefault::<Near>::default().hash_one(address) % (1 << 12)
    }

    #[test]
    fn neighbours_stand_together() {
        let places: Vec<u64> = (0..32).map(|number| place(0x40_1000 + number * 16)).collect();
        assert!(places.windows(2).all(|pair| pair[1] == (pair[0] + 1) % (1 << 12)), "{places:?}");
    }

    #[test]
    fn addresses_that_are_far_apart_do_not_share_places() {
        for apart in [1 << 12, 1 << 16, 1 << 20, 1 << 21] {
            let places: HashSet<u64> =
                (0..256).map(|number| place(0x7f00_0000_0000 + number * apart)).collect();
            assert!(places.len() > 200, "{} of 256 places, {apart:#x} apart", places.len());
        }
    }
}
