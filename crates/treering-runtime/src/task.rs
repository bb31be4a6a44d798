//! Tasks that are started and stopped by hand, without a token.

use core::sync::atomic::{Ordering, compiler_fence};

use treering_events::{Activation, CODE, flag};

use crate::event::{BEYOND, NO_FRAME, NOTHING, Ready, enter, set_flags};
use crate::leave::pop;
use crate::process::{FLAT, SLOW, STATE};
use crate::record::{self, above, address, top_of};
use crate::registry::IGNORED;
use crate::{sys, thread};

/// Ends the activation that was started last without a token. Where the topmost one was entered
/// with a token, the stop has no start.
pub(crate) fn stop() {
    if let Some(thread) = sys::current()
        && thread.epoch.get() == STATE.load(Ordering::Relaxed) & !(SLOW | FLAT)
        && thread.beyond_limit.get() == 0
        && top_of(thread).flags.get() & flag::BY_START != 0
    {
        return pop(thread, sys::ticks());
    }
    let Some(ready) = Ready::take() else { return };
    let thread = ready.thread();
    if thread.beyond_limit.get() > 0 {
        thread.beyond_limit.update(|beyond_limit| beyond_limit - 1);
    } else if thread::depth(thread) == 0 || top_of(thread).flags.get() & flag::BY_START == 0 {
        thread.unbalanced.update(|unbalanced| unbalanced + CODE);
    } else {
        pop(thread, sys::ticks());
    }
}

/// Starts an activation that [`stop`] ends.
pub(crate) fn start(function: u32, here: u64) {
    match enter(function, NO_FRAME, here) {
        // No task has the number 0, which is given out while nothing is recorded.
        NOTHING if function == IGNORED || function == 0 => start_ignored(),
        NOTHING | BEYOND => {}
        _ => {
            if let Some(top) = sys::current().map(top_of) {
                set_flags(top, top.flags.get() | flag::BY_START);
            }
        }
    }
}

/// Starts a task that is not recorded, so that the stop that belongs to it ends nothing else. Tasks that it
/// starts are callees of the node that runs.
fn start_ignored() {
    let Some(ready) = Ready::take() else { return };
    let thread = ready.thread();
    if !thread::has_room(thread) && !thread::grow_stack(thread) {
        return;
    }
    let top = top_of(thread);
    let flags = flag::UNTIMED | flag::BY_START;
    let check = Activation::check_of(top.node.get(), flags);
    let ignored = Activation { flags, node: top.node.get(), frame: NO_FRAME, check, ..Activation::default() };
    record::write(above(top), ignored);
    compiler_fence(Ordering::SeqCst);
    thread.top.set(address(above(top)));
}
