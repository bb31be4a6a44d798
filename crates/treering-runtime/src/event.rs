//! Call events: what happens on every enter; [`leave`](crate::leave) has the other half.
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

use treering_events::{Activation, CALLS_START, CODE, NEAR_CHILDREN, Node, Thread, flag, mode, rule};

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
