//! Checks by which a reader notices damage.
//!
//! Records that never change have a checksum. Numbers that change with every event cannot have one: a program that is
//! killed would leave the checksum of the numbers before. So every number that grows is stored as a multiple of [`CODE`], which a
//! wrong bit makes something else: adding a multiple costs what adding the number would, and each
//! number is right by itself at any moment. Where something leads to has its count beside it, in one
//! word that is written at once.

use alloc::vec::Vec;

use crate::Ref;

/// Numbers that grow are stored as multiples of this. No two powers of two differ by one, so that no
/// single bit can be wrong unseen; it divides 2^64 - 1, which stands for "none".
pub const CODE: u64 = 15;

/// The calls of a node, and all numbers of argument sizes, are stored with this added, so that zeros are recognised
/// as damage.
pub const CALLS_START: u64 = 7;

/// The bytes of a record that its checksum is of: where they begin and end.
pub type Parts = &'static [(usize, usize)];

/// A record, or a part of one, with a checksum.
pub trait Sealed {
    /// The bytes that the checksum covers, besides the place of the record.
    const PARTS: Parts;
    /// Where the checksum stands, in four bytes.
    const CHECK_AT: usize;
}

/// The checksum of a record that stands at `place`; nothing where it is not whole.
pub fn check_of<T: Sealed>(place: Ref, bytes: &[u8]) -> Option<u32> {
    let start = crc32c(0, &place.to_le_bytes());
    let part = |state: u32, &(start, end): &(usize, usize)| Some(crc32c(state, bytes.get(start..end)?));
    T::PARTS.iter().try_fold(start, part)
}

/// Whether a record that stands at `place` is as it was when it was sealed.
pub fn is_sealed<T: Sealed>(place: Ref, bytes: &[u8]) -> bool {
    let stored = bytes.get(T::CHECK_AT..T::CHECK_AT + 4);
    stored
        .is_some_and(|stored| check_of::<T>(place, bytes).is_some_and(|check| check.to_le_bytes() == *stored))
}

/// The checksum of a text.
pub fn text_check(text: &[u8]) -> u32 {
    crc32c(0, text)
}

/// CRC-32C (Castagnoli, 1993; RFC 3720, appendix B.4), going on from `state`.
pub fn crc32c(state: u32, bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0_u32; 256];
        let mut at = 0;
        while at < 256 {
            let mut value = at as u32;
            let mut bit = 0;
            while bit < 8 {
                value = if value & 1 == 1 { value >> 1 ^ 0x82F6_3B78 } else { value >> 1 };
                bit += 1;
            }
            table[at] = value;
            at += 1;
        }
        table
    };
    let step = |state: u32, byte: &u8| TABLE[(state as u8 ^ byte) as usize] ^ state >> 8;
    !bytes.iter().fold(!state, step)
}

/// A word that leads to the newest record of a list, with how many it has.
pub const fn link(first: Ref, count: u32) -> u64 {
    first as u64 | (count as u64) << 32
}

/// The newest record that a word of [`link`] leads to.
pub const fn first(link: u64) -> Ref {
    link as Ref
}

/// How many records the list of a word of [`link`] has.
pub const fn count(link: u64) -> u32 {
    (link >> 32) as u32
}

/// Flags of the header, with their opposites above them.
pub const fn coded_flags(flags: u32) -> u32 {
    flags & 0xFFFF | !flags << 16
}

/// The lowest byte of a sealed sum depends on all others.
const OWN_BITS: u64 = 0xFF;

/// A sum of floating point, with a checksum in the place of its least eight bits.
#[inline(always)]
pub fn seal_sum(sum: f64) -> f64 {
    let bits = sum.to_bits() & !OWN_BITS;
    f64::from_bits(bits | sum_check(bits))
}

/// The number that is sealed in a sum, without the checksum.
#[inline(always)]
pub fn open_sum(sealed: f64) -> f64 {
    f64::from_bits(sealed.to_bits() & !OWN_BITS)
}

/// Whether a sum is as it was sealed.
#[must_use]
pub fn is_sum_sealed(sealed: f64) -> bool {
    seal_sum(sealed).to_bits() == sealed.to_bits()
}

#[inline(always)]
fn sum_check(bits: u64) -> u64 {
    // Any eight neighbouring bits of the factor are four of each kind, so that one bit of the sum
    // changes the upper byte of the product, whatever is carried over.
    const FACTOR: u64 = 0x5555_5555_5555_5555;
    (bits >> 8).wrapping_mul(FACTOR) >> 56
}

/// A part of a file that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where it stands, in bytes from the start of the file.
    pub at: u64,
    /// A description of the damage.
    pub what: &'static str,
}

/// All that was found to be damaged in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// How many things.
    pub count: u64,
    /// The first of them, as they were met.
    pub shown: Vec<Finding>,
}

impl Findings {
    const MOST: usize = 4;

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn add(&mut self, at: u64, what: &'static str) {
        self.count += 1;
        if self.shown.len() < Self::MOST {
            self.shown.push(Finding { at, what });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        // RFC 3720, appendix B.4: 32 bytes of zeros; and the usual check value.
        assert_eq!(crc32c(0, &[0; 32]), 0x8A91_36AA);
        assert_eq!(crc32c(0, b"123456789"), 0xE306_9283);
        assert_eq!(crc32c(crc32c(0, b"1234"), b"56789"), 0xE306_9283);
    }

    #[test]
    fn one_wrong_bit_is_seen_in_a_number_and_in_a_sum() {
        for number in [0, CODE, 123_456 * CODE, u64::MAX] {
            assert!((0..64).all(|bit| (number ^ 1 << bit) % CODE != 0), "{number}");
        }
        for sum in [0.0, 1.0, 2500.25, 1e300, 0.1 + 0.2] {
            let sealed = seal_sum(sum);
            assert!(is_sum_sealed(sealed));
            assert!((sum - open_sum(sealed)).abs() <= sum * 1e-13);
            assert!((0..64).all(|bit| !is_sum_sealed(f64::from_bits(sealed.to_bits() ^ 1 << bit))), "{sum}");
        }
    }
}
