//! Call events: the leave, when an activation ends.
//!
//! An activation's place is given back before anything else is forgotten, as [`event`](crate::event) says.

use core::sync::atomic::{Ordering, compiler_fence};

use treering_events::cells::{Activation, Node, Sizes, Thread};
use treering_events::{CODE, flag, mode, open_sum, seal_sum, unwound};

use crate::event::{BEYOND, NOTHING, Ready, set_flags};
use crate::process::{self, FLAT, SLOW, STATE};
use crate::record::{self, address, below, node_of, top_of};
use crate::{course, sys, thread};

/// The activation of `token` is left.
#[inline(always)]
pub(crate) fn leave(token: u64) {
    let Some(thread) = sys::current() else { return leave_slowly(token) };
    let place = token.wrapping_sub(thread.private_tag.get());
    if place != thread.top.get() {
        return leave_slowly(token);
    }
    let top = record::topmost_at(place);
    let flags = top.flags.get();
    if flags == 0 {
        if thread.epoch.get() == STATE.load(Ordering::Relaxed) {
            return leave_timed(thread, top, false);
        }
    } else if flags == flag::UNTIMED {
        if thread.epoch.get() == STATE.load(Ordering::Relaxed) & !FLAT {
            thread.top.set(address(below(top)));
            return;
        }
    } else if flags == flag::COUNTED && thread.epoch.get() | FLAT == STATE.load(Ordering::Relaxed) {
        return leave_flat(thread, top, false);
    }
    leave_otherwise(thread, top, token);
}

/// Leaves an activation that is inner, or neither timed nor of a call graph: common cases as well,
/// but kept out of the code of most.
#[inline(never)]
fn leave_otherwise(thread: &'static Thread, top: &'static Activation, token: u64) {
    let flags = top.flags.get();
    let state = STATE.load(Ordering::Relaxed);
    if flags == flag::INNER && thread.epoch.get() == state {
        return leave_timed(thread, top, true);
    }
    if flags == flag::COUNTED | flag::INNER && thread.epoch.get() | FLAT == state {
        return leave_flat(thread, top, true);
    }
    if flags & flag::UNTIMED != 0 && thread.epoch.get() == state & !FLAT {
        node_of(top).open.update(|open| open - u32::from(flags & flag::COUNTED != 0));
        thread.top.set(address(below(top)));
        return;
    }
    leave_slowly(token);
}

/// Leaves an activation of a call graph.
#[inline(always)]
fn leave_timed(thread: &'static Thread, top: &'static Activation, is_inner: bool) {
    // The clock is read first, so that little of this falls into the interval.
    let now = sys::tsc();
    let taken = now.wrapping_sub(top.start.get());
    if taken as i64 >= 0 {
        measure(node_of(top), taken, is_inner);
    } else {
        thread.clock_steps_back.update(|clock_steps_back| clock_steps_back + CODE);
    }
    finish(thread, top, now);
}

/// Leaves an activation of a flat profile.
#[inline(always)]
fn leave_flat(thread: &'static Thread, top: &'static Activation, is_inner: bool) {
    let now = sys::tsc();
    let node = node_of(top);
    let taken = now.wrapping_sub(top.start.get());
    if taken as i64 >= 0 {
        node.self_total.update(|self_total| self_total + taken.saturating_sub(top.children.get()));
        below(top).children.update(|children| children + taken);
        measure(node, taken, is_inner);
    } else {
        thread.clock_steps_back.update(|clock_steps_back| clock_steps_back + CODE);
    }
    node.open.update(|open| open - 1);
    finish(thread, top, now);
}

/// Gives back the place of the topmost activation, which was left at `now`.
#[inline(always)]
fn finish(thread: &'static Thread, top: &'static Activation, now: u64) {
    thread.last_ticks.set(now);
    // An activation that is just being entered is told by having no start.
    top.start.set(0);
    compiler_fence(Ordering::SeqCst);
    thread.top.set(address(below(top)));
}

