//! Memory: which node allocates, how much of it is still in use, and how much was at once.
//!
//! The rules of counting, and how a block's tag leads back to its node, are in `treering-memory`. Blocks come from an
//! [`Allocator`] of the program, from an interpreter, which notes them ([`allocated`], [`freed`]), and from the
//! allocator of `libtreering_malloc.so`, of the crate `treering-malloc`. That exports `treering_malloc_attach`. When the
//! runtime is loaded, be it in the program or in a library, it looks for that function and tells it where its records
//! are, so a program without a runtime pays nothing and one that loads it late is recorded from then on. Nothing is
//! looked up later, when locks may be held.

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering};
use std::alloc::{GlobalAlloc, Layout, System};

use treering_events::{Thread, flag};
use treering_memory::{Hooks, Process, Running};

use crate::process::{self, OFF, Quiet, STATE};
use crate::record::shared_u32;
use crate::{store, stray, sys};

/// Bytes of a tag.
const TAG: usize = 8;

/// Whether the library that is loaded in front of the system's allocator sees every block too.
static IS_PRELOADED: AtomicBool = AtomicBool::new(false);

/// Whether blocks are counted in this process.
static IS_IN_USE: AtomicBool = AtomicBool::new(false);

/// An allocator that attributes memory to the activation that takes it.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: treering_runtime::Allocator = treering_runtime::Allocator::new();
/// # treering_runtime::clear_profiler();
/// # assert_eq!(vec![1; 10].len(), 10);
/// ```
/// Each node gets the number of allocations made while it ran itself, their bytes, how many of
/// those are in use, and how many were at once. Resizing a block frees it and allocates one anew,
/// as far as these numbers go. Blocks are eight bytes larger than was asked for.
///
/// Allocations of a thread that has not entered anything yet are counted for the whole process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator<A = System> {
    inner: A,
}

impl Allocator {
    /// On top of the system's allocator.
    pub const fn new() -> Self {
        Self::around(System)
    }
}

impl<A> Allocator<A> {
    /// On top of another allocator.
    pub const fn around(inner: A) -> Self {
        Self { inner }
    }
}

/// Keeps the preloaded library from counting allocations that are counted here.
#[inline(always)]
fn alone() -> Option<Quiet> {
    IS_PRELOADED.load(Ordering::Relaxed).then(Quiet::begin)
}

/// The layout with room for a tag; nothing when it is larger than memory can be.
#[inline(always)]
fn with_tag(layout: Layout, size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(TAG)?, layout.align()).ok()
}

