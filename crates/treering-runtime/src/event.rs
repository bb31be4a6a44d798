//! Call events: the enter; [`leave`](crate::leave) has the other half.
//!
//! A token says which activation was entered: where it stands on its thread's stack, and a tag of
//! that thread's record. A leave with a token of another thread, of an activation that was left
//! already, or from before recording was switched, is recognised and has no effect but a count;
//! one that is further out than the activation entered last leaves those in between too.
//!
//! A signal handler may interrupt an event and make events of its own. So an activation's place
//! is taken before it is filled, and given back before anything else is forgotten; whatever the
//! handler enters and leaves, the interrupted event finds its place as it was. At most the
//! handler's own costs are charged to the wrong caller, or one count of its node is lost.

use core::sync::atomic::{Ordering, compiler_fence};

use treering_events::cells::{Activation, Node, Thread};
use treering_events::{CALLS_START, CODE, flag, mode, rule};

use crate::course;
use crate::frame::leave_dead_frames;
use crate::process::{self, FLAT, SLOW, STATE};
use crate::record::{self, above, address, node_of, top_of};
use crate::registry::IGNORED;
use crate::store;
use crate::sys;
use crate::thread::{self, child};

/// The token of an event that was not recorded.
pub(crate) const NOTHING: u64 = 0;

/// The token of an activation beyond the depth limit.
pub(crate) const BEYOND: u64 = u64::MAX;

/// The frame of an activation that ends with no frame in particular.
pub(crate) const NO_FRAME: u64 = u64::MAX;

/// 2^32 divided by the golden ratio: multiples of it are spread evenly, whatever pattern the calls
/// follow, so that those that are timed stand for all.
///
/// Calls are counted in steps of [`CODE`], which is taken out of the product by its inverse.
const GOLDEN: u32 = 0x9E37_79B9_u32.wrapping_mul(CODE_INVERSE);

/// The inverse of [`CODE`]: their product is 1, modulo 2^32.
const CODE_INVERSE: u32 = 0xEEEE_EEEF;

const _: () = assert!((CODE as u32).wrapping_mul(CODE_INVERSE) == 1);

/// A function is entered. `frame` is the stack pointer of the code that the activation ends with,
/// or [`NO_FRAME`]; `here` is the stack pointer now, or 0.
#[inline(always)]
pub(crate) fn enter(function: u32, frame: u64, here: u64) -> u64 {
    enter_in(STATE.load(Ordering::Relaxed), function, frame, here)
}

/// The same where the state of the process is known.
#[inline(always)]
pub(crate) fn enter_in(state: u32, function: u32, frame: u64, here: u64) -> u64 {
    let Some(thread) = sys::current() else { return enter_slowly(function, frame, here) };
    if thread.epoch.get() != state {
        return enter_flat(thread, function, frame, here, state);
    }
    let top = top_of(thread);
    if address(top) == thread.private_limit.get() || top.frame.get() < here {
        return enter_slowly(function, frame, here);
    }
    match near_child(top, function) {
        Some(near) => push::<true>(thread, top, near, frame, 0),
        None => enter_far(thread, function, frame, here),
    }
}

