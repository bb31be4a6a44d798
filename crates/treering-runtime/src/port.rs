//! What else may happen to an activation: the ports of logic programs, another poll of a future, the
//! size of an argument.

use treering_events::{Activation, CALLS_START, CODE, Node, NodeLinks, SIZE_CLASSES, Sizes, Thread, flag, mode, rule, size_class};

use crate::event::{
    BEYOND, Found, NO_FRAME, NOTHING, Ready, enter_found, find_node, fold, set_flags, top_of,
};
use crate::frame::leave_dead_frames;
use crate::leave::{Place, place_on_stack};
use crate::registry::IGNORED;
use crate::{process, store, sys, thread};

/// The activation of a token, if it is open in this thread.
unsafe fn open_activation(thread: *mut Thread, token: u64) -> Option<*mut Activation> {
    // SAFETY: the record is the running thread's.
    match unsafe { place_on_stack(thread, token) } {
        Place::Open(place) => Some(place as *mut Activation),
        _ => None,
    }
}

/// What happens to an activation of a logic program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    Exit,
    Fail,
    Exception,
    Cut,
}

impl Port {
    /// # Safety
    /// The node is one of the running thread's.
    unsafe fn count(self, node: *mut Node) {
        // SAFETY: by this function's own requirement.
        unsafe {
            match self {
                Self::Exit => (*node).exits += CODE,
                Self::Fail => (*node).fails += CODE,
                Self::Exception => (*node).exceptions += CODE,
                Self::Cut => (*node).cuts += CODE,
            }
        }
    }
}

/// Counts a port of the activation of `token`.
pub(crate) fn count_port(token: u64, port: Port) {
    if token == NOTHING || token == BEYOND {
        return;
    }
    // SAFETY: `Ready` holds this thread's own record.
    unsafe {
        let Some(ready) = Ready::take() else { return };
        let Some(activation) = open_activation(ready.thread(), token) else {
            (*ready.thread()).unbalanced += CODE;
            return;
        };
        port.count((*activation).node as *mut Node);
    }
}

/// The node of an open activation, and the record of its thread.
pub(crate) fn place(token: u64) -> Option<(u64, u64)> {
    if token == NOTHING || token == BEYOND {
        return None;
    }
    // SAFETY: `Ready` holds this thread's own record.
    unsafe {
        let ready = Ready::take()?;
        let activation = open_activation(ready.thread(), token)?;
        Some(((*activation).node, ready.thread() as u64))
    }
}

/// Counts a port of an activation that is not open, by its place; only in the thread that it is of.
pub(crate) fn count_port_at((node, of): (u64, u64), port: Port) {
    // SAFETY: `Ready` holds this thread's own record; the node is of its tree.
    unsafe {
        let Some(ready) = Ready::take() else { return };
        if ready.thread() as u64 == of {
            port.count(node as *mut Node);
        } else {
            (*ready.thread()).unbalanced += CODE;
        }
    }
}

/// Enters a node again: to look for another solution, or with `is_resumed` to go on with an activation
/// that was left for a while. Only in the thread that the node is of.
///
/// Where it is not the running node that the node stands under, its function's node under that one is
/// entered in its place: the costs of a node's callees are part of its own.
pub(crate) fn enter_again((node, of): (u64, u64), is_resumed: bool) -> u64 {
    // SAFETY: `Ready` holds this thread's own record; the node is of its tree.
    unsafe {
        let Some(ready) = Ready::take() else { return NOTHING };
        let thread = ready.thread();
        if thread as u64 != of {
            (*thread).unbalanced += CODE;
            return NOTHING;
        }
        let node = node as *mut Node;
        let Some((node, flags)) = node_again(thread, node) else {
            (*thread).dropped += CODE;
            return NOTHING;
        };
        let calls = (*node).calls;
        let inherited = if is_resumed { flag::INHERITED } else { 0 };
        let token = enter_found(thread, node, NO_FRAME, flags | inherited);
        (*node).calls = calls;
        (*node).redos += CODE * u64::from(!is_resumed);
        token
    }
}

/// The node that an activation of a known one goes on in, and its flags; nothing when there is no room.
unsafe fn node_again(thread: *mut Thread, known: *mut Node) -> Option<(*mut Node, u64)> {
    // SAFETY: by the caller's word, the node is one of the running thread's.
    unsafe {
        let running = (*top_of(thread)).node as *mut Node;
        let stands_here = (*known).parent == thread::place_of(running);
        if stands_here && process::rule() != rule::SWI_CLASSIC && process::mode() != mode::FLAT {
            let has_room = (*thread).top != (*thread).private_limit || thread::grow_stack(thread);
            return has_room.then_some((known, 0));
        }
        find_uncounted(thread, (*known).function)
    }
}