/// Adds an activation to the total and the statistics of its node.
///
/// A processor does nothing else while it reads its counter, so that every instruction here counts. The
/// reader works out what follows from other numbers: the sum of all differences, and the calm activations,
/// which most are.
#[inline(always)]
pub(crate) fn measure(node: &Node, taken: u64, is_inner: bool) {
    node.timed.update(|timed| timed + CODE);
    let mut least = node.least.get();
    if taken < least {
        if least == u64::MAX {
            node.first.set(taken);
        } else if (taken ^ least) > taken {
            forget_calm(node);
        }
        node.least.set(taken);
        least = taken;
    }
    if is_inner {
        node.timed_inner.update(|timed_inner| timed_inner + CODE);
        node.besides.set(node.besides.get().wrapping_add(taken));
    } else {
        node.total.update(|total| total + taken);
    }
    if taken > node.greatest.get() {
        node.greatest.set(taken);
    }
    // Differences from one of the values, so that nothing is lost by cancellation.
    let difference = taken.wrapping_sub(node.first.get()) as i64 as f64;
    node.squares.set(seal_sum(open_sum(node.squares.get()) + difference * difference));
    if taken >= least.wrapping_mul(2) {
        node.restless.update(|restless| restless + CODE);
        node.restless_total.update(|restless_total| restless_total + taken);
    }
}

/// Counts all activations until now as restless: this one took so much less that its time is below a power
/// of two that the shortest until then was not below. So the activations that are calm in the end took less
/// than four times the shortest of all, and those that came before do not raise their mean. This activation
/// is in `timed` already, and in no other number.
#[cold]
#[inline(never)]
fn forget_calm(node: &Node) {
    node.restless.set(node.timed.get() - CODE);
    node.restless_total.set(node.total.get().wrapping_add(node.besides.get()));
}

/// Everything that is not one of the common cases of a leave.
#[inline(never)]
fn leave_slowly(token: u64) {
    if token == NOTHING {
        return;
    }
    let now = sys::ticks();
    if let Some(thread) = sys::current()
        && thread.epoch.get() == STATE.load(Ordering::Relaxed) & !(SLOW | FLAT)
        && thread.private_tag.get() + thread.top.get() == token
    {
        return pop(thread, now);
    }
    let was_forked = process::is_forked();
    let Some(ready) = Ready::take() else { return };
    let thread = ready.thread();
    // In a child, activations that were open at the fork begin with the child's own file, which was just
    // made.
    let now = if was_forked { sys::ticks() } else { now };
    if token == BEYOND {
        thread.beyond_limit.set(thread.beyond_limit.get().saturating_sub(1));
        return;
    }
    match place_on_stack(thread, token) {
        Place::Open(activation) => {
            thread::unwind(thread, address(activation), unwound::BY_OUTER, now);
            pop(thread, now);
        }
        Place::Left => thread.unbalanced.update(|count| count + CODE),
        Place::Foreign => {
            let is_foreign = thread::is_tag_in_use(token);
            thread.unbalanced.update(|count| count + CODE * u64::from(is_foreign));
        }
    }
}

