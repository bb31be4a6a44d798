//! Frames of the program's stack: activations that end with the code that they stand in.

use core::sync::atomic::Ordering;

use treering_events::cells::{Activation, Thread};
use treering_events::{CODE, unwound};

use crate::event::{self, BEYOND, NO_FRAME, NOTHING, Ready};
use crate::leave::leave;
use crate::process::{self, FLAT, SLOW, STATE};
use crate::record::{address, below, node_of, stack_word, top_of};
use crate::{sys, thread};

/// Leaves activations whose frames the program has jumped out of.
///
/// Only frames of the thread's own stack tell: a coroutine or a signal handler on a stack of its
/// own leaves nothing.
#[cold]
pub(crate) fn leave_dead_frames(thread: &'static Thread, here: u64) {
    let low = thread.private[thread::word::STACK_LOW].get();
    let high = thread.private[thread::word::STACK_HIGH].get();
    let is_own = |frame: u64| low <= frame && frame < high;
    let now = sys::ticks();
    loop {
        let top = top_of(thread);
        if top.frame.get() >= here {
            return;
        }
        if !is_own(here) || !is_own(top.frame.get()) {
            top.frame.set(NO_FRAME);
            return;
        }
        thread::unwind(thread, address(below(top)), unwound::BY_JUMP, now);
    }
}

/// The program is about to jump to the code with the stack pointer `target`, out of all that
/// runs below it; out of a signal handler on a stack of its own as well.
pub(crate) fn jump(target: u64) {
    if STATE.load(Ordering::Relaxed) == process::OFF {
        return;
    }
    let Some(thread) = sys::recorded_thread() else { return };
    let low = thread.private[thread::word::STACK_LOW].get();
    let high = thread.private[thread::word::STACK_HIGH].get();
    let is_own = |frame: u64| low <= frame && frame < high;
    let handler = if is_own(target) { sys::signal_stack() } else { None };
    let is_of_handler = |frame: u64| handler.is_some_and(|(low, high)| low <= frame && frame < high);
    let frame = top_of(thread).frame.get();
    if frame >= target && !is_of_handler(frame) {
        return;
    }
    let Some(ready) = Ready::take() else { return };
    let thread = ready.thread();
    let now = sys::ticks();
    while is_of_handler(top_of(thread).frame.get()) {
        thread::unwind(thread, address(below(top_of(thread))), unwound::BY_JUMP, now);
    }
    leave_dead_frames(thread, target);
}

/// How a function reports that it is entered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Enter {
    /// Where its code begins.
    pub(crate) function: u64,
    /// Where it will return to; of one that was inlined, where the function around it will.
    pub(crate) call_site: u64,
    /// The stack pointer of the code that reports, or [`NO_FRAME`].
    pub(crate) frame: u64,
    /// Where that code stands.
    pub(crate) reporter: u64,
}

/// A function is entered that the compiler has report itself.
#[inline(always)]
pub(crate) fn enter_function(state: u32, id: u32, enter: Enter) {
    let is_called_by_topmost = sys::current().is_some_and(|thread| {
        thread.epoch.get() == state & !SLOW & !FLAT && is_called_by_topmost(thread, enter)
    });
    if !is_called_by_topmost {
        leave_interrupted(enter);
    }
    let token = event::enter_in(state, id, enter.frame, enter.frame);
    if token != NOTHING && token != BEYOND && let Some(thread) = sys::current() {
        top_of(thread).reporter.set(enter.reporter);
    }
}

/// Whether the topmost activation has surely made the call: the place below its frame holds where
/// the call returns to.
#[inline(always)]
fn is_called_by_topmost(thread: &'static Thread, enter: Enter) -> bool {
    let frame = top_of(thread).frame.get();
    let low = thread.private[thread::word::STACK_LOW].get();
    let high = thread.private[thread::word::STACK_HIGH].get();
    let is_on_stack = low <= enter.frame && enter.frame < frame && frame < high;
    is_on_stack && stack_word(frame - WORD) == enter.call_site
}

const WORD: u64 = 8;

/// How far above a function's stack pointer its return address is looked for.
const FARTHEST: u64 = 1 << 14;

/// The longest way from the start of a function to where it reports that it is entered.
const LONGEST_START: u64 = 512;