/// The node that an activation of a function leads to, which is no call, not even a recursive one.
unsafe fn find_uncounted(thread: *mut Thread, function: u32) -> Option<(*mut Node, u64)> {
    // SAFETY: the record is the running thread's.
    unsafe {
        let is_folded = process::mode() != mode::FLAT
            && fold((*top_of(thread)).node as *mut Node, function).is_some();
        let Found::Node(node, flags) = find_node(thread, function) else { return None };
        (*node).recursive -= CODE * u64::from(is_folded);
        Some((node, flags))
    }
}

/// A function is entered again, to look for another solution. It is no call.
pub(crate) fn redo(function: u32, here: u64) -> u64 {
    if function == IGNORED || function == 0 {
        return NOTHING;
    }
    // SAFETY: `Ready` holds this thread's own record.
    unsafe {
        let Some(ready) = Ready::take() else { return NOTHING };
        let thread = ready.thread();
        if (*top_of(thread)).frame < here {
            leave_dead_frames(thread, here);
        }
        let Some((node, flags)) = find_uncounted(thread, function) else { return NOTHING };
        (*node).redos += CODE;
        let token = enter_found(thread, node, NO_FRAME, flags);
        (*node).calls -= CODE;
        token
    }
}

/// A function is entered again that was left for a while, in an activation that was counted when it
/// began: a future that is polled once more. Its time is added, and nothing else.
pub(crate) fn resume(function: u32, is_timed: bool) -> u64 {
    if function == IGNORED || function == 0 {
        return NOTHING;
    }
    // SAFETY: `Ready` holds this thread's own record.
    unsafe {
        let Some(ready) = Ready::take() else { return NOTHING };
        let thread = ready.thread();
        let Some((node, flags)) = find_uncounted(thread, function) else { return NOTHING };
        let calls = (*node).calls;
        let token = enter_found(thread, node, NO_FRAME, flags | flag::INHERITED);
        (*node).calls = calls;
        // Whether it is timed was decided for the whole activation when it began.
        let top = top_of(thread);
        let untimed = if is_timed && (*node).threshold != 0 { 0 } else { flag::UNTIMED };
        set_flags(top, (*top).flags & !flag::UNTIMED | untimed);
        (*top).start = sys::ticks();
        token
    }
}

/// Whether the activation that was just entered is timed.
pub(crate) fn is_timed(token: u64) -> bool {
    let thread = sys::current();
    // SAFETY: the current record is null or this thread's own.
    unsafe {
        !thread.is_null()
            && (*thread).private_tag.wrapping_add((*thread).top) == token
            && (*top_of(thread)).flags & flag::UNTIMED == 0
    }
}

/// The size of an argument of the activation of `token`.
pub(crate) fn argument_size(token: u64, size: u64) {
    if token == NOTHING || token == BEYOND {
        return;
    }
    // SAFETY: `Ready` holds this thread's own record.
    unsafe {
        let Some(ready) = Ready::take() else { return };
        let Some(activation) = open_activation(ready.thread(), token) else { return };
        let node = (*activation).node as *mut Node;
        if (*node).sizes == 0 {
            let Some(place) = thread::allocate_record(ready.thread(), Sizes::BYTES) else { return };
            store::at::<Sizes>(place).write(Sizes { calls: [CALLS_START; SIZE_CLASSES], ticks: [CALLS_START; SIZE_CLASSES] });
            (&raw mut (*node).sizes).write_volatile(place);
            store::seal::<NodeLinks>(thread::place_of(node), node.cast());
        }
        let class = size_class(size);
        (*store::at::<Sizes>((*node).sizes)).calls[class] += CODE;
        let others = (*activation).flags & ((1 << flag::SIZE_SHIFT) - 1);
        set_flags(activation, others | (class as u64 + 1) << flag::SIZE_SHIFT);
    }
}

/// The places of the running node and of the thread's record, for points.
pub(crate) fn running() -> Option<(u32, u32)> {
    // SAFETY: `Ready` holds this thread's own record.
    unsafe {
        let ready = Ready::take()?;
        Some((thread::place_of((*top_of(ready.thread())).node as *mut Node), thread::place_of(ready.thread())))
    }
}
