//! Attributes blocks of memory to the node of the calling context tree that runs.
//!
//! Two allocators do so, the one of `treering-runtime` and the preloaded one of `treering-malloc`.
//! Each has its own way to the records of the program, a [`Process`], and all of this is compiled
//! into each, because calling it would cost as much as doing it. It uses no operating system. Blocks that are
//! allocated while no recorded function runs are left to its users.
//!
//! # Tags
//!
//! Every block has a tag of eight bytes that names the node that allocated it, so that it can be taken off that node
//! when it is freed, at any later time and in any thread:
//!
//! | bits | hold |
//! |---|---|
//! | 0-31 | where the node stands; 0 when nothing was recorded |
//! | 32-47 | the number of the thread's record; `0xFFFF` for those that came after 65,534 others |
//! | 48-55 | the number of the store that it stands in, modulo 256 |
//!
//! The thread that allocated a block takes it off by a plain subtraction. Others must not write to
//! its numbers, so they add to another one, which only is added to, by all. A block of a store
//! that is in use no more, or of the process that this one was forked from, is taken off nowhere.
//!
//! ```
//! use treering_memory::mark;
//!
//! // The part that the tags of all blocks of a thread have in common: its number and its store.
//! assert_eq!(mark(7, 1), 0x0001_0007);
//! ```
#![no_std]

use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

use treering_events::{Activation, CODE, Node, Ref, Thread, UNIT};

/// Where a thread's record keeps its [`mark`]: the index in [`Thread::private`].
pub const MARK: usize = 5;

/// The number of a record whose own number does not fit a tag.
const NUMBERLESS: u64 = 0xFFFF;

/// Set in the mark of a record without a number, but in no tag, so that none is taken for its own.
const NOBODYS: u64 = 1 << 32;

/// Bits that may be set in a process's state, but not in its threads' epochs: they choose the path of events.
const PATHS: u32 = 0b11 << 30;

/// The upper half of the tags of blocks that a thread with that record number allocates while the
/// store of that generation is in use.
pub const fn mark(number: u64, generation: u8) -> u64 {
    let in_store = (generation as u64) << 16;
    if number < NUMBERLESS { number | in_store } else { NUMBERLESS | in_store | NOBODYS }
}

/// A way to the records of this process.
///
/// # Safety
/// The thread is null or the record of the running thread. If its epoch is the state's and the
/// state is not 0, an activation of its own is on top, whose node is in the store at the base.
/// Stores stay mapped; the generation changes before the base does.
pub unsafe trait Process: Copy {
    /// The record of the running thread; null for none.
    fn thread(self) -> *mut Thread;
    /// The period of recording, or 0 while nothing is recorded, with the two highest bits for other uses.
    fn state(self) -> u32;
    /// The start of the store, read in such a way that what was written before it is seen.
    fn base(self) -> *mut u8;
    /// The number of the store, modulo 256.
    fn generation(self) -> u8;
}

/// The words that a [`Process`] is made of, as a runtime tells them to an allocator that was loaded in front of the
/// program's. Only ever extended, with a higher version.
///
/// Both are shared libraries that may have been built apart, so this is laid out as C does.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Hooks {
    /// [`Hooks::VERSION`] of the runtime.
    pub version: u64,
    /// The distance of the word that holds the record of the running thread from the thread
    /// pointer; 0 where it has to be asked for.
    pub thread_word: isize,
    /// The record of the running thread; null for none.
    pub thread: extern "C" fn() -> *mut Thread,
    /// See [`Process::state`].
    pub state: &'static AtomicU32,
    /// See [`Process::base`].
    pub base: &'static AtomicPtr<u8>,
    /// See [`Process::generation`].
    pub generation: &'static AtomicU8,
    /// A block of that many bytes was allocated where nothing runs.
    pub outside: extern "C" fn(u64),
}

impl Hooks {
    /// The version with the fields above.
    pub const VERSION: u64 = 2;
}

/// The activation that runs in this thread.
#[derive(Clone, Copy, Debug)]
pub struct Running<P> {
    process: P,
    thread: *mut Thread,
    node: *mut Node,
}

impl<P: Process> Running<P> {
    /// Nothing where nothing is recorded, or the runtime itself works.
    #[inline(always)]
    pub fn find(process: P) -> Option<Self> {
        let (thread, state) = (process.thread(), process.state());
        if state == 0 || thread.is_null() {
            return None;
        }
        // SAFETY: by the trait's requirement.
        unsafe {
            let is_recorded = (*thread).epoch == state & !PATHS;
            is_recorded.then(|| {
                let top = (*thread).top as *const Activation;
                Self { process, thread, node: (*top).node as *mut Node }
            })
        }
    }

    /// Attributes a block of `bytes` bytes to it, and returns the block's tag.
    #[inline(always)]
    pub fn allocated(self, bytes: u64) -> u64 {
        let Self { process, thread, node } = self;
        // SAFETY: the record is the running thread's, and the node is one of its tree.
        unsafe {
            let bytes = bytes * CODE;
            (*node).allocations += CODE;
            (*node).allocated += bytes;
            let live = (*node).live + bytes as i64;
            (*node).live = live;
            let now = live - freed_elsewhere(node).load(Ordering::Relaxed) as i64;
            if now > (*node).peak {
                (*node).peak = now;
            }
            let place = (node as u64).wrapping_sub(process.base() as u64) / UNIT;
            u64::from(place as Ref) | (*thread).private[MARK] << 32
        }
    }
}

