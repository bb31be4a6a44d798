//! The copied part of a stack.

use std::borrow::Cow;

use crate::registers::Width;

/// The copied part of a stack, from the stack pointer up.
#[derive(Clone, Debug)]
pub(crate) struct StackCopy<'a> {
    base: u64,
    bytes: Cow<'a, [u8]>,
    width: Width,
}

impl<'a> StackCopy<'a> {
    pub(crate) fn new(base: u64, bytes: &'a [u8], width: Width) -> Self {
        Self { base, bytes: Cow::Borrowed(bytes), width }
    }

    /// How many bytes it has.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes from an address on; none where nothing was copied.
    pub(crate) fn from(&self, address: u64) -> &[u8] {
        let offset = address.checked_sub(self.base).and_then(|offset| usize::try_from(offset).ok());
        offset.and_then(|offset| self.bytes.get(offset..)).unwrap_or_default()
    }

    /// Adds bytes that lie behind.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.bytes.to_mut().extend_from_slice(bytes);
    }

    /// Where the copy ends.
    pub(crate) fn end(&self) -> u64 {
        self.base.saturating_add(self.bytes.len() as u64)
    }

    /// The word at an address; nothing where it was not copied.
    pub(crate) fn read(&self, address: u64) -> Option<u64> {
        self.read_bytes(address, self.width.numbering().word)
    }

    /// The number of up to eight bytes at an address; nothing where it was not copied.
    pub(crate) fn read_bytes(&self, address: u64, size: u8) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.base)?).ok()?;
        let bytes = self.bytes.get(offset..offset.checked_add(size.into())?)?;
        let mut word = [0; 8];
        word.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_copied_bytes_can_be_read() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        let wide = StackCopy::new(100, &bytes, Width::Bits64);
        assert_eq!(wide.read(101), Some(0x0908_0706_0504_0302));
        assert_eq!((wide.read(99), wide.read(102), wide.read(u64::MAX)), (None, None, None));
        assert_eq!(wide.read_bytes(107, 2), Some(0x0908));
        assert_eq!(StackCopy::new(100, &bytes, Width::Bits32).read(105), Some(0x0908_0706));
    }

    #[test]
    fn a_copy_goes_on_with_the_bytes_that_are_added() {
        let mut copy = StackCopy::new(100, &[1, 2, 3, 4, 5, 6, 7, 8], Width::Bits64);
        assert_eq!((copy.read(104), copy.from(106), copy.from(99)), (None, &[7, 8][..], &[][..]));
        copy.extend(&[9, 10, 11, 12, 13, 14, 15, 16]);
        assert_eq!((copy.read(104), copy.end()), (Some(0x0c0b_0a09_0807_0605), 116));
    }
}
