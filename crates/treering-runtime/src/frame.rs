//! Frames of the program's stack: activations that end with the code that they stand in.

use core::sync::atomic::Ordering;

use treering_events::{Activation, Node, Thread, unwound};

use crate::event::{NO_FRAME, Ready, leave, top_of};
use crate::process::{self, STATE};
use crate::{sys, thread};

/// Leaves activations whose frames the program has jumped out of.
///
/// Only frames of the thread's own stack tell: a coroutine or a signal handler on a stack of its
/// own leaves nothing.
#[cold]
pub(crate) unsafe fn leave_dead_frames(thread: *mut Thread, here: u64) {
    // SAFETY: the record is the running thread's.
    unsafe {
        let low = (*thread).private[thread::word::STACK_LOW];
        let high = (*thread).private[thread::word::STACK_HIGH];
        let is_own = |frame: u64| low <= frame && frame < high;
        let now = sys::ticks();
        loop {
            let top = top_of(thread);
            if (*top).frame >= here {
                return;
            }
            if !is_own(here) || !is_own((*top).frame) {
                (*top).frame = NO_FRAME;
                return;
            }
            thread::unwind(thread, top.sub(1) as u64, unwound::BY_JUMP, now);
        }
    }
}

/// The program is about to jump to the code with the stack pointer `target`, out of all that
/// runs below it.
pub(crate) fn jump(target: u64) {
    let thread = sys::current();
    if STATE.load(Ordering::Relaxed) == process::OFF || thread.is_null() || thread == sys::busy_thread() {
        return;
    }
    // SAFETY: the record is this thread's own; `Ready` holds it.
    unsafe {
        if (*top_of(thread)).frame < target
            && let Some(ready) = Ready::take()
        {
            leave_dead_frames(ready.thread(), target);
        }
    }
}

/// The function whose frame is the highest at or below `frame` is left. Activations that it has
/// made and that were not left end with it; where it is not open itself, nothing happens.
pub(crate) fn leave_function(function: u32, frame: u64) {
    let thread = sys::current();
    if thread.is_null() || thread == sys::busy_thread() {
        return;
    }
    // SAFETY: the record is this thread's own; the activation of the root stands below all others.
    unsafe {
        let top = top_of(thread);
        let node = (*top).node as *mut Node;
        let is_highest = || (*top).frame == frame || (*top).frame < frame && (*top.sub(1)).frame > frame;
        // The root is of no function, so there is an activation below.
        if (*node).function == function && is_highest() {
            return leave((*thread).private_tag + top as u64);
        }
        leave_function_below(thread, function, frame);
    }
}

/// Of two activations in one frame, where one was inlined into the other, the inner is left.
#[cold]
unsafe fn leave_function_below(thread: *mut Thread, function: u32, frame: u64) {
    // SAFETY: the record is this thread's own; the activation of the root ends the search.
    unsafe {
        let mut at = top_of(thread);
        let first = (*thread).stack_address as *mut Activation;
        let mut highest: Option<*mut Activation> = None;
        while at > first && ((*at).frame <= frame || (*at).frame == NO_FRAME) {
            let node = (*at).node as *mut Node;
            let is_higher = highest.is_none_or(|known| (*known).frame < (*at).frame);
            if (*node).function == function && (*at).frame <= frame && is_higher {
                highest = Some(at);
            }
            at = at.sub(1);
        }
        if let Some(found) = highest {
            return leave((*thread).private_tag + found as u64);
        }
        if (*thread).epoch == process::epoch() && (*thread).beyond_limit == 0 {
            (*thread).unbalanced += 1;
        }
        (*thread).beyond_limit = (*thread).beyond_limit.saturating_sub(1);
    }
}
