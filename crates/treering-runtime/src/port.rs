//! Further happenings to an activation: the ports of logic programs, another poll of a future, the size of
//! an argument.

use treering_events::cells::{Activation, Node, Sizes, Thread};
use treering_events::{CALLS_START, CODE, NodeLinks, SIZE_CLASSES, flag, mode, rule, size_class};

use crate::event::{
    BEYOND, Found, NO_FRAME, NOTHING, Ready, enter_found, find_node, fold, set_flags,
};
use crate::frame::leave_dead_frames;
use crate::leave::{Place, place_on_stack};
use crate::record::{self, address, node_of, place_of, top_of};
use crate::registry::IGNORED;
use crate::{course, process, sys, thread};

/// The activation of a token, if it is open in this thread.
fn open_activation(thread: &'static Thread, token: u64) -> Option<&'static Activation> {
    match place_on_stack(thread, token) {
        Place::Open(activation) => Some(activation),
        _ => None,
    }
}

/// A port by which control comes back to an activation of a logic program, or leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    Exit,
    Fail,
    Exception,
    Cut,
}

impl Port {
    fn count(self, node: &Node) {
        let counter = match self {
            Self::Exit => &node.exits,
            Self::Fail => &node.fails,
            Self::Exception => &node.exceptions,
            Self::Cut => &node.cuts,
        };
        counter.update(|count| count + CODE);
    }
}

/// Counts a port of the activation of `token`.
pub(crate) fn count_port(token: u64, port: Port) {
    if token == NOTHING || token == BEYOND {
        return;
    }
    let Some(ready) = Ready::take() else { return };
    let Some(activation) = open_activation(ready.thread(), token) else {
        ready.thread().unbalanced.update(|unbalanced| unbalanced + CODE);
        return;
    };
    port.count(node_of(activation));
}

/// The node of an open activation, and the record of its thread.
pub(crate) fn place(token: u64) -> Option<(u64, u64)> {
    if token == NOTHING || token == BEYOND {
        return None;
    }
    let ready = Ready::take()?;
    let activation = open_activation(ready.thread(), token)?;
    Some((activation.node.get(), address(ready.thread())))
}

/// Counts a port of an activation that is not open, by its place; only in the thread that it is of.
pub(crate) fn count_port_at((node, of): (u64, u64), port: Port) {
    let Some(ready) = Ready::take() else { return };
    match record::node_at(node).filter(|_| address(ready.thread()) == of) {
        Some(node) => port.count(node),
        None => ready.thread().unbalanced.update(|unbalanced| unbalanced + CODE),
    }
}

/// Enters a node again: to look for another solution, or with `is_resumed` to go on with an activation
/// that was left for a while. Only in the thread that the node is of.
///
/// Where it is not the running node that the node stands under, its function's node under that one is
/// entered in its place: the costs of a node's callees are part of its own.
pub(crate) fn enter_again((node, of): (u64, u64), is_resumed: bool) -> u64 {
    let Some(ready) = Ready::take() else { return NOTHING };
    let thread = ready.thread();
    let Some(node) = record::node_at(node).filter(|_| address(thread) == of) else {
        thread.unbalanced.update(|unbalanced| unbalanced + CODE);
        return NOTHING;
    };
    let Some((node, flags)) = node_again(thread, node) else {
        thread.dropped.update(|dropped| dropped + CODE);
        return NOTHING;
    };
    let calls = node.calls.get();
    let inherited = if is_resumed { flag::INHERITED } else { 0 };
    let token = enter_found(thread, node, NO_FRAME, flags | inherited);
    node.calls.set(calls);
    node.redos.update(|redos| redos + CODE * u64::from(!is_resumed));
    token
}

/// The node that an activation of a known one goes on in, and its flags; nothing when there is no room.
fn node_again(thread: &'static Thread, known: &'static Node) -> Option<(&'static Node, u64)> {
    let running = node_of(top_of(thread));
    let stands_here = known.parent.get() == place_of(running);
    if stands_here && process::rule() != rule::SWI_CLASSIC && process::mode() != mode::FLAT {
        let has_room = thread::has_room(thread) || thread::grow_stack(thread);
        return has_room.then_some((known, 0));
    }
    find_uncounted(thread, known.function.get())
}

