//! What else may happen to an activation: the ports of logic programs, another poll of a future, the
//! size of an argument.

use treering_events::{Activation, CALLS_START, CODE, Node, NodeLinks, SIZE_CLASSES, Sizes, Thread, flag, mode, size_class};

use crate::event::{
    BEYOND, Found, NO_FRAME, NOTHING, Place, Ready, enter_found, find_node, place_on_stack, set_flags, top_of,
};
use crate::frame::leave_dead_frames;
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
    Fail,
    Exception,
    Cut,
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
        let node = (*activation).node as *mut Node;
        match port {
            Port::Fail => (*node).fails += CODE,
            Port::Exception => (*node).exceptions += CODE,
            Port::Cut => (*node).cuts += CODE,
        }
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
        let Found::Node(node, flags) = find_node(thread, function) else { return NOTHING };
        let was_folded = flags & flag::INNER != 0 && process::mode() != mode::FLAT;
        (*node).recursive -= CODE * u64::from(was_folded);
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
        let Found::Node(node, flags) = find_node(thread, function) else { return NOTHING };
        let was_folded = flags & flag::INNER != 0 && process::mode() != mode::FLAT;
        (*node).recursive -= CODE * u64::from(was_folded);
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
