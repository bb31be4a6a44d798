//! Leaves: what happens when an activation ends.
//!
//! An activation's place is given back before anything else is forgotten, as [`event`](crate::event) says.

use core::sync::atomic::{Ordering, compiler_fence};

use treering_events::{Activation, CODE, Node, Sizes, Thread, flag, mode, open_sum, seal_sum, unwound};

use crate::event::{BEYOND, NOTHING, Ready, set_flags, top_of};
use crate::process::{self, FLAT, SLOW, STATE};
use crate::store;
use crate::sys;
use crate::thread;

/// The activation of `token` is left.
#[inline(always)]
pub(crate) fn leave(token: u64) {
    let thread = sys::current();
    if thread.is_null() {
        return leave_slowly(token);
    }
    // SAFETY: as in `enter`.
    unsafe {
        // The place comes from the token and not from the record, which only confirms it: so the
        // next enter need not wait until the record was read back.
        let place = token.wrapping_sub((*thread).private_tag);
        if place != (*thread).top {
            return leave_slowly(token);
        }
        let top = place as *mut Activation;
        let flags = (*top).flags;
        if flags == 0 {
            if (*thread).epoch == STATE.load(Ordering::Relaxed) {
                return leave_timed(thread, top, false);
            }
        } else if flags == flag::UNTIMED {
            if (*thread).epoch == STATE.load(Ordering::Relaxed) & !FLAT {
                (*thread).top = top.sub(1) as u64;
                return;
            }
        } else if flags == flag::COUNTED && (*thread).epoch | FLAT == STATE.load(Ordering::Relaxed) {
            return leave_flat(thread, top, false);
        }
        leave_otherwise(thread, top, token);
    }
}

/// Leaves an activation that is inner, or neither timed nor of a call graph: common cases as well,
/// but kept out of the code of most.
#[inline(never)]
unsafe fn leave_otherwise(thread: *mut Thread, top: *mut Activation, token: u64) {
    // SAFETY: `top` is the running thread's topmost activation.
    unsafe {
        let flags = (*top).flags;
        let state = STATE.load(Ordering::Relaxed);
        if flags == flag::INNER && (*thread).epoch == state {
            return leave_timed(thread, top, true);
        }
        if flags == flag::COUNTED | flag::INNER && (*thread).epoch | FLAT == state {
            return leave_flat(thread, top, true);
        }
        if flags & flag::UNTIMED != 0 && (*thread).epoch == state & !FLAT {
            (*((*top).node as *mut Node)).open -= (flags & flag::COUNTED != 0) as u32;
            (*thread).top = top.sub(1) as u64;
            return;
        }
    }
    leave_slowly(token);
}

/// Leaves an activation of a call graph.
#[inline(always)]
unsafe fn leave_timed(thread: *mut Thread, top: *mut Activation, is_inner: bool) {
    // The clock is read first, so that little of this falls into the interval.
    let now = sys::tsc();
    // SAFETY: `top` is the running thread's topmost activation.
    unsafe {
        let taken = now.wrapping_sub((*top).start);
        if taken as i64 >= 0 {
            measure((*top).node as *mut Node, taken, is_inner);
        } else {
            (*thread).clock_steps_back += CODE;
        }
        finish(thread, top, now);
    }
}

/// Leaves an activation of a flat profile.
#[inline(always)]
unsafe fn leave_flat(thread: *mut Thread, top: *mut Activation, is_inner: bool) {
    let now = sys::tsc();
    // SAFETY: `top` is the running thread's topmost activation; the root's is below it.
    unsafe {
        let node = (*top).node as *mut Node;
        let taken = now.wrapping_sub((*top).start);
        if taken as i64 >= 0 {
            (*node).self_total += taken.saturating_sub((*top).children);
            (*top.sub(1)).children += taken;
            measure(node, taken, is_inner);
        } else {
            (*thread).clock_steps_back += CODE;
        }
        (*node).open -= 1;
        finish(thread, top, now);
    }
}

/// Gives back the place of the topmost activation, which was left at `now`.
#[inline(always)]
unsafe fn finish(thread: *mut Thread, top: *mut Activation, now: u64) {
    // SAFETY: `top` is the running thread's topmost activation; the root's is below it.
    unsafe {
        (*thread).last_ticks = now;
        // An activation that is just being entered is told by having no start.
        (*top).start = 0;
        compiler_fence(Ordering::SeqCst);
        (*thread).top = top.sub(1) as u64;
    }
}

