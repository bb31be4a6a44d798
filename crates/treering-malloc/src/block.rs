//! Blocks with a tail, which names their owner.
//!
//! Of a block only the address is known when it is freed. So its last 16 bytes, as
//! `malloc_usable_size` tells them, are ours:
//!
//! | bytes | hold |
//! |---|---|
//! | 0-7 | the tag, as `treering-memory` describes it |
//! | 8-15 | tag, address, and size asked for, combined with a constant by exclusive or |
//!
//! The second word tells our blocks from those that came before there was a runtime, or past
//! these functions: of such a block it would have to give a size that fits, for which the chance
//! is less than one in 2^40. When a block goes back the word is wiped out, so that memory that is
//! given out again past these functions is not taken for ours.

use core::ffi::c_void;

use treering_memory::Running;

use crate::next::{Functions, size_in_header};
use crate::runtime::Runtime;

/// How much larger a block has to be.
pub(crate) const TAIL: usize = 16;

/// Any number that no program would write for reasons of its own.
const MARK: u64 = 0x6B5A_93C1_F0E7_2D4B;

/// A block, where its tail is or would be, and how many bytes are in front of that.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    start: *mut c_void,
    tail: *mut u64,
    room: u64,
}

impl Block {
    /// Nothing for a block that is too small for a tail.
    ///
    /// # Safety
    /// `start` is a block of the next functions.
    #[inline(always)]
    pub(crate) unsafe fn new(next: &Functions, start: *mut c_void) -> Option<Self> {
        // SAFETY: by this function's own requirement.
        let room = unsafe { next.usable_size(start) }.checked_sub(TAIL)?;
        Some(Self { start, tail: start.cast::<u8>().wrapping_add(room).cast(), room: room as u64 })
    }

    /// The same for one of glibc's, which always has room.
    ///
    /// # Safety
    /// `start` is a block of glibc.
    #[inline(always)]
    pub(crate) unsafe fn of_glibc(start: *mut c_void) -> Self {
        // SAFETY: by this function's own requirement. The smallest block has 24 bytes.
        let room = unsafe { size_in_header(start) } - TAIL;
        Self { start, tail: start.cast::<u8>().wrapping_add(room).cast(), room: room as u64 }
    }

    /// Counts a new block of `size` bytes and writes its tail. Returns its start.
    ///
    /// # Safety
    /// The block was just given by the next functions with [`TAIL`] bytes more than `size`.
    #[inline(always)]
    pub(crate) unsafe fn allocated(self, runtime: &'static Runtime, size: usize) -> *mut c_void {
        // SAFETY: by this function's own requirement.
        unsafe {
            match Running::find(runtime) {
                Some(running) => self.write(running.allocated(size as u64), size),
                None => allocated_outside(self.start, self.tail, runtime, size),
            }
        }
    }

    #[inline(always)]
    unsafe fn write(self, tag: u64, size: usize) -> *mut c_void {
        // SAFETY: the tail is within the usable part of the block, by the caller's word.
        unsafe { self.tail.cast::<[u64; 2]>().write_unaligned([tag, self.check(tag, size as u64)]) };
        self.start
    }

    /// The tag and the size, if it has a tail.
    #[inline(always)]
    fn read(self) -> Option<(u64, u64)> {
        // SAFETY: the place is at the end of the block.
        let [tag, second] = unsafe { self.tail.cast::<[u64; 2]>().read_unaligned() };
        let size = self.check(tag, second);
        (size <= self.room).then_some((tag, size))
    }

    /// The second word for a size; and the size for a second word.
    #[inline(always)]
    fn check(self, tag: u64, other: u64) -> u64 {
        tag ^ self.start as u64 ^ MARK ^ other
    }

    /// The block is about to be freed: takes it off again, if it has a tail, and wipes that out.
    #[inline(always)]
    pub(crate) fn freed(self, runtime: &'static Runtime) {
        if let Some((tag, size)) = self.read() {
            // SAFETY: the tail is in the block, and the tag in it is of this process.
            unsafe {
                self.tail.add(1).write_unaligned(0);
                treering_memory::freed(runtime, tag, size);
            }
        }
    }

    /// How many bytes of it the program may use.
    pub(crate) fn usable(self) -> usize {
        self.room as usize + if self.read().is_some() { 0 } else { TAIL }
    }

    /// Takes the tail out of the block, which may be resized then. Nothing when it has none.
    pub(crate) fn take_tail(self) -> Option<(u64, u64)> {
        let taken = self.read()?;
        // SAFETY: the tail is in the block.
        unsafe { self.tail.add(1).write_unaligned(0) };
        Some(taken)
    }

    /// Puts the tail back, for a block that was not resized.
    pub(crate) fn put_tail(self, (tag, size): (u64, u64)) {
        // SAFETY: it was taken from there, and nothing has happened since.
        unsafe { self.write(tag, size as usize) };
    }
}

/// The same where nothing runs; apart, and without the whole block, so that the common case has
/// nothing to keep over a call.
#[cold]
#[inline(never)]
unsafe extern "C" fn allocated_outside(
    start: *mut c_void,
    tail: *mut u64,
    runtime: &'static Runtime,
    size: usize,
) -> *mut c_void {
    runtime.allocated_outside(size as u64);
    // SAFETY: by the caller's word.
    unsafe { Block { start, tail, room: 0 }.write(0, size) }
}
