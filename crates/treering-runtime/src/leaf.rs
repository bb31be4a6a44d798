//! Leaves: activations in which no other is entered, and which need no place on the stack.
//!
//! All that an enter does for most calls is to count, and a leave does nothing. What a leaf enters
//! all the same, or allocates, is its caller's. Where a call is timed, that is noticed, and the
//! time is not used: it would be counted twice.

use core::sync::atomic::Ordering;

use treering_events::{CODE, Node, Thread, flag, mode};

use crate::event::{
    Found, NOTHING, Ready, find_node, is_chosen, near_child, start_after_charging, top_of,
};
use crate::frame::leave_dead_frames;
use crate::leave::measure;
use crate::process::{self, FLAT, SLOW, STATE};
use crate::registry::IGNORED;
use crate::{sys, thread};

/// What a leave has to know: nothing, for a call that is not timed.
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
    let thread = sys::current();
    // SAFETY: as in `event::enter_in`.
    unsafe {
        if thread.is_null() || (*thread).epoch != state {
            return enter_flat(state, function, here);
        }
        let top = top_of(thread);
        match near_child(top, function) {
            Some(node) if (*top).frame >= here => count(thread, node),
            _ => enter_slowly(function, here),
        }
    }
}

/// Counts a call of a node, where the clock is the processor's counter.
#[inline(always)]
unsafe fn count(thread: *mut Thread, node: *mut Node) -> Token {
    // SAFETY: the record is the running thread's, and the node one of its tree.
    unsafe {
        let calls = (*node).calls;
        (*node).calls = calls + CODE;
        match is_chosen(node, calls) {
            false => Token::UNTIMED,
            true => Token { node: (*thread).private_tag + node as u64, start: sys::tsc() },
        }
    }
}

/// An enter in a flat profile, if that is the state and the function has a node.
#[inline(never)]
fn enter_flat(state: u32, function: u32, here: u64) -> Token {
    let thread = sys::current();
    // SAFETY: as in `enter`.
    unsafe {
        if !thread.is_null() && (*thread).epoch | FLAT == state && (*top_of(thread)).frame >= here {
            let node = thread::known_flat_node(thread, function);
            if !node.is_null() {
                return count(thread, node);
            }
        }
    }
    enter_slowly(function, here)
}

/// Everything that is not the common case of an enter.
#[inline(never)]
fn enter_slowly(function: u32, here: u64) -> Token {
    if function == IGNORED || function == 0 {
        return Token::UNTIMED;
    }
    // SAFETY: `Ready` holds this thread's own record.
    unsafe {
        let Some(ready) = Ready::take() else { return Token::UNTIMED };
        let thread = ready.thread();
        if (*top_of(thread)).frame < here {
            leave_dead_frames(thread, here);
        }
        match find_node(thread, function) {
            Found::Node(node, flags) => {
                (*node).open -= u32::from(flags & flag::COUNTED != 0);
                let calls = (*node).calls;
                (*node).calls = calls + CODE;
                if !is_chosen(node, calls) {
                    return Token::UNTIMED;
                }
                let node = (*thread).private_tag + node as u64;
                Token { node, start: start_after_charging(thread, top_of(thread)) }
            }
            Found::TooDeep => {
                (*thread).too_deep += CODE;
                Token::UNTIMED
            }
            Found::NoMemory => {
                (*thread).dropped += CODE;
                Token::UNTIMED
            }
        }
    }
}

/// A leaf that is timed is left. One of another thread or another period of recording has no effect.
#[inline(never)]
pub(crate) fn leave(token: Token) {
    let thread = sys::current();
    if thread.is_null() {
        return;
    }
    // SAFETY: the record is this thread's own, and the node is one of its tree, as the tag says.
    unsafe {
        let place = token.node.wrapping_sub((*thread).private_tag);
        let (epoch, state) = ((*thread).epoch, STATE.load(Ordering::Relaxed));
        if place >> 48 != 0 || thread == sys::busy_thread() {
            return;
        }
        let node = place as *mut Node;
        if epoch == state {
            add(thread, node, token.start, sys::tsc());
        } else if epoch == state & !(SLOW | FLAT) {
            leave_otherwise(thread, node, token.start);
        }
    }
}

/// Leaves a leaf in a flat profile, with another clock, or where processor time is charged too.
#[inline(never)]
unsafe fn leave_otherwise(thread: *mut Thread, node: *mut Node, start: u64) {
    let now = sys::ticks();
    // SAFETY: by `leave`.
    unsafe {
        if add(thread, node, start, now) && process::mode() == mode::FLAT {
            (*node).self_total += now - start;
            (*top_of(thread)).children += now - start;
        }
        if now >= (*thread).private_next_cpu {
            thread::charge_cpu(thread, node, now);
        }
    }
}

/// Adds the time of an activation to its node, if it was the time of a leaf.
#[inline(always)]
unsafe fn add(thread: *mut Thread, node: *mut Node, start: u64, now: u64) -> bool {
    // SAFETY: by `leave`.
    unsafe {
        if now < start {
            (*thread).clock_steps_back += CODE;
            return false;
        }
        if (*thread).last_ticks > start {
            (*thread).branched_leaves += CODE;
            return false;
        }
        let is_inner = (*top_of(thread)).node == node as u64 || (*node).open > 0;
        measure(node, now - start, is_inner);
        (*thread).last_ticks = now;
        true
    }
}