/// Adds an activation to the total and the statistics of its node.
///
/// A processor does nothing else while it reads its counter, so that every instruction here counts.
/// What follows from other numbers is left to the reader: the sum of all differences, and which
/// activations are calm, as most are.
#[inline(always)]
pub(crate) unsafe fn measure(node: *mut Node, taken: u64, is_inner: bool) {
    // SAFETY: the node is one of the running thread's.
    unsafe {
        (*node).timed += CODE;
        let mut least = (*node).least;
        if taken < least {
            if least == u64::MAX {
                (*node).first = taken;
            } else if (taken ^ least) > taken {
                forget_calm(node);
            }
            (*node).least = taken;
            least = taken;
        }
        if is_inner {
            (*node).timed_inner += CODE;
            (*node).besides = (*node).besides.wrapping_add(taken);
        } else {
            (*node).total += taken;
        }
        if taken > (*node).greatest {
            (*node).greatest = taken;
        }
        // Differences from one of the values, so that nothing is lost by cancellation.
        let difference = taken.wrapping_sub((*node).first) as i64 as f64;
        (*node).squares = seal_sum(open_sum((*node).squares) + difference * difference);
        if taken >= least.wrapping_mul(2) {
            (*node).restless += CODE;
            (*node).restless_total += taken;
        }
    }
}

/// What seemed calm was not: an activation took so much less that its time is below a power of two
/// that the shortest until then was not below. So what is calm in the end took less than four times
/// the shortest of all, and those that came before do not raise its mean. The activation itself is
/// in `timed` already, and in no other number.
#[cold]
#[inline(never)]
unsafe fn forget_calm(node: *mut Node) {
    // SAFETY: the node is one of the running thread's.
    unsafe {
        (*node).restless = (*node).timed - CODE;
        (*node).restless_total = (*node).total.wrapping_add((*node).besides);
    }
}

/// Everything that is not one of the common cases of a leave.
#[inline(never)]
fn leave_slowly(token: u64) {
    if token == NOTHING {
        return;
    }
    let now = sys::ticks();
    let thread = sys::current();
    // SAFETY: `Ready` holds this thread's own record.
    unsafe {
        let is_topmost = !thread.is_null()
            && (*thread).epoch == STATE.load(Ordering::Relaxed) & !(SLOW | FLAT)
            && (*thread).private_tag + (*thread).top == token;
        if is_topmost {
            return pop(thread, now);
        }
        let was_forked = process::is_forked();
        let Some(ready) = Ready::take() else { return };
        let thread = ready.thread();
        // In a child what was open begins with the child's own file, which was just made.
        let now = if was_forked { sys::ticks() } else { now };
        if token == BEYOND {
            (*thread).beyond_limit = (*thread).beyond_limit.saturating_sub(1);
            return;
        }
        match place_on_stack(thread, token) {
            Place::Open(place) => {
                thread::unwind(thread, place, unwound::BY_OUTER, now);
                pop(thread, now);
            }
            Place::Left => (*thread).unbalanced += CODE,
            Place::Foreign => (*thread).unbalanced += CODE * u64::from(thread::is_tag_in_use(token)),
        }
    }
}

/// What a token leads to.
pub(crate) enum Place {
    /// An activation that is open.
    Open(u64),
    /// One that was left.
    Left,
    /// One of another thread, or of another period of recording.
    Foreign,
}

pub(crate) unsafe fn place_on_stack(thread: *mut Thread, token: u64) -> Place {
    // SAFETY: the record is the running thread's.
    unsafe {
        let place = token.wrapping_sub((*thread).private_tag);
        let first = (*thread).stack_address;
        if place >> 48 != 0 {
            return Place::Foreign;
        }
        match place > first && place <= (*thread).top {
            true => Place::Open(place),
            false => Place::Left,
        }
    }
}

/// Leaves the topmost activation at the time `now`, whatever sort it is.
///
/// # Safety
/// The record is the running thread's, and an activation besides the root's is open.
pub(crate) unsafe fn pop(thread: *mut Thread, now: u64) {
    // SAFETY: by this function's own requirement.
    unsafe {
        let top = top_of(thread);
        let node = (*top).node as *mut Node;
        let flags = (*top).flags;
        let taken = now.wrapping_sub((*top).start);
        if flags & flag::UNTIMED != 0 {
        } else if (taken as i64) < 0 {
            (*thread).clock_steps_back += CODE;
        } else {
            add(node, taken, flags);
            if process::mode() == mode::FLAT {
                (*node).self_total += taken.saturating_sub((*top).children);
                (*top.sub(1)).children += taken;
            }
            (*thread).last_ticks = now;
        }
        if flags & flag::COUNTED != 0 {
            (*node).open -= 1;
        }
        if now >= (*thread).private_next_cpu {
            thread::charge_cpu(thread, node, now);
        }
        (*top).start = 0;
        compiler_fence(Ordering::SeqCst);
        (*thread).top = top.sub(1) as u64;
    }
}

