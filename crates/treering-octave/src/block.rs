//! Blocks of memory that remember which function took them.
//!
//! Of a block only the address is known when it is freed. So a block that is counted is [`TAIL`]
//! bytes larger than was asked for, and the last bytes of its room hold the tag that the runtime
//! gave, and a word of tag, address and size, by which it is told from blocks that are not ours:
//! those that came before, or from libraries that are not seen. One of these would have to hold a
//! word that leads to a size within its room, for which the chance is less than one in 2^40.

use core::ffi::c_void;

/// How much larger a counted block is.
pub(crate) const TAIL: usize = 16;

/// An arbitrary number that other code is unlikely to write.
const MARK: u64 = 0x9D3F_51E8_B72C_0A65;

/// The end of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail {
    words: *mut [u64; 2],
    block: u64,
    /// The bytes in front of it.
    room: u64,
}

impl Tail {
    /// Where the tail of a block is, or would be.
    ///
    /// # Safety
    /// The block is one of the C library's.
    #[inline(always)]
    pub(crate) unsafe fn of(block: *mut c_void) -> Option<Self> {
        // SAFETY: by this function's own requirement.
        let room = unsafe { libc::malloc_usable_size(block) }.checked_sub(TAIL)?;
        let words = block.cast::<u8>().wrapping_add(room).cast();
        Some(Self { words, block: block as u64, room: room as u64 })
    }

    /// Writes the tag of a block of `bytes` bytes.
    ///
    /// # Safety
    /// The block is [`TAIL`] bytes larger than that.
    #[inline(always)]
    pub(crate) unsafe fn write(self, tag: u64, bytes: u64) {
        // SAFETY: the end of the block's room is beyond what was asked for.
        unsafe { self.words.write_unaligned([tag, self.check(tag, bytes)]) };
    }

    /// Takes tag and size out of the block, if it has any.
    #[inline(always)]
    pub(crate) fn take(self) -> Option<(u64, u64)> {
        // SAFETY: the words are within the block.
        let [tag, word] = unsafe { self.words.read_unaligned() };
        let bytes = self.check(tag, word);
        if bytes > self.room {
            return None;
        }
        // The memory may be given out again where it is not seen.
        // SAFETY: the words are within the block, which was made larger for these.
        unsafe { self.words.write_unaligned([tag, 0]) };
        Some((tag, bytes))
    }

    /// The second word for a size, and the size for a second word.
    #[inline(always)]
    fn check(self, tag: u64, other: u64) -> u64 {
        tag ^ self.block.rotate_left(16) ^ MARK ^ other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_found_once_and_only_where_it_was_written() {
        // SAFETY: the blocks are of the C library, and freed once.
        unsafe {
            let (block, other) = (libc::malloc(100 + TAIL), libc::malloc(100 + TAIL));
            libc::memset(other, 0xFF, 100 + TAIL);
            Tail::of(block).unwrap().write(77, 100);
            // A tail copied to another place, as by a library that the hooks do not see, is no tail there.
            core::ptr::copy_nonoverlapping(Tail::of(block).unwrap().words, Tail::of(other).unwrap().words, 1);
            assert_eq!(Tail::of(other).unwrap().take(), None);
            assert_eq!(Tail::of(block).unwrap().take(), Some((77, 100)));
            assert_eq!(Tail::of(block).unwrap().take(), None);
            libc::free(block);
            libc::free(other);
        }
    }
}
