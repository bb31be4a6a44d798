//! The functions that stand in front of the system's: C11 7.22.3, POSIX `posix_memalign`, and
//! those of glibc's manual, "Replacing malloc".

use core::ffi::{c_int, c_void};

use crate::block::{Block, TAIL};
use crate::early;
use crate::next::{Functions, if_known, known, next};
use crate::runtime::{Runtime, runtime, runtime_on_glibc};

/// Fails as an allocator does.
#[cold]
fn no_memory() -> *mut c_void {
    // SAFETY: the thread's own error number.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    core::ptr::null_mut()
}

/// A block of `size` bytes from one of the next functions, with a tail if there is a runtime.
#[inline(always)]
unsafe fn from_next(size: usize, give: impl FnOnce(&Functions, usize) -> *mut c_void) -> *mut c_void {
    let Some(next) = next() else { return early::allocate(size) };
    let Some(runtime) = runtime() else { return give(next, size) };
    let Some(larger) = size.checked_add(TAIL) else { return no_memory() };
    // SAFETY: the block is new, and has room for a tail.
    unsafe { allocated(next, runtime, give(next, larger), size) }
}

/// The next functions, if they are known and there is no runtime.
#[inline(always)]
fn next_without_runtime() -> Option<&'static Functions> {
    if_known().filter(|_| runtime().is_none())
}

/// Gives a new block a tail. Returns its start.
///
/// # Safety
/// `start` is null, or was just given by the next functions with [`TAIL`] bytes more than `size`.
#[inline(always)]
unsafe fn allocated(
    next: &Functions,
    runtime: &'static Runtime,
    start: *mut c_void,
    size: usize,
) -> *mut c_void {
    if start.is_null() {
        return start;
    }
    // SAFETY: by this function's own requirement.
    unsafe { Block::new(next, start).map_or(start, |block| block.allocated(runtime, size)) }
}

/// See the C standard.
///
/// # Safety
/// None; the signature is C's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    // Every way ends in a jump to another function, so that none has to keep what only others
    // need. They are functions of C, which do not unwind, or there would be calls instead.
    match runtime_on_glibc() {
        Some(runtime) => malloc_on_glibc(runtime, size),
        None => malloc_otherwise(size),
    }
}

#[inline(never)]
extern "C" fn malloc_on_glibc(runtime: &'static Runtime, size: usize) -> *mut c_void {
    if size > isize::MAX as usize {
        return no_memory();
    }
    // SAFETY: the next functions are known, and the block is new and has room for a tail.
    unsafe {
        let start = (known().malloc)(size + TAIL);
        if start.is_null() {
            return start;
        }
        Block::of_glibc(start).allocated(runtime, size)
    }
}

/// The same where there is no runtime, which costs no more than handing on does.
#[inline(never)]
extern "C" fn malloc_otherwise(size: usize) -> *mut c_void {
    match next_without_runtime() {
        // SAFETY: any size will do.
        Some(next) => unsafe { (next.malloc)(size) },
        None => malloc_seldom(size),
    }
}

/// The same at the start, and on top of other allocators.
#[cold]
#[inline(never)]
extern "C" fn malloc_seldom(size: usize) -> *mut c_void {
    // SAFETY: any size will do.
    unsafe { from_next(size, |next, size| (next.malloc)(size)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size) else { return no_memory() };
    // SAFETY: any size will do. The early room is of zeros.
    unsafe { from_next(bytes, |next, bytes| (next.calloc)(1, bytes)) }
}

/// See the C standard.
///
/// # Safety
/// `block` is null or one that these functions gave and that was not freed.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn free(block: *mut c_void) {
    match runtime_on_glibc() {
        Some(runtime) => free_on_glibc(runtime, block),
        None => free_otherwise(block),
    }
}

#[inline(never)]
extern "C" fn free_on_glibc(runtime: &'static Runtime, block: *mut c_void) {
    if block.is_null() || early::contains(block) {
        return;
    }
    // SAFETY: the block is one of glibc's, and its functions are known.
    unsafe {
        Block::of_glibc(block).freed(runtime);
        (known().free)(block);
    }
}

