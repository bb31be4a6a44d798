//! Costs of single lines of interpreted functions.

use core::sync::atomic::{AtomicU64, Ordering};

use treering_events::cells::{LineCost, Node, Thread};
use treering_events::{CODE, NodeLinks, Ref};

use crate::event::Ready;
use crate::process::{FLAT, OFF, SLOW, STATE};
use crate::record::{self, address, node_of, place_of, top_of};
use crate::table::Table;
use crate::{store, sys, thread};

/// Lines that have a record, by node and number.
static LINES: Table = Table::new();

/// The records that were found last by one thread, which most often are those of the next
/// statements too: for each a key and where it stands, 0 for none.
static NEAR: [[AtomicU64; 2]; 256] = [const { [AtomicU64::new(0), AtomicU64::new(0)] }; 256];

/// The address of the record of the thread that uses these, the first that has lines: two could mix theirs up.
static OWNER: AtomicU64 = AtomicU64::new(0);

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
    let state = STATE.load(Ordering::Relaxed) & !(FLAT | SLOW);
    if let Some(thread) = sys::current()
        && state != OFF && thread.epoch.get() == state
    {
        let node = node_of(top_of(thread));
        let key = key(node, number);
        let [known, at] = &NEAR[near(key)];
        let at = at.load(Ordering::Relaxed) as Ref;
        let is_known = known.load(Ordering::Relaxed) == key && at != 0;
        if is_known && OWNER.load(Ordering::Relaxed) == address(thread) {
            return add_to(at, hits, total, self_ticks);
        }
    }
    line_slowly(number, hits, total, self_ticks);
}

/// The key that tells a line of a node from all others of the store.
#[inline(always)]
fn key(node: &'static Node, number: u32) -> u64 {
    u64::from(place_of(node)) << 32 ^ u64::from(number) ^ store::base() as u64
}

#[inline(always)]
fn near(key: u64) -> usize {
    // The upper bits of a product depend on all of the key.
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize
}

#[inline(always)]
fn add_to(at: Ref, hits: u64, total: u64, self_ticks: u64) {
    let cost = record::at::<LineCost>(at);
    cost.hits.update(|all| all + hits);
    cost.total.update(|all| all + (total - total % CODE));
    cost.self_ticks.update(|all| all + (self_ticks - self_ticks % CODE));
}

#[cold]
#[inline(never)]
fn line_slowly(number: u32, hits: u64, total: u64, self_ticks: u64) {
    let Some(ready) = Ready::take() else { return };
    let thread = ready.thread();
    let node = node_of(top_of(thread));
    if node.parent.get() == 0 {
        return;
    }
    let key = key(node, number);
    let is_it = |at: u64| record::at::<LineCost>(at as u32).line.get() == number;
    let at = match LINES.find(key, is_it) {
        Some(at) => at as u32,
        None => {
            let Some(at) = add(thread, node, number) else { return };
            let _store = store::STORE.hold();
            LINES.insert(key, u64::from(at));
            at
        }
    };
    keep_near(thread, key, at);
    add_to(at, hits, total, self_ticks);
}

/// Has the next statement of the line find its record at once.
fn keep_near(thread: &'static Thread, key: u64, at: Ref) {
    let thread = address(thread);
    let owner = OWNER.compare_exchange(0, thread, Ordering::Relaxed, Ordering::Relaxed);
    if owner.is_ok() || owner == Err(thread) {
        let [known, place] = &NEAR[near(key)];
        place.store(u64::from(at), Ordering::Relaxed);
        known.store(key, Ordering::Relaxed);
    }
}

/// Adds a record to those of a node.
fn add(thread: &'static Thread, node: &'static Node, number: u32) -> Option<u32> {
    use treering_events::LineCost as Record;

    let place = thread::allocate_record(thread, Record::BYTES)?;
    let (next, of) = (node.lines.get(), place_of(node));
    record::make::<LineCost>(place, Record { next, line: number, node: of, ..Record::default() });
    record::publish(&node.lines, place);
    record::seal_as::<NodeLinks>(node);
    Some(place)
}

/// Forgets all lines, since their records are of a store that is not in use any more.
pub(crate) fn forget() {
    LINES.clear();
    OWNER.store(0, Ordering::Relaxed);
    NEAR.iter().for_each(|[_, at]| at.store(0, Ordering::Relaxed));
}