/// Leaves activations that an exception has left without a word, as it does with code of Clang, or
/// the program by a way of its own: those whose frames are below the return address of the function
/// that is entered, if that is found.
///
/// The first word that equals the return address may be a copy of it, but it is no higher than
/// the address itself; so no activation is left that goes on.
#[cold]
#[inline(never)]
fn leave_interrupted(enter: Enter) {
    let Some(thread) = sys::recorded_thread() else { return };
    let top = top_of(thread);
    let low = thread.private[thread::word::STACK_LOW].get();
    let high = thread.private[thread::word::STACK_HIGH].get();
    let is_own = |frame: u64| low <= frame && frame < high;
    if !is_own(enter.frame) || !is_own(top.frame.get()) {
        return;
    }
    // Two activations of a frame that are reported by the same code: the first is over.
    let is_again = |top: &'static Activation| top.frame.get() == enter.frame && top.reporter.get() == enter.reporter;
    let is_inlined = is_inlined(enter, top.reporter.get());
    let mut limit = if is_inlined { enter.frame } else { enter.frame + 1 };
    if !is_inlined && top.frame.get() - WORD >= enter.frame {
        let end = high.min(enter.frame + FARTHEST);
        let mut places = (enter.frame..end).step_by(WORD as usize);
        let found = places.find(|&place| stack_word(place) == enter.call_site);
        limit = found.map_or(limit, |place| place + 1);
    }
    if top.frame.get() >= limit && !is_again(top) {
        return;
    }
    let Some(ready) = Ready::take() else { return };
    let thread = ready.thread();
    let now = sys::ticks();
    loop {
        let top = top_of(thread);
        if !is_own(top.frame.get()) || top.frame.get() >= limit && !is_again(top) {
            return;
        }
        thread::unwind(thread, address(below(top)), unwound::BY_JUMP, now);
    }
}

/// Whether a function that is entered was inlined into the one that reported itself at `outer`: the
/// code that reports it is not that at its own start.
fn is_inlined(enter: Enter, outer: u64) -> bool {
    let from_start = enter.reporter.wrapping_sub(enter.function);
    from_start > LONGEST_START || enter.function < outer && outer < enter.reporter
}

/// A function is left that the compiler has report itself. Activations that it has made and that
/// were not left end with it; where it is not open itself, nothing happens but a count.
///
/// The stack pointer may be lower than it was at the enter, by arrays of variable length.
pub(crate) fn leave_function(id: u32, frame: u64, is_gone: bool) {
    let Some(thread) = sys::recorded_thread() else { return };
    let top = top_of(thread);
    let node = node_of(top);
    let is_it = match is_gone {
        false => top.frame.get() == frame,
        true => top.frame.get() < frame && below(top).frame.get() > frame,
    };
    // The root is of no function, so there is an activation below.
    if node.function.get() == id && is_it {
        return leave(thread.private_tag.get() + address(top));
    }
    leave_function_below(thread, id, frame, is_gone);
}

#[cold]
fn leave_function_below(thread: &'static Thread, id: u32, frame: u64, is_gone: bool) {
    let is_exact = |at: &'static Activation| at.frame.get() == frame && !is_gone;
    let found = match thread.beyond_limit.get() {
        0 => topmost(thread, id, |at| is_gone || at.frame.get() >= frame)
            .map(|at| if is_gone { outermost_below(thread, at, id, frame) } else { at }),
        // It may be one that was too deep, which has no activation.
        _ => topmost(thread, id, is_exact),
    };
    if let Some(found) = found {
        return leave(thread.private_tag.get() + address(found));
    }
    if thread.epoch.get() == process::epoch() && thread.beyond_limit.get() == 0 {
        thread.unbalanced.update(|unbalanced| unbalanced + CODE);
    }
    thread.beyond_limit.set(thread.beyond_limit.get().saturating_sub(1));
}

/// The topmost activation of a function that may be it.
fn topmost(thread: &'static Thread, id: u32, may_be: impl Fn(&'static Activation) -> bool) -> Option<&'static Activation> {
    let mut at = top_of(thread);
    while address(at) > thread.stack_address.get() {
        let node = node_of(at);
        if node.function.get() == id && may_be(at) {
            return Some(at);
        }
        at = below(at);
    }
    None
}

/// The outermost activation of a function whose frame is below `frame`, from `at` on; `at` itself where
/// its frame is on another stack.
fn outermost_below(thread: &'static Thread, at: &'static Activation, id: u32, frame: u64) -> &'static Activation {
    let (mut at, mut found) = (at, at);
    while address(at) > thread.stack_address.get() && at.frame.get() < frame {
        if node_of(at).function.get() == id {
            found = at;
        }
        at = below(at);
    }
    found
}
