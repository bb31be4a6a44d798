//! Call events: what happens on every enter and leave.
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

use treering_events::{
    Activation, CALLS_START, CODE, NEAR_CHILDREN, Node, Sizes, Thread, flag, mode, open_sum, rule, seal_sum, unwound,
};

use crate::frame::leave_dead_frames;
use crate::process::{self, FLAT, SLOW, STATE};
use crate::registry::IGNORED;
use crate::store;
use crate::sys;
use crate::thread::{self, child, flat_node};

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

/// What [`CODE`] times is 1, modulo 2^32.
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
    let thread = sys::current();
    // SAFETY: the current record is null or one that only this thread changes; its top leads to
    // an activation, whose node is one of its tree.
    unsafe {
        if thread.is_null() {
            return enter_slowly(function, frame, here);
        }
        if (*thread).epoch != state {
            return enter_flat(thread, function, frame, here, state);
        }
        let top = (*thread).top as *mut Activation;
        if (*thread).top == (*thread).private_limit || (*top).frame < here {
            return enter_slowly(function, frame, here);
        }
        match near_child(top, function) {
            Some(near) => push::<true>(thread, top, near, frame, 0),
            None => enter_far(thread, function, frame, here),
        }
    }
}

/// The child for a function of the node that `top` is an activation of, where the fast path knows it.
///
/// # Safety
/// The activation is the topmost one of the running thread.
#[inline(always)]
pub(crate) unsafe fn near_child(top: *mut Activation, function: u32) -> Option<*mut Node> {
    // SAFETY: by this function's own requirement; every entry leads to a node.
    unsafe {
        let running = (*top).node as *mut Node;
        let near = (&(*running).private_children)[function as usize % NEAR_CHILDREN] as *mut Node;
        ((*near).function == function).then_some(near)
    }
}

/// Whether a node's call with that many calls before it is one of those that are timed.
#[inline(always)]
pub(crate) unsafe fn is_chosen(node: *mut Node, calls: u64) -> bool {
    // SAFETY: the node is one of the running thread's.
    let threshold = unsafe { (*node).threshold };
    threshold == u32::MAX || (calls.wrapping_sub(CALLS_START) as u32).wrapping_mul(GOLDEN) < threshold
}

/// An enter in a flat profile, if that is the state and the function has a node.
#[inline(never)]
unsafe fn enter_flat(thread: *mut Thread, function: u32, frame: u64, here: u64, state: u32) -> u64 {
    // SAFETY: as in `enter`.
    unsafe {
        if (*thread).epoch | FLAT == state {
            let top = top_of(thread);
            let has_room = (*thread).top != (*thread).private_limit && (*top).frame >= here;
            let node = thread::known_flat_node(thread, function);
            if has_room && !node.is_null() {
                (*top.add(1)).children = 0;
                return push::<true>(thread, top, node, frame, counted(node));
            }
        }
    }
    enter_slowly(function, frame, here)
}

/// An enter whose node is the running one, or is known but not near.
#[inline(never)]
unsafe fn enter_far(thread: *mut Thread, function: u32, frame: u64, here: u64) -> u64 {
    // SAFETY: as in `enter`, which has found room and no dead frames.
    unsafe {
        let top = top_of(thread);
        let running = (*top).node as *mut Node;
        // The root has no function, and neither has a caller that got 0 while nothing was recorded.
        if (*running).function == function && function != 0 && process::folds_directly() {
            (*running).recursive += CODE;
            return push::<true>(thread, top, running, frame, flag::INNER);
        }
        enter_known(thread, function, frame, here)
    }
}

/// An enter whose node is known but not near.
#[inline(never)]
unsafe fn enter_known(thread: *mut Thread, function: u32, frame: u64, here: u64) -> u64 {
    // SAFETY: as in `enter_far`, which has excluded a direct recursion.
    unsafe {
        let top = top_of(thread);
        if process::depth_limit() == 0
            && process::rule() != rule::SWI_CLASSIC
            && let Some(node) = thread::known_child((*top).node as *mut Node, function)
        {
            return push::<true>(thread, top, node, frame, 0);
        }
        enter_slowly(function, frame, here)
    }
}