/// The activation that a token leads to.
pub(crate) enum Place {
    /// An activation that is open.
    Open(&'static Activation),
    /// One that was left.
    Left,
    /// One of another thread, or of another period of recording.
    Foreign,
}

pub(crate) fn place_on_stack(thread: &'static Thread, token: u64) -> Place {
    let place = token.wrapping_sub(thread.private_tag.get());
    if place >> 48 != 0 {
        return Place::Foreign;
    }
    record::open_at(thread, place).map_or(Place::Left, Place::Open)
}

/// Leaves the topmost activation at the time `now`, whatever sort it is.
pub(crate) fn pop(thread: &'static Thread, now: u64) {
    let top = top_of(thread);
    let node = node_of(top);
    let flags = top.flags.get();
    let taken = now.wrapping_sub(top.start.get());
    if flags & flag::UNTIMED != 0 {
    } else if (taken as i64) < 0 {
        thread.clock_steps_back.update(|clock_steps_back| clock_steps_back + CODE);
    } else {
        course::charge(thread, node, now);
        add(node, taken, flags);
        if process::mode() == mode::FLAT {
            node.self_total.update(|self_total| self_total + taken.saturating_sub(top.children.get()));
            below(top).children.update(|children| children + taken);
        }
        thread.last_ticks.set(now);
    }
    if flags & flag::COUNTED != 0 {
        node.open.update(|open| open - 1);
    }
    if now >= thread.private_next_cpu.get() {
        thread::charge_cpu(thread, node, now);
    }
    top.start.set(0);
    compiler_fence(Ordering::SeqCst);
    thread.top.set(address(below(top)));
}

fn add(node: &Node, taken: u64, flags: u64) {
    let is_inner = flags & flag::INNER != 0;
    if flags & flag::INHERITED == 0 {
        measure(node, taken, is_inner);
    } else if !is_inner {
        node.total.update(|total| total + taken);
        node.besides.set(node.besides.get().wrapping_sub(taken));
    }
    let class = flags >> flag::SIZE_SHIFT;
    if class != 0 && node.sizes.get() != 0 {
        record::at::<Sizes>(node.sizes.get()).ticks[class as usize - 1].update(|ticks| ticks + taken);
    }
}

/// The activation of `token` did not take place: the function refused the call, which is not counted. Its
/// time stays the caller's, unless the node has callees, whose times are parts of its own. Activations
/// entered in it and still open are left.
#[cold]
#[inline(never)]
pub(crate) fn withdraw(token: u64) {
    if token == NOTHING || token == BEYOND {
        return leave(token);
    }
    let Some(ready) = Ready::take() else { return };
    let thread = ready.thread();
    let Place::Open(activation) = place_on_stack(thread, token) else {
        drop(ready);
        return leave(token);
    };
    let now = sys::ticks();
    thread::unwind(thread, address(activation), unwound::BY_OUTER, now);
    let top = top_of(thread);
    let (node, flags) = (node_of(top), top.flags.get());
    if flags & flag::INHERITED == 0 {
        node.calls.update(|calls| calls - CODE);
        let was_folded = flags & flag::INNER != 0 && process::mode() != mode::FLAT;
        node.recursive.update(|recursive| recursive - CODE * u64::from(was_folded));
        let class = flags >> flag::SIZE_SHIFT;
        if class != 0 && node.sizes.get() != 0 {
            record::at::<Sizes>(node.sizes.get()).calls[class as usize - 1].update(|calls| calls - CODE);
        }
    }
    if treering_events::first(node.child_list.get()) != 0 {
        // One that was counted elsewhere only adds its time.
        set_flags(top, flags & (flag::INNER | flag::COUNTED | flag::UNTIMED) | flag::INHERITED);
        return pop(thread, now);
    }
    if process::mode() == mode::FLAT {
        below(top).children.update(|children| children + top.children.get());
    }
    node.open.update(|open| open - u32::from(flags & flag::COUNTED != 0));
    course::charge(thread, node_of(below(top)), now);
    top.start.set(0);
    compiler_fence(Ordering::SeqCst);
    thread.top.set(address(below(top)));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node without sizes of which no activation was timed yet.
    fn untimed_node() -> Node {
        // Zeros stand for cells of zeros.
        let node = record::zeroed::<Node>();
        node.least.set(u64::MAX);
        node
    }

    #[test]
    fn activations_before_a_much_shorter_one_are_not_calm() {
        let node = untimed_node();
        [300, 160, 90].into_iter().for_each(|taken| add(&node, taken, 0));
        let after = record::read(&node);
        assert_eq!((after.timed, after.restless, after.restless_total), (3 * CODE, 2 * CODE, 460));
        // 25 is more than twice 10; 70 is of an inner activation.
        [10, 12, 25, 9].into_iter().for_each(|taken| add(&node, taken, 0));
        add(&node, 70, flag::INNER);
        let node = record::read(&node);
        let all = node.total.wrapping_add(node.besides);
        assert_eq!((node.timed - node.restless, all - node.restless_total), (3 * CODE, 31));
    }

    #[test]
    fn a_node_tells_the_ticks_of_all_activations_and_which_were_restless() {
        let node = untimed_node();
        // 185 is more than twice 90, the shortest so far; 150 is less than twice 100.
        let ticks = [(100, 0), (150, flag::INNER), (90, 0), (185, flag::INNER), (1000, 0), (95, flag::INNER)];
        ticks.iter().for_each(|&(taken, flags)| add(&node, taken, flags));
        // One that was counted when it began elsewhere is part of the total only.
        add(&node, 7, flag::INHERITED);
        let node = record::read(&node);
        assert_eq!((node.timed, node.timed_inner), (6 * CODE, 3 * CODE));
        assert_eq!((node.total, node.total.wrapping_add(node.besides)), (1197, 1620));
        assert_eq!((node.least, node.greatest, node.first), (90, 1000, 100));
        assert_eq!((node.restless, node.restless_total), (2 * CODE, 1185));
        assert_eq!(open_sum(node.squares), 2500.0 + 100.0 + 7225.0 + 810_000.0 + 25.0);
    }
}
