//! Leaves: activations in which no other is entered, and which need no place on the stack.
//!
//! For most calls the enter only counts, and the leave does nothing. A call or an allocation that a leaf
//! makes all the same is its caller's. Where the leaf's call is timed, the runtime notices that, and drops
//! the time: it would be counted twice.

use core::sync::atomic::Ordering;

use treering_events::cells::{Node, Thread};
use treering_events::{CODE, flag, mode};

use crate::event::{
    Found, NOTHING, Ready, find_node, is_chosen, near_child, start_after_charging,
};
use crate::frame::leave_dead_frames;
use crate::leave::measure;
use crate::process::{self, FLAT, SLOW, STATE};
use crate::record::{self, address, node_of, top_of};
use crate::registry::IGNORED;
use crate::{course, sys, thread};

/// The facts that a leave needs; [`NOTHING`] for a call that is not timed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// Where the node stands and the tag of the thread's record, or [`NOTHING`].
    node: u64,
    /// The clock at the enter.
    start: u64,
}

impl Token {
    pub(crate) const UNTIMED: Self = Self { node: NOTHING, start: 0 };

    /// Whether there is anything to leave.
    #[inline(always)]
    pub(crate) fn is_timed(self) -> bool {
        self.node != NOTHING
    }
}

/// A leaf is entered; `here` is the stack pointer now, or 0.
#[inline(always)]
pub(crate) fn enter(state: u32, function: u32, here: u64) -> Token {
    let Some(thread) = sys::current().filter(|thread| thread.epoch.get() == state) else {
        return enter_flat(state, function, here);
    };
    let top = top_of(thread);
    match near_child(top, function) {
        Some(node) if top.frame.get() >= here => count(thread, node),
        _ => enter_slowly(function, here),
    }
}

/// Counts a call of a node, where the clock is the processor's counter.
#[inline(always)]
fn count(thread: &'static Thread, node: &'static Node) -> Token {
    let calls = node.calls.get();
    node.calls.set(calls + CODE);
    match is_chosen(node, calls) {
        false => Token::UNTIMED,
        true => Token { node: thread.private_tag.get() + address(node), start: sys::tsc() },
    }
}

/// An enter in a flat profile, if that is the state and the function has a node.
#[inline(never)]
fn enter_flat(state: u32, function: u32, here: u64) -> Token {
    if let Some(thread) = sys::current()
        && thread.epoch.get() | FLAT == state
        && top_of(thread).frame.get() >= here
        && let Some(node) = record::flat_node(thread, function)
    {
        return count(thread, node);
    }
    enter_slowly(function, here)
}

/// Everything that is not the common case of an enter.
#[inline(never)]
fn enter_slowly(function: u32, here: u64) -> Token {
    if function == IGNORED || function == 0 {
        return Token::UNTIMED;
    }
    let Some(ready) = Ready::take() else { return Token::UNTIMED };
    let thread = ready.thread();
    if top_of(thread).frame.get() < here {
        leave_dead_frames(thread, here);
    }
    match find_node(thread, function) {
        Found::Node(node, flags) => {
            node.open.update(|open| open - u32::from(flags & flag::COUNTED != 0));
            let calls = node.calls.get();
            node.calls.set(calls + CODE);
            if !is_chosen(node, calls) {
                return Token::UNTIMED;
            }
            let node = thread.private_tag.get() + address(node);
            let start = start_after_charging(thread, top_of(thread));
            course::charge(thread, node_of(top_of(thread)), start);
            Token { node, start }
        }
        Found::TooDeep => {
            thread.too_deep.update(|too_deep| too_deep + CODE);
            Token::UNTIMED
        }
        Found::NoMemory => {
            thread.dropped.update(|dropped| dropped + CODE);
            Token::UNTIMED
        }
    }
}

/// A leaf that is timed is left. One of another thread or another period of recording has no effect.
#[inline(never)]
pub(crate) fn leave(token: Token) {
    let Some(thread) = sys::current() else { return };
    let place = token.node.wrapping_sub(thread.private_tag.get());
    let (epoch, state) = (thread.epoch.get(), STATE.load(Ordering::Relaxed));
    if place >> 48 != 0 || sys::is_busy(thread) {
        return;
    }
    let node = record::leaf_at(place);
    if epoch == state {
        add(thread, node, token.start, sys::tsc());
    } else if epoch == state & !(SLOW | FLAT) {
        leave_otherwise(thread, node, token.start);
    }
}

/// Leaves a leaf in a flat profile, with another clock, or where processor time is charged too.
#[inline(never)]
fn leave_otherwise(thread: &'static Thread, node: &'static Node, start: u64) {
    let now = sys::ticks();
    let is_added = add(thread, node, start, now);
    if is_added {
        course::charge(thread, node, now);
    }
    if is_added && process::mode() == mode::FLAT {
        node.self_total.update(|total| total + (now - start));
        top_of(thread).children.update(|children| children + (now - start));
    }
    if now >= thread.private_next_cpu.get() {
        thread::charge_cpu(thread, node, now);
    }
}

/// Adds the time of an activation to its node, if it was the time of a leaf.
#[inline(always)]
fn add(thread: &'static Thread, node: &'static Node, start: u64, now: u64) -> bool {
    if now < start {
        thread.clock_steps_back.update(|clock_steps_back| clock_steps_back + CODE);
        return false;
    }
    if thread.last_ticks.get() > start {
        thread.branched_leaves.update(|branched_leaves| branched_leaves + CODE);
        return false;
    }
    let is_inner = top_of(thread).node.get() == address(node) || node.open.get() > 0;
    measure(node, now - start, is_inner);
    thread.last_ticks.set(now);
    true
}
