//! Hooks in the allocation functions that the loaded libraries call.
//!
//! They are placed when memory is asked for first, into the slots of every library that is loaded
//! then, but for the C library's own: a block is mostly freed by another library than took it.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::block::{TAIL, Tail};
use crate::hooks::{self, what};
use crate::refusal::Refusal;
use crate::slots::{self, Library, Slot};

static MALLOC: AtomicUsize = AtomicUsize::new(0);
static CALLOC: AtomicUsize = AtomicUsize::new(0);
static REALLOC: AtomicUsize = AtomicUsize::new(0);
static FREE: AtomicUsize = AtomicUsize::new(0);
static POSIX_MEMALIGN: AtomicUsize = AtomicUsize::new(0);
static ALIGNED_ALLOC: AtomicUsize = AtomicUsize::new(0);

type Block = *mut c_void;
type Malloc = unsafe extern "C-unwind" fn(usize) -> Block;
type Calloc = unsafe extern "C-unwind" fn(usize, usize) -> Block;
type Realloc = unsafe extern "C-unwind" fn(Block, usize) -> Block;
type PosixMemalign = unsafe extern "C-unwind" fn(*mut Block, usize, usize) -> c_int;
type Free = unsafe extern "C-unwind" fn(Block);

/// The size with room for a tail, where blocks are counted and it is one that memory can have.
#[inline(always)]
fn larger(bytes: usize) -> Option<usize> {
    let is_counted = hooks::recorded() & what::MEMORY != 0;
    (is_counted && bytes < isize::MAX as usize - TAIL).then_some(bytes + TAIL)
}

/// Counts a new block of that many bytes for the function that runs.
///
/// # Safety
/// The block is null, or one of the C library's, [`TAIL`] bytes larger.
#[inline(always)]
unsafe fn counted(block: Block, bytes: usize) -> Block {
    if !block.is_null() {
        // SAFETY: by this function's own requirement.
        unsafe {
            if let Some(tail) = Tail::of(block) {
                tail.write(treering_runtime::allocated(bytes as u64), bytes as u64);
            }
        }
    }
    block
}

/// Takes a block off the function that took it, if it was counted.
///
/// # Safety
/// The block is null or one of the C library's, and not freed yet.
#[inline(always)]
unsafe fn taken_off(block: Block) {
    // SAFETY: by this function's own requirement; the tag was written by this process.
    unsafe {
        if !block.is_null()
            && let Some((tag, bytes)) = Tail::of(block).and_then(Tail::take)
        {
            treering_runtime::freed(tag, bytes);
        }
    }
}

unsafe extern "C-unwind" fn malloc(bytes: usize) -> Block {
    // SAFETY: the address is that of a function of this type.
    unsafe {
        let original: Malloc = core::mem::transmute(MALLOC.load(Relaxed));
        match larger(bytes) {
            Some(larger) => counted(original(larger), bytes),
            None => original(bytes),
        }
    }
}

unsafe extern "C-unwind" fn calloc(number: usize, bytes: usize) -> Block {
    // SAFETY: the address is that of a function of this type.
    unsafe {
        let original: Calloc = core::mem::transmute(CALLOC.load(Relaxed));
        let all = number.checked_mul(bytes);
        match all.and_then(|all| Some((all, larger(all)?))) {
            Some((all, larger)) => counted(original(1, larger), all),
            None => original(number, bytes),
        }
    }
}

/// Stands in for the function by which the C++ library allocates aligned blocks; Octave 11 keeps matrices
/// in such.
unsafe extern "C-unwind" fn posix_memalign(place: *mut Block, alignment: usize, bytes: usize) -> c_int {
    // SAFETY: the address is that of a function of this type; the block is at the caller's place when the call has
    // succeeded.
    unsafe {
        let original: PosixMemalign = core::mem::transmute(POSIX_MEMALIGN.load(Relaxed));
        let Some(larger) = larger(bytes) else { return original(place, alignment, bytes) };
        let error = original(place, alignment, larger);
        if error == 0 {
            counted(*place, bytes);
        }
        error
    }
}

unsafe extern "C-unwind" fn aligned_alloc(alignment: usize, bytes: usize) -> Block {
    // SAFETY: the address is that of a function of this type.
    unsafe {
        let original: Calloc = core::mem::transmute(ALIGNED_ALLOC.load(Relaxed));
        match larger(bytes) {
            Some(larger) => counted(original(alignment, larger), bytes),
            None => original(alignment, bytes),
        }
    }
}

/// A block that changes its size is taken off one function and counted for another. Where there
/// is no memory it stays, but is not known any more.
unsafe extern "C-unwind" fn realloc(block: Block, bytes: usize) -> Block {
    // SAFETY: the address is that of a function of this type; the block is the caller's. One of no bytes is freed.
    unsafe {
        let original: Realloc = core::mem::transmute(REALLOC.load(Relaxed));
        taken_off(block);
        match larger(bytes).filter(|_| bytes != 0) {
            Some(larger) => counted(original(block, larger), bytes),
            None => original(block, bytes),
        }
    }
}

unsafe extern "C-unwind" fn free(block: Block) {
    // SAFETY: the address is that of a function of this type; the block is the caller's.
    unsafe {
        taken_off(block);
        core::mem::transmute::<usize, Free>(FREE.load(Relaxed))(block);
    }
}

/// Places the hooks, unless they are there already or a library was loaded in front of the C
/// library's allocator that counts more than these can.
///
/// # Errors
/// When anything is not as expected; then nothing was changed.
pub(crate) fn install(interpreter: &Library) -> Result<(), Refusal> {
    if MALLOC.load(Relaxed) != 0 || slots::address_of(c"treering_malloc_attach").is_some() {
        return Ok(());
    }
    let hooks: [(&CStr, &AtomicUsize, usize); 6] = [
        (c"malloc", &MALLOC, malloc as *const () as usize),
        (c"calloc", &CALLOC, calloc as *const () as usize),
        (c"realloc", &REALLOC, realloc as *const () as usize),
        (c"free", &FREE, free as *const () as usize),
        (c"posix_memalign", &POSIX_MEMALIGN, posix_memalign as *const () as usize),
        (c"aligned_alloc", &ALIGNED_ALLOC, aligned_alloc as *const () as usize),
    ];
    let mut originals = Vec::new();
    for (symbol, original, _) in hooks {
        let missing = || Refusal::Missing {
            symbol: symbol.to_string_lossy().into_owned(),
            library: "this process".to_owned(),
        };
        originals.push((original, slots::address_of(symbol).ok_or_else(missing)?));
    }
    let all = |library: &Library| -> Result<Vec<Slot>, Refusal> {
        let slots = hooks.iter().map(|(symbol, _, hook)| library.slots(symbol, *hook));
        Ok(slots.collect::<Result<Vec<_>, _>>()?.concat())
    };
    let mut slots = all(interpreter)?;
    if slots.is_empty() {
        return Err(Refusal::NoSlot { symbol: "malloc".to_owned() });
    }
    // One that has an allocator of its own is left alone.
    slots.extend(Library::others(interpreter, install as *const () as usize).iter().flat_map(all).flatten());
    originals.iter().for_each(|(original, address)| original.store(*address, Relaxed));
    slots::write(&slots)
}