/// Takes a block of `bytes` bytes off the node that its tag names, if the node is still in use.
///
/// # Safety
/// The tag is 0 or was returned by [`Running::allocated`] in this process, or in one that it was
/// forked from.
#[inline(always)]
pub unsafe fn freed(process: impl Process, tag: u64, bytes: u64) {
    // The base first: with a new base, an old tag is recognised.
    let base = process.base();
    if tag as Ref == 0 || (tag >> 48) as u8 != process.generation() {
        return;
    }
    let node = base.wrapping_add((u64::from(tag as Ref) * UNIT) as usize).cast::<Node>();
    let thread = process.thread();
    let bytes = bytes * CODE;
    // SAFETY: the tag is of this store, so it names a node of it; the node is the running
    // thread's own where the marks agree.
    unsafe {
        if !thread.is_null() && (*thread).private[MARK] == tag >> 32 {
            (*node).live -= bytes as i64;
        } else {
            freed_elsewhere(node).fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

/// The bytes of a node's memory that other threads have freed.
///
/// # Safety
/// `node` is a node of a store that is mapped.
#[inline(always)]
unsafe fn freed_elsewhere<'a>(node: *mut Node) -> &'a AtomicU64 {
    // SAFETY: the field is aligned, and everyone changes it by atomic instructions.
    unsafe { AtomicU64::from_ptr(&raw mut (*node).freed_elsewhere) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes are stored as multiples of this.
    const I: i64 = CODE as i64;

    /// A store with one node, a thread, and its open activation.
    struct Scene {
        store: [Node; 2],
        thread: Thread,
        top: Activation,
        state: u32,
        generation: u8,
    }

    #[derive(Clone, Copy, Debug)]
    struct Handle(*mut Scene);

    // SAFETY: `checked` builds what is asked for; the node is at a multiple of the unit.
    unsafe impl Process for Handle {
        fn thread(self) -> *mut Thread {
            // SAFETY: the scene lives.
            unsafe { &raw mut (*self.0).thread }
        }

        fn state(self) -> u32 {
            // SAFETY: the scene lives.
            unsafe { (*self.0).state }
        }

        fn base(self) -> *mut u8 {
            // SAFETY: the scene lives.
            unsafe { (&raw mut (*self.0).store).cast() }
        }

        fn generation(self) -> u8 {
            // SAFETY: the scene lives.
            unsafe { (*self.0).generation }
        }
    }

    fn checked(number: u64, test: impl Fn(Handle)) {
        for path in [0, 1 << 31, 1 << 30] {
            check_in_state(3 | path, number, &test);
        }
    }

    fn check_in_state(state: u32, number: u64, test: impl Fn(Handle)) {
        let store = [Node::default(); 2];
        let (thread, top) = (Thread::default(), Activation::default());
        let mut scene = Scene { store, thread, top, state, generation: 9 };
        let scene = &raw mut scene;
        // SAFETY: the scene lives, and this is the only way to it.
        unsafe {
            (*scene).top.node = (&raw mut (*scene).store[1]) as u64;
            (*scene).thread.top = (&raw mut (*scene).top) as u64;
            (*scene).thread.epoch = 3;
            (*scene).thread.private[MARK] = mark(number, 9);
            test(Handle(scene));
        }
    }

    fn node(scene: Handle) -> Node {
        // SAFETY: the scene lives.
        unsafe { (*scene.0).store[1] }
    }

    #[test]
    fn memory_that_its_own_thread_frees_is_subtracted() {
        checked(7, |scene| {
            let tag = Running::find(scene).expect("a node").allocated(100);
            assert_eq!(tag, (Node::BYTES as u64 / UNIT) | (7 << 32) | (9 << 48));
            assert_eq!(
                (node(scene).allocations, node(scene).live, node(scene).peak),
                (CODE, I * 100, I * 100)
            );
            // SAFETY: the tag is of this scene.
            unsafe { freed(scene, tag, 100) };
            assert_eq!((node(scene).live, node(scene).peak, node(scene).freed_elsewhere), (0, I * 100, 0));
        });
    }

    #[test]
    fn memory_that_a_thread_without_a_number_frees_is_added_up_apart() {
        checked(NUMBERLESS + 5, |scene| {
            let tag = Running::find(scene).expect("a node").allocated(100);
            // SAFETY: the tag is of this scene.
            unsafe { freed(scene, tag, 100) };
            assert_eq!((node(scene).live, node(scene).freed_elsewhere), (I * 100, CODE * 100));
            Running::find(scene).expect("a node").allocated(60);
            assert_eq!(node(scene).peak, I * 100);
        });
    }

    #[test]
    fn blocks_of_another_store_are_taken_off_nowhere() {
        checked(7, |scene| {
            let tag = Running::find(scene).expect("a node").allocated(100);
            // SAFETY: the tags are of this scene, or empty.
            unsafe {
                (*scene.0).generation = 10;
                freed(scene, tag, 100);
                freed(scene, 0, 100);
            }
            assert_eq!((node(scene).live, node(scene).freed_elsewhere), (I * 100, 0));
        });
    }

    #[test]
    fn nothing_runs_while_nothing_is_recorded_or_another_period_is() {
        checked(7, |scene| {
            // SAFETY: the scene lives.
            unsafe { (*scene.0).state = 0 };
            assert!(Running::find(scene).is_none());
            // SAFETY: as above.
            unsafe { (*scene.0).state = 4 };
            assert!(Running::find(scene).is_none());
        });
    }
}