/// As [`malloc_otherwise`].
#[inline(never)]
extern "C" fn free_otherwise(block: *mut c_void) {
    if block.is_null() || early::contains(block) {
        return;
    }
    match next_without_runtime() {
        // SAFETY: the block is one of the next functions.
        Some(next) => unsafe { (next.free)(block) },
        None => free_seldom(block),
    }
}

#[cold]
#[inline(never)]
extern "C" fn free_seldom(block: *mut c_void) {
    let Some(next) = next() else { return };
    // SAFETY: the block is one of the next functions.
    unsafe {
        about_to_free(next, block);
        (next.free)(block);
    }
}

#[inline(always)]
unsafe fn about_to_free(next: &Functions, block: *mut c_void) {
    let Some(runtime) = runtime() else { return };
    // SAFETY: the block is one of the next functions.
    if let Some(block) = unsafe { Block::new(next, block) } {
        block.freed(runtime);
    }
}

/// See the C standard; a size of 0 is left to the next library.
///
/// # Safety
/// As for [`free`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: by this function's own requirement.
    unsafe {
        if block.is_null() {
            return malloc(size);
        }
        if early::contains(block) {
            return moved_from_early(block, size);
        }
        let Some(next) = next() else { return no_memory() };
        match runtime() {
            None => (next.realloc)(block, size),
            Some(_) if size == 0 => {
                about_to_free(next, block);
                (next.realloc)(block, 0)
            }
            Some(_) => resized(next, block, size),
        }
    }
}

/// Resizes a block; its old tail does not matter any more, and its new one is at the new end.
unsafe fn resized(next: &Functions, block: *mut c_void, size: usize) -> *mut c_void {
    let (Some(runtime), Some(larger)) = (runtime(), size.checked_add(TAIL)) else { return no_memory() };
    // SAFETY: the block is one of the next functions; it is used no more once it was resized.
    unsafe {
        let old = Block::new(next, block);
        let tail = old.and_then(Block::take_tail);
        let new = (next.realloc)(block, larger);
        if let (Some(old), Some((tag, old_size))) = (old, tail) {
            match new.is_null() {
                true => old.put_tail((tag, old_size)),
                false => treering_memory::freed(runtime, tag, old_size),
            }
        }
        allocated(next, runtime, new, size)
    }
}

unsafe fn moved_from_early(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the old block is of the early room, and never taken back; the new one has the room.
    unsafe {
        let new = malloc(size);
        if !new.is_null() {
            let kept = early::size(block).min(size);
            core::ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast(), kept);
        }
        new
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size) else { return no_memory() };
    // SAFETY: the caller keeps the rules of `realloc`.
    unsafe { realloc(block, bytes) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(place: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
    let Some(next) = next() else { return libc::ENOMEM };
    // SAFETY: the caller's place can be written to.
    unsafe {
        let Some(runtime) = runtime() else { return (next.posix_memalign)(place, alignment, size) };
        let Some(larger) = size.checked_add(TAIL) else { return libc::ENOMEM };
        let error = (next.posix_memalign)(place, alignment, larger);
        if error == 0 {
            allocated(next, runtime, *place, size);
        }
        error
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: the next function checks the alignment.
    unsafe { from_next(size, |next, size| (next.aligned_alloc)(alignment, size)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: the next function checks the alignment.
    unsafe { from_next(size, |next, size| (next.memalign)(alignment, size)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    // SAFETY: any size will do.
    unsafe { from_next(size, |next, size| next.valloc.map_or_else(no_memory, |valloc| valloc(size))) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    // SAFETY: any size will do.
    unsafe { from_next(size, |next, size| next.pvalloc.map_or_else(no_memory, |pvalloc| pvalloc(size))) }
}

/// How many bytes of a block the program may use: all but the tail.
#[unsafe(no_mangle)]
unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    if block.is_null() {
        return 0;
    }
    // SAFETY: the caller's block was given by these functions and not freed.
    unsafe {
        if early::contains(block) {
            return early::size(block);
        }
        let Some(next) = next() else { return 0 };
        match (runtime(), Block::new(next, block)) {
            (Some(_), Some(block)) => block.usable(),
            _ => next.usable_size(block),
        }
    }
}