/// Opens an activation of a node and returns its token.
///
/// # Safety
/// The record is the running thread's and has room above `top`; `node` is one of its tree. `TSC`
/// only where the state says that this is the clock.
#[inline(always)]
unsafe fn push<const TSC: bool>(
    thread: *mut Thread,
    top: *mut Activation,
    node: *mut Node,
    frame: u64,
    flags: u64,
) -> u64 {
    // SAFETY: by this function's own requirement.
    unsafe {
        let new = top.add(1);
        (*thread).top = new as u64;
        compiler_fence(Ordering::SeqCst);
        let calls = (*node).calls;
        (*node).calls = calls + CODE;
        (*new).node = node as u64;
        (*new).frame = frame;
        (*new).reporter = 0;
        let token = (*thread).private_tag + new as u64;
        if is_chosen(node, calls) {
            (*new).flags = flags;
            (*new).check = Activation::check_of(node as u64, flags);
            // The clock is read last, so that little of this falls into the measured interval.
            (*new).start = if TSC { sys::tsc() } else { start_after_charging(thread, top) };
        } else {
            (*new).flags = flags | flag::UNTIMED;
            (*new).check = Activation::check_of(node as u64, flags | flag::UNTIMED);
        }
        token
    }
}

/// The clock at the start of an activation. Where processor time is due to be charged, that is done
/// before, to the caller.
#[inline(always)]
pub(crate) unsafe fn start_after_charging(thread: *mut Thread, caller: *mut Activation) -> u64 {
    let now = sys::ticks();
    // SAFETY: the record is the running thread's, with an activation at `caller`.
    unsafe {
        if now < (*thread).private_next_cpu {
            return now;
        }
        thread::charge_cpu(thread, (*caller).node as *mut Node, now);
    }
    sys::ticks()
}

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

/// Everything that is not the common case of an enter.
#[cold]
#[inline(never)]
fn enter_slowly(function: u32, frame: u64, here: u64) -> u64 {
    // SAFETY: `ready` returns this thread's own record.
    unsafe {
        if let Some(token) = enter_otherwise(function, frame, here) {
            return token;
        }
        if function == IGNORED || function == 0 {
            return NOTHING;
        }
        let Some(ready) = Ready::take() else { return NOTHING };
        let thread = ready.0;
        if (*top_of(thread)).frame < here {
            leave_dead_frames(thread, here);
        }
        if here != 0 && frame != NO_FRAME && thread::is_on_other_stack(thread, here) {
            (*thread).other_stacks += CODE;
        }
        match find_node(thread, function) {
            Found::Node(node, flags) => enter_found(thread, node, frame, flags),
            Found::TooDeep => {
                (*thread).beyond_limit += 1;
                (*thread).too_deep += CODE;
                BEYOND
            }
            Found::NoMemory => {
                (*thread).dropped += CODE;
                NOTHING
            }
        }
    }
}

/// An enter in a flat profile, with another clock, or where processor time is charged too;
/// nothing when it is not a common case of these.
#[inline(always)]
unsafe fn enter_otherwise(function: u32, frame: u64, here: u64) -> Option<u64> {
    let thread = sys::current();
    // SAFETY: as in `enter`.
    unsafe {
        let is_ready = !thread.is_null() && (*thread).epoch | SLOW == STATE.load(Ordering::Relaxed);
        if !is_ready || process::depth_limit() != 0 || function == IGNORED {
            return None;
        }
        let top = top_of(thread);
        if (*thread).top == (*thread).private_limit || (*top).frame < here {
            return None;
        }
        let (node, flags) = if process::mode() == mode::FLAT {
            let node = thread::known_flat_node(thread, function);
            if node.is_null() {
                return None;
            }
            (node, counted(node))
        } else {
            (near_child(top, function)?, 0)
        };
        Some(enter_found(thread, node, frame, flags))
    }
}

/// Counts one more open activation of a node, and returns the flags of an activation of it.
#[inline(always)]
unsafe fn counted(node: *mut Node) -> u64 {
    // SAFETY: the node is one of the running thread's.
    unsafe {
        let open = (*node).open;
        (*node).open = open + 1;
        flag::COUNTED | if open == 0 { 0 } else { flag::INNER }
    }
}