// SAFETY: blocks come from the inner allocator, with the alignment that was asked for and eight
// bytes more than the size; they go back to it with the layout that they came with.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Allocator<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(larger) = with_tag(layout, layout.size()) else { return core::ptr::null_mut() };
        // SAFETY: the size is not 0; a block that is not null has room for the tag.
        unsafe {
            let quiet = alone();
            let block = self.inner.alloc(larger);
            drop(quiet);
            tag(block, layout.size())
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some(larger) = with_tag(layout, layout.size()) else { return core::ptr::null_mut() };
        // SAFETY: the size is not 0; a block that is not null has room for the tag.
        unsafe {
            let quiet = alone();
            let block = self.inner.alloc_zeroed(larger);
            drop(quiet);
            tag(block, layout.size())
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block is ours, so it has a tag and was allocated with the larger layout,
        // whose parts were checked then.
        unsafe {
            treering_memory::freed(
                Here,
                block.add(layout.size()).cast::<u64>().read_unaligned(),
                layout.size() as u64,
            );
            let larger = Layout::from_size_align_unchecked(layout.size() + TAG, layout.align());
            let _quiet = alone();
            self.inner.dealloc(block, larger);
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if with_tag(layout, new_size).is_none() {
            return core::ptr::null_mut();
        }
        // SAFETY: the block is ours, so it has a tag and was allocated with the larger layout, whose parts were checked
        // then; the new size was checked above.
        unsafe {
            let old = block.add(layout.size()).cast::<u64>().read_unaligned();
            let larger = Layout::from_size_align_unchecked(layout.size() + TAG, layout.align());
            let quiet = alone();
            let new = self.inner.realloc(block, larger, new_size + TAG);
            drop(quiet);
            if !new.is_null() {
                treering_memory::freed(Here, old, layout.size() as u64);
            }
            tag(new, new_size)
        }
    }
}

/// Counts a block and writes its tag behind it.
///
/// # Safety
/// `block` is null or has eight bytes of room behind `size`.
#[inline(always)]
unsafe fn tag(block: *mut u8, size: usize) -> *mut u8 {
    if !block.is_null() {
        // SAFETY: by this function's own requirement.
        unsafe { block.add(size).cast::<u64>().write_unaligned(attributed(size as u64)) };
    }
    block
}

/// The process as this runtime knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Here;

// SAFETY: only the running thread's record is ever its current one, and the event API keeps its
// top. The record that stands for a busy thread has an epoch of 0, which no state but 0 has.
unsafe impl Process for Here {
    #[inline(always)]
    fn thread(self) -> *mut Thread {
        sys::current_pointer()
    }

    #[inline(always)]
    fn state(self) -> u32 {
        STATE.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn base(self) -> *mut u8 {
        store::base()
    }

    #[inline(always)]
    fn generation(self) -> u8 {
        store::generation().load(Ordering::Relaxed)
    }
}

/// Notes that the running function has allocated a block of `bytes` bytes. The result is to be kept with the block,
/// for [`freed`]. It is 0, and nothing is counted, while nothing is recorded and outside of all functions.
///
/// ```
/// # treering_runtime::clear_profiler();
/// assert_eq!(treering_runtime::allocated(100), 0);
/// ```
#[inline]
pub fn allocated(bytes: u64) -> u64 {
    let is_outside = sys::current().is_none_or(|thread| thread.top.get() == thread.stack_address.get());
    match Running::find(Here) {
        Some(running) if !is_outside => {
            note_block();
            running.allocated(bytes)
        }
        _ => 0,
    }
}

/// Notes that a block of `bytes` bytes, for which [`allocated`] returned `tag`, is freed: it is taken off the
/// function that allocated it.
///
/// # Safety
/// The tag is 0, or was returned in this process or in one that it was forked from.
#[inline]
pub unsafe fn freed(tag: u64, bytes: u64) {
    // SAFETY: by this function's own requirement.
    unsafe { treering_memory::freed(Here, tag, bytes) };
}

/// Says in the file that memory is counted, once.
#[inline(always)]
fn note_block() {
    let is_noted = store::header().is_none_or(|header| shared_u32(&header.flags).load(Ordering::Relaxed) & flag::MEMORY != 0);
    if !is_noted {
        store::set_flag(flag::MEMORY);
    }
}

/// Attributes a block of that many bytes to the activation that runs in this thread, and returns its tag.
#[inline(always)]
fn attributed(bytes: u64) -> u64 {
    match Running::find(Here) {
        Some(running) => running.allocated(bytes),
        None => allocated_outside(bytes),
    }
}

/// A block that no node gets; its tag is empty. Those of the runtime itself count nowhere, nor
/// do those of a child that has not recorded anything itself.
#[cold]
#[inline(never)]
pub(crate) fn allocated_outside(bytes: u64) -> u64 {
    set_in_use();
    let is_recording = STATE.load(Ordering::Relaxed) != OFF && !process::is_forked();
    if is_recording && store::header().is_some() && sys::current().is_none() {
        stray::count(bytes);
    }
    0
}

/// Notes that blocks are counted in this process. Every program allocates before it records (the runtime's own
/// preparations, if nothing else), so every recorded program has called this.
#[cold]
pub(crate) fn set_in_use() {
    IS_IN_USE.store(true, Ordering::Relaxed);
}

/// Says in the file that blocks are counted, if they are. Called for every new record of a thread.
pub(crate) fn note_use() {
    if IS_IN_USE.load(Ordering::Relaxed) && store::header().is_some() {
        store::set_flag(flag::MEMORY);
    }
}

/// The mark of a thread with that record number.
pub(crate) fn mark(number: u64) -> u64 {
    treering_memory::mark(number, store::generation().load(Ordering::Relaxed))
}

/// Says that another library sees the blocks of the system's allocator.
pub(crate) fn set_preloaded() {
    IS_PRELOADED.store(true, Ordering::Relaxed);
    set_in_use();
}

extern "C" fn thread() -> *mut Thread {
    sys::current_pointer()
}

extern "C" fn outside(bytes: u64) {
    allocated_outside(bytes);
}

fn hooks() -> Hooks {
    let (base, generation) = (store::base_word(), store::generation());
    Hooks {
        version: Hooks::VERSION,
        thread_word: sys::thread_word_offset(),
        thread,
        state: &STATE,
        base,
        generation,
        outside,
    }
}

/// Tells a preloaded allocator where the records of this runtime are; called when the program or library that holds the
/// runtime is loaded.
pub(crate) extern "C" fn attach_allocator() {
    type Attach = unsafe extern "C" fn(*const Hooks) -> bool;
    // SAFETY: looks a name up among what is loaded.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"treering_malloc_attach".as_ptr()) };
    if found.is_null() {
        return;
    }
    // SAFETY: the name is ours, and every version of the library has this type for it. It copies
    // the hooks, and keeps loaded what they lead to.
    let attached = unsafe { core::mem::transmute::<*mut c_void, Attach>(found)(&hooks()) };
    if attached {
        set_preloaded();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_beyond_memory_are_refused() {
        let layout = Layout::new::<u64>();
        let largest = isize::MAX as usize - 7;
        assert!(with_tag(layout, largest).is_none());
        assert_eq!(with_tag(layout, 0).map(|larger| larger.size()), Some(TAG));
    }
}