/// The node that an activation of a function leads to, which is no call, not even a recursive one.
fn find_uncounted(thread: &'static Thread, function: u32) -> Option<(&'static Node, u64)> {
    let is_folded = process::mode() != mode::FLAT
        && fold(node_of(top_of(thread)), function).is_some();
    let Found::Node(node, flags) = find_node(thread, function) else { return None };
    node.recursive.update(|recursive| recursive - CODE * u64::from(is_folded));
    Some((node, flags))
}

/// A function is entered again, to look for another solution. It is no call.
pub(crate) fn redo(function: u32, here: u64) -> u64 {
    if function == IGNORED || function == 0 {
        return NOTHING;
    }
    let Some(ready) = Ready::take() else { return NOTHING };
    let thread = ready.thread();
    if top_of(thread).frame.get() < here {
        leave_dead_frames(thread, here);
    }
    let Some((node, flags)) = find_uncounted(thread, function) else { return NOTHING };
    node.redos.update(|redos| redos + CODE);
    let token = enter_found(thread, node, NO_FRAME, flags);
    node.calls.update(|calls| calls - CODE);
    token
}

/// A function is entered again that was left for a while, in an activation that was counted when it
/// began: a future that is polled once more. Its time is added, and nothing else.
pub(crate) fn resume(function: u32, is_timed: bool) -> u64 {
    if function == IGNORED || function == 0 {
        return NOTHING;
    }
    let Some(ready) = Ready::take() else { return NOTHING };
    let thread = ready.thread();
    let Some((node, flags)) = find_uncounted(thread, function) else { return NOTHING };
    let calls = node.calls.get();
    let token = enter_found(thread, node, NO_FRAME, flags | flag::INHERITED);
    node.calls.set(calls);
    // Whether it is timed was decided for the whole activation when it began.
    let top = top_of(thread);
    let untimed = if is_timed && node.threshold.get() != 0 { 0 } else { flag::UNTIMED };
    set_flags(top, top.flags.get() & !flag::UNTIMED | untimed);
    top.start.set(sys::ticks());
    course::charge(thread, node_of(record::below(top)), top.start.get());
    token
}

/// Whether the activation that was just entered is timed.
pub(crate) fn is_timed(token: u64) -> bool {
    sys::current().is_some_and(|thread| {
        thread.private_tag.get().wrapping_add(thread.top.get()) == token
            && top_of(thread).flags.get() & flag::UNTIMED == 0
    })
}

/// The size of an argument of the activation of `token`.
pub(crate) fn argument_size(token: u64, size: u64) {
    if token == NOTHING || token == BEYOND {
        return;
    }
    let Some(ready) = Ready::take() else { return };
    let Some(activation) = open_activation(ready.thread(), token) else { return };
    let node = node_of(activation);
    if node.sizes.get() == 0 {
        use treering_events::Sizes as Record;

        let Some(place) = thread::allocate_record(ready.thread(), Record::BYTES) else { return };
        let none = Record { calls: [CALLS_START; SIZE_CLASSES], ticks: [CALLS_START; SIZE_CLASSES] };
        record::write(record::at::<Sizes>(place), none);
        record::publish(&node.sizes, place);
        record::seal_as::<NodeLinks>(node);
    }
    let class = size_class(size);
    record::at::<Sizes>(node.sizes.get()).calls[class].update(|calls| calls + CODE);
    let others = activation.flags.get() & ((1 << flag::SIZE_SHIFT) - 1);
    set_flags(activation, others | (class as u64 + 1) << flag::SIZE_SHIFT);
}

/// The places of the running node and of the thread's record, for points.
pub(crate) fn running() -> Option<(u32, u32)> {
    let ready = Ready::take()?;
    Some((place_of(node_of(top_of(ready.thread()))), place_of(ready.thread())))
}