pub(crate) unsafe fn enter_found(thread: *mut Thread, node: *mut Node, frame: u64, flags: u64) -> u64 {
    // SAFETY: the record is the running thread's, and has room.
    unsafe {
        let top = top_of(thread);
        (*top.add(1)).children = 0;
        push::<false>(thread, top, node, frame, flags)
    }
}

/// Gives an open activation other flags.
///
/// # Safety
/// The activation is one of the running thread's.
pub(crate) unsafe fn set_flags(activation: *mut Activation, flags: u64) {
    // SAFETY: by this function's own requirement.
    unsafe {
        (*activation).flags = flags;
        (*activation).check = Activation::check_of((*activation).node, flags);
    }
}

/// The topmost open activation.
#[inline(always)]
pub(crate) unsafe fn top_of(thread: *mut Thread) -> *mut Activation {
    // SAFETY: the record is the running thread's.
    unsafe { (*thread).top as *mut Activation }
}

/// The record of the running thread, while events of its own are kept out.
pub(crate) struct Ready(*mut Thread);

impl Ready {
    /// Nothing when the event cannot be recorded.
    ///
    /// # Safety
    /// The thread's record is used only as long as this is held.
    pub(crate) unsafe fn take() -> Option<Self> {
        // SAFETY: records are valid as long as their store is mapped, and no store is unmapped.
        unsafe {
            if STATE.load(Ordering::Relaxed) == process::OFF {
                return None;
            }
            let mut thread = sys::current();
            if thread == sys::busy_thread() {
                store::add_to_header(|header| &raw mut (*header).dropped_events, 1);
                return None;
            }
            sys::set_current(sys::busy_thread());
            if process::is_forked() {
                thread = process::begin_in_child();
            } else if thread.is_null() || !process::is_current_store(thread) {
                thread = thread::attach();
            }
            let is_on = !thread.is_null() && STATE.load(Ordering::Relaxed) != process::OFF;
            if is_on && (*thread).epoch != process::epoch() {
                thread::renew(thread);
            }
            let ready = Self(thread);
            is_on.then_some(ready)
        }
    }
}

impl Ready {
    /// The record.
    pub(crate) fn thread(&self) -> *mut Thread {
        self.0
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        sys::set_current(self.0);
    }
}

pub(crate) enum Found {
    /// The node, and the flags of an activation of it.
    Node(*mut Node, u64),
    TooDeep,
    NoMemory,
}

/// The node that a call of `function` leads to, under the recursion rule.
pub(crate) unsafe fn find_node(thread: *mut Thread, function: u32) -> Found {
    // SAFETY: the record is the running thread's.
    unsafe {
        let limit = u64::from(process::depth_limit());
        if limit != 0 && thread::depth(thread) >= limit {
            return Found::TooDeep;
        }
        if (*thread).top == (*thread).private_limit && !thread::grow_stack(thread) {
            return Found::NoMemory;
        }
        let running = (*top_of(thread)).node as *mut Node;
        let folded = if process::mode() == mode::FLAT { None } else { fold(running, function) };
        if let Some(above) = folded {
            (*above).recursive += CODE;
        }
        let node = match (process::mode(), folded) {
            (mode::FLAT, _) => flat_node(thread, function),
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
}

/// The node at or above `running` that a call of `function` is folded into, if any.
pub(crate) unsafe fn fold(running: *mut Node, function: u32) -> Option<*mut Node> {
    // SAFETY: parents lead up to the root.
    unsafe {
        match process::rule() {
            rule::FULL => None,
            _ if (*running).function == function => Some(running),
            rule::SWI_CLASSIC => {
                let caller = (*running).function;
                let mut at = running;
                while (*at).parent != 0 {
                    let above = store::at::<Node>((*at).parent);
                    if (*at).function == function && (*above).function == caller {
                        return Some(at);
                    }
                    at = above;
                }
                None
            }
            _ => None,
        }
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
        let thread = ready.0;
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
        let thread = ready.0;
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