/// The child for a function of the node that `top` is an activation of, where the fast path knows it.
#[inline(always)]
pub(crate) fn near_child(top: &'static Activation, function: u32) -> Option<&'static Node> {
    let near = record::near_child(node_of(top), function);
    (near.function.get() == function).then_some(near)
}

/// Whether a node's call with that many calls before it is one of those that are timed.
#[inline(always)]
pub(crate) fn is_chosen(node: &'static Node, calls: u64) -> bool {
    let threshold = node.threshold.get();
    threshold == u32::MAX || (calls.wrapping_sub(CALLS_START) as u32).wrapping_mul(GOLDEN) < threshold
}

/// An enter in a flat profile, if that is the state and the function has a node.
#[inline(never)]
fn enter_flat(thread: &'static Thread, function: u32, frame: u64, here: u64, state: u32) -> u64 {
    if thread.epoch.get() | FLAT == state {
        let top = top_of(thread);
        let has_room = thread.top.get() != thread.private_limit.get() && top.frame.get() >= here;
        if let (true, Some(node)) = (has_room, record::flat_node(thread, function)) {
            above(top).children.set(0);
            return push::<true>(thread, top, node, frame, counted(node));
        }
    }
    enter_slowly(function, frame, here)
}

/// An enter whose node is the running one, or is known but not near.
#[inline(never)]
fn enter_far(thread: &'static Thread, function: u32, frame: u64, here: u64) -> u64 {
    let top = top_of(thread);
    let running = node_of(top);
    // The root has no function, and neither has a caller that got 0 while nothing was recorded.
    if running.function.get() == function && function != 0 && process::folds_directly() {
        running.recursive.update(|recursive| recursive + CODE);
        return push::<true>(thread, top, running, frame, flag::INNER);
    }
    enter_known(thread, function, frame, here)
}

/// An enter whose node is known but not near.
#[inline(never)]
fn enter_known(thread: &'static Thread, function: u32, frame: u64, here: u64) -> u64 {
    let top = top_of(thread);
    if process::depth_limit() == 0
        && process::rule() != rule::SWI_CLASSIC
        && let Some(node) = thread::known_child(node_of(top), function)
    {
        return push::<true>(thread, top, node, frame, 0);
    }
    enter_slowly(function, frame, here)
}

/// Opens an activation of a node and returns its token.
#[inline(always)]
fn push<const TSC: bool>(
    thread: &'static Thread,
    top: &'static Activation,
    node: &'static Node,
    frame: u64,
    flags: u64,
) -> u64 {
    let new = above(top);
    thread.top.set(address(new));
    compiler_fence(Ordering::SeqCst);
    let calls = node.calls.get();
    node.calls.set(calls + CODE);
    new.node.set(address(node));
    new.frame.set(frame);
    new.reporter.set(0);
    let token = thread.private_tag.get() + address(new);
    if is_chosen(node, calls) {
        new.flags.set(flags);
        new.check.set(treering_events::Activation::check_of(address(node), flags));
        // The clock is read last, so that little of this falls into the measured interval.
        new.start.set(if TSC { sys::tsc() } else { start_after_charging(thread, top) });
        if !TSC {
            course::charge(thread, node_of(top), new.start.get());
        }
    } else {
        new.flags.set(flags | flag::UNTIMED);
        new.check.set(treering_events::Activation::check_of(address(node), flags | flag::UNTIMED));
    }
    token
}

/// The clock at the start of an activation. Where processor time is due to be charged, that is done
/// before, to the caller.
#[inline(always)]
pub(crate) fn start_after_charging(thread: &'static Thread, caller: &'static Activation) -> u64 {
    let now = sys::ticks();
    if now < thread.private_next_cpu.get() {
        return now;
    }
    thread::charge_cpu(thread, node_of(caller), now);
    sys::ticks()
}

/// Everything that is not the common case of an enter.
#[cold]
#[inline(never)]
fn enter_slowly(function: u32, frame: u64, here: u64) -> u64 {
    if let Some(token) = enter_otherwise(function, frame, here) {
        return token;
    }
    if function == IGNORED || function == 0 {
        return NOTHING;
    }
    let Some(ready) = Ready::take() else { return NOTHING };
    let thread = ready.0;
    if top_of(thread).frame.get() < here {
        leave_dead_frames(thread, here);
    }
    if here != 0 && frame != NO_FRAME && thread::is_on_other_stack(thread, here) {
        thread.other_stacks.update(|other_stacks| other_stacks + CODE);
    }
    match find_node(thread, function) {
        Found::Node(node, flags) => enter_found(thread, node, frame, flags),
        Found::TooDeep => {
            thread.beyond_limit.update(|beyond_limit| beyond_limit + 1);
            thread.too_deep.update(|too_deep| too_deep + CODE);
            BEYOND
        }
        Found::NoMemory => {
            thread.dropped.update(|dropped| dropped + CODE);
            NOTHING
        }
    }
}

/// An enter in a flat profile, with another clock, or where processor time is charged too;
/// nothing when it is not a common case of these.
#[inline(always)]
fn enter_otherwise(function: u32, frame: u64, here: u64) -> Option<u64> {
    let thread = sys::current()?;
    let is_ready = thread.epoch.get() | SLOW == STATE.load(Ordering::Relaxed);
    if !is_ready || process::depth_limit() != 0 || function == IGNORED {
        return None;
    }
    let top = top_of(thread);
    if thread.top.get() == thread.private_limit.get() || top.frame.get() < here {
        return None;
    }
    let (node, flags) = if process::mode() == mode::FLAT {
        let node = record::flat_node(thread, function)?;
        (node, counted(node))
    } else {
        (near_child(top, function)?, 0)
    };
    Some(enter_found(thread, node, frame, flags))
}

/// Counts one more open activation of a node, and returns the flags of an activation of it.
#[inline(always)]
fn counted(node: &'static Node) -> u64 {
    let open = node.open.get();
    node.open.set(open + 1);
    flag::COUNTED | if open == 0 { 0 } else { flag::INNER }
}

pub(crate) fn enter_found(thread: &'static Thread, node: &'static Node, frame: u64, flags: u64) -> u64 {
    let top = top_of(thread);
    above(top).children.set(0);
    push::<false>(thread, top, node, frame, flags)
}

/// Gives an open activation other flags.
pub(crate) fn set_flags(activation: &'static Activation, flags: u64) {
    activation.flags.set(flags);
    activation.check.set(treering_events::Activation::check_of(activation.node.get(), flags));
}

/// The record of the running thread, while events of its own are kept out.
pub(crate) struct Ready(&'static Thread);

impl Ready {
    /// Nothing when the event cannot be recorded.
    pub(crate) fn take() -> Option<Self> {
        if STATE.load(Ordering::Relaxed) == process::OFF {
            return None;
        }
        let current = sys::current();
        if current.is_some_and(sys::is_busy) {
            store::add_to_header(|header| &header.dropped_events, 1);
            return None;
        }
        sys::set_current(Some(sys::busy_thread()));
        let found = match current {
            _ if process::is_forked() => process::begin_in_child(),
            Some(thread) if process::is_current_store(thread) => Some(thread),
            _ => thread::attach(),
        };
        let Some(thread) = found else {
            sys::set_current(None);
            if STATE.load(Ordering::Relaxed) != process::OFF {
                store::add_to_header(|header| &header.dropped_events, 1);
            }
            return None;
        };
        let ready = Self(thread);
        if STATE.load(Ordering::Relaxed) == process::OFF {
            return None;
        }
        if thread.epoch.get() != process::epoch() {
            thread::renew(thread);
        }
        Some(ready)
    }
}

impl Ready {
    /// The record.
    pub(crate) fn thread(&self) -> &'static Thread {
        self.0
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        sys::set_current(Some(self.0));
    }
}

pub(crate) enum Found {
    /// The node, and the flags of an activation of it.
    Node(&'static Node, u64),
    TooDeep,
    NoMemory,
}

/// The node that a call of `function` leads to, under the recursion rule.
pub(crate) fn find_node(thread: &'static Thread, function: u32) -> Found {
    let limit = u64::from(process::depth_limit());
    if limit != 0 && thread::depth(thread) >= limit {
        return Found::TooDeep;
    }
    if !thread::has_room(thread) && !thread::grow_stack(thread) {
        return Found::NoMemory;
    }
    let running = node_of(top_of(thread));
    let folded = if process::mode() == mode::FLAT { None } else { fold(running, function) };
    if let Some(above) = folded {
        above.recursive.update(|recursive| recursive + CODE);
    }
    let node = match (process::mode(), folded) {
        (mode::FLAT, _) => thread::flat_node(thread, function),
        (_, Some(above)) => Some(above),
        _ => child(thread, running, function),
    };
    let Some(node) = node else { return Found::NoMemory };
    let flags = match process::rule() {
        _ if process::mode() == mode::FLAT => counted(node),
        rule::SWI_CLASSIC => counted(node),
        _ if folded.is_some() => flag::INNER,
        _ => 0,
    };
    Found::Node(node, flags)
}

/// The node at or above `running` that a call of `function` is folded into, if any.
pub(crate) fn fold(running: &'static Node, function: u32) -> Option<&'static Node> {
    match process::rule() {
        rule::FULL => None,
        _ if running.function.get() == function => Some(running),
        rule::SWI_CLASSIC => {
            let caller = running.function.get();
            let mut at = running;
            while at.parent.get() != 0 {
                let above = record::at::<Node>(at.parent.get());
                if at.function.get() == function && above.function.get() == caller {
                    return Some(at);
                }
                at = above;
            }
            None
        }
        _ => None,
    }
}
