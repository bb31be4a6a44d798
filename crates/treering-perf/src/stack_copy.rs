//! The copied part of a stack.

use crate::registers::Width;

/// The copied part of a stack, from the stack pointer up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackCopy<'a> {
    base: u64,
    bytes: &'a [u8],
    width: Width,
}

impl<'a> StackCopy<'a> {
    pub(crate) fn new(base: u64, bytes: &'a [u8], width: Width) -> Self {
        Self { base, bytes, width }
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
    fn only_what_was_copied_can_be_read() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        let wide = StackCopy::new(100, &bytes, Width::Bits64);
        assert_eq!(wide.read(101), Some(0x0908_0706_0504_0302));
        assert_eq!((wide.read(99), wide.read(102), wide.read(u64::MAX)), (None, None, None));
        assert_eq!(wide.read_bytes(107, 2), Some(0x0908));
        assert_eq!(StackCopy::new(100, &bytes, Width::Bits32).read(105), Some(0x0908_0706));
    }
}
