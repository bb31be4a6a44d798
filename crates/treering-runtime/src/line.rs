//! What single lines of interpreted functions cost.

use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use treering_events::{CODE, LineCost, Node, NodeLinks, Ref, Thread};

use crate::event::{Ready, top_of};
use crate::process::{FLAT, OFF, SLOW, STATE};
use crate::table::Table;
use crate::{store, sys, thread};

/// Lines that have a record, by node and number.
static LINES: Table = Table::new();

/// The records that were found last by one thread, which most often are those of the next
/// statements too: for each a key and where it stands, 0 for none.
static NEAR: [[AtomicU64; 2]; 256] = [const { [AtomicU64::new(0), AtomicU64::new(0)] }; 256];

/// The thread that uses these, the first that has lines: two could mix theirs up.
static OWNER: AtomicPtr<Thread> = AtomicPtr::new(core::ptr::null_mut());

/// A statement on a line of the function that runs has ended. It took `total` [ticks](crate::ticks)
/// with all that it called, and `self_ticks` without.
///
/// The record of a line is never removed. Nothing happens while nothing is recorded, and outside
/// of all functions.
#[inline]
pub fn line(number: u32, total: u64, self_ticks: u64) {
    add_line(number, CODE, total, self_ticks);
}

/// The same of a further statement on the line, which adds to its time and not to its hits.
#[inline]
pub fn rest_of_line(number: u32, total: u64, self_ticks: u64) {
    add_line(number, 0, total, self_ticks);
}

#[inline(always)]
fn add_line(number: u32, hits: u64, total: u64, self_ticks: u64) {
    let thread = sys::current();
    let state = STATE.load(Ordering::Relaxed) & !(FLAT | SLOW);
    // SAFETY: the current record is null or one that only this thread changes. Its top leads to an
    // activation whose node is of its tree, and records of lines stay.
    unsafe {
        if !thread.is_null() && state != OFF && (*thread).epoch == state {
            let node = (*top_of(thread)).node as *mut Node;
            let key = key(node, number);
            let [known, at] = &NEAR[near(key)];
            let at = at.load(Ordering::Relaxed) as Ref;
            let is_known = known.load(Ordering::Relaxed) == key && at != 0;
            if is_known && OWNER.load(Ordering::Relaxed) == thread {
                return add_to(at, hits, total, self_ticks);
            }
        }
    }
    line_slowly(number, hits, total, self_ticks);
}

/// What tells a line of a node from all others of the store.
#[inline(always)]
fn key(node: *mut Node, number: u32) -> u64 {
    u64::from(thread::place_of(node)) << 32 ^ u64::from(number) ^ store::base() as u64
}

#[inline(always)]
fn near(key: u64) -> usize {
    // The upper bits of a product depend on all of the key.
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize
}

/// # Safety
/// A record of a line stands there, of this thread's tree.
#[inline(always)]
unsafe fn add_to(at: Ref, hits: u64, total: u64, self_ticks: u64) {
    // SAFETY: by this function's own requirement.
    unsafe {
        let cost = store::at::<LineCost>(at);
        (*cost).hits += hits;
        (*cost).total += total - total % CODE;
        (*cost).self_ticks += self_ticks - self_ticks % CODE;
    }
}

#[cold]
#[inline(never)]
fn line_slowly(number: u32, hits: u64, total: u64, self_ticks: u64) {
    // SAFETY: `Ready` holds this thread's own record; its activations are of nodes of its tree.
    unsafe {
        let Some(ready) = Ready::take() else { return };
        let thread = ready.thread();
        let node = (*top_of(thread)).node as *mut Node;
        if (*node).parent == 0 {
            return;
        }
        let key = key(node, number);
        let is_it = |at: u64| (*store::at::<LineCost>(at as u32)).line == number;
        let at = match LINES.find(key, is_it) {
            Some(at) => at as u32,
            None => {
                let Some(at) = add(thread, node, number) else { return };
                let _held = store::LOCK.hold();
                LINES.insert(key, u64::from(at));
                at
            }
        };
        keep_near(thread, key, at);
        add_to(at, hits, total, self_ticks);
    }
}

/// Has the next statement of the line find its record at once.
fn keep_near(thread: *mut Thread, key: u64, at: Ref) {
    let none = core::ptr::null_mut();
    let owner = OWNER.compare_exchange(none, thread, Ordering::Relaxed, Ordering::Relaxed);
    if owner.is_ok() || owner == Err(thread) {
        let [known, place] = &NEAR[near(key)];
        place.store(u64::from(at), Ordering::Relaxed);
        known.store(key, Ordering::Relaxed);
    }
}

/// Adds a record to those of a node.
///
/// # Safety
/// The thread is the running one, and the node one of its tree.
unsafe fn add(thread: *mut Thread, node: *mut Node, number: u32) -> Option<u32> {
    // SAFETY: by this function's own requirement; the new record is not published yet.
    unsafe {
        let place = thread::allocate_record(thread, LineCost::BYTES)?;
        let next = (*node).lines;
        let of = thread::place_of(node);
        store::at::<LineCost>(place).write(LineCost { next, line: number, node: of, ..LineCost::default() });
        store::seal::<LineCost>(place, store::at(place));
        (&raw mut (*node).lines).write_volatile(place);
        store::seal::<NodeLinks>(of, node.cast());
        Some(place)
    }
}

/// Forgets all lines, since their records are of a store that is not in use any more.
pub(crate) fn forget() {
    LINES.clear();
    OWNER.store(core::ptr::null_mut(), Ordering::Relaxed);
    NEAR.iter().for_each(|[_, at]| at.store(0, Ordering::Relaxed));
}