unsafe fn add(node: *mut Node, taken: u64, flags: u64) {
    // SAFETY: the node is one of the running thread's.
    unsafe {
        let is_inner = flags & flag::INNER != 0;
        if flags & flag::INHERITED == 0 {
            measure(node, taken, is_inner);
        } else if !is_inner {
            (*node).total += taken;
            (*node).besides = (*node).besides.wrapping_sub(taken);
        }
        let class = flags >> flag::SIZE_SHIFT;
        if class != 0 && (*node).sizes != 0 {
            (*store::at::<Sizes>((*node).sizes)).ticks[class as usize - 1] += taken;
        }
    }
}

/// The activation of `token` did not take place: the function refused the call, which is not
/// counted. Its time stays the caller's, unless the node has callees, whose times are parts of its
/// own. What was entered in it and not left is left.
#[cold]
#[inline(never)]
pub(crate) fn withdraw(token: u64) {
    if token == NOTHING || token == BEYOND {
        return leave(token);
    }
    // SAFETY: `Ready` holds this thread's own record.
    unsafe {
        let Some(ready) = Ready::take() else { return };
        let thread = ready.thread();
        let Place::Open(place) = place_on_stack(thread, token) else {
            drop(ready);
            return leave(token);
        };
        let now = sys::ticks();
        thread::unwind(thread, place, unwound::BY_OUTER, now);
        let top = top_of(thread);
        let (node, flags) = ((*top).node as *mut Node, (*top).flags);
        if flags & flag::INHERITED == 0 {
            (*node).calls -= CODE;
            let was_folded = flags & flag::INNER != 0 && process::mode() != mode::FLAT;
            (*node).recursive -= CODE * u64::from(was_folded);
            let class = flags >> flag::SIZE_SHIFT;
            if class != 0 && (*node).sizes != 0 {
                (*store::at::<Sizes>((*node).sizes)).calls[class as usize - 1] -= CODE;
            }
        }
        if treering_events::first((*node).child_list) != 0 {
            // One that was counted elsewhere only adds its time.
            set_flags(top, flags & (flag::INNER | flag::COUNTED | flag::UNTIMED) | flag::INHERITED);
            return pop(thread, now);
        }
        if process::mode() == mode::FLAT {
            (*top.sub(1)).children += (*top).children;
        }
        (*node).open -= u32::from(flags & flag::COUNTED != 0);
        (*top).start = 0;
        compiler_fence(Ordering::SeqCst);
        (*thread).top = top.sub(1) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activations_before_a_much_shorter_one_are_not_calm() {
        let mut node = Node { least: u64::MAX, ..Node::default() };
        // SAFETY: the node is the test's own, and has no sizes.
        unsafe { [300, 160, 90].into_iter().for_each(|taken| add(&raw mut node, taken, 0)) };
        assert_eq!((node.timed, node.restless, node.restless_total), (3 * CODE, 2 * CODE, 460));
        // 25 is more than twice 10; 70 is of an inner activation.
        // SAFETY: as above.
        unsafe {
            [10, 12, 25, 9].into_iter().for_each(|taken| add(&raw mut node, taken, 0));
            add(&raw mut node, 70, flag::INNER);
        }
        let all = node.total.wrapping_add(node.besides);
        assert_eq!((node.timed - node.restless, all - node.restless_total), (3 * CODE, 31));
    }

    #[test]
    fn a_node_tells_the_ticks_of_all_activations_and_which_were_restless() {
        let mut node = Node { least: u64::MAX, ..Node::default() };
        // 185 is more than twice 90, the shortest so far; 150 is less than twice 100.
        let ticks = [(100, 0), (150, flag::INNER), (90, 0), (185, flag::INNER), (1000, 0), (95, flag::INNER)];
        // SAFETY: the node is the test's own, and has no sizes.
        ticks.iter().for_each(|&(taken, flags)| unsafe { add(&raw mut node, taken, flags) });
        // One that was counted when it began elsewhere is part of the total only.
        // SAFETY: as above.
        unsafe { add(&raw mut node, 7, flag::INHERITED) };
        assert_eq!((node.timed, node.timed_inner), (6 * CODE, 3 * CODE));
        assert_eq!((node.total, node.total.wrapping_add(node.besides)), (1197, 1620));
        assert_eq!((node.least, node.greatest, node.first), (90, 1000, 100));
        assert_eq!((node.restless, node.restless_total), (2 * CODE, 1185));
        assert_eq!(open_sum(node.squares), 2500.0 + 100.0 + 7225.0 + 810_000.0 + 25.0);
    }
}
