//! Tasks that are started and stopped by hand, without a token.

use core::sync::atomic::{Ordering, compiler_fence};

use treering_events::{Activation, CODE, flag};

use crate::event::{BEYOND, NO_FRAME, NOTHING, Ready, enter, set_flags, top_of};
use crate::leave::pop;
use crate::process::{FLAT, SLOW, STATE};
use crate::registry::IGNORED;
use crate::{sys, thread};

/// Ends the activation that was started last without a token. Where the topmost one was entered
/// with a token, the stop has no start.
pub(crate) fn stop() {
    let thread = sys::current();
    // SAFETY: as in `enter`; `Ready` holds this thread's own record.
    unsafe {
        let is_common = !thread.is_null()
            && (*thread).epoch == STATE.load(Ordering::Relaxed) & !(SLOW | FLAT)
            && (*thread).beyond_limit == 0
            && (*top_of(thread)).flags & flag::BY_START != 0;
        if is_common {
            return pop(thread, sys::ticks());
        }
        let Some(ready) = Ready::take() else { return };
        let thread = ready.thread();
        if (*thread).beyond_limit > 0 {
            (*thread).beyond_limit -= 1;
        } else if thread::depth(thread) == 0 || (*top_of(thread)).flags & flag::BY_START == 0 {
            (*thread).unbalanced += CODE;
        } else {
            pop(thread, sys::ticks());
        }
    }
}

/// Starts an activation that [`stop`] ends.
pub(crate) fn start(function: u32, here: u64) {
    match enter(function, NO_FRAME, here) {
        // No task has the number 0, which is given out while nothing is recorded.
        NOTHING if function == IGNORED || function == 0 => start_ignored(),
        NOTHING | BEYOND => {}
        // SAFETY: the activation was just entered by this thread.
        _ => unsafe {
            let top = top_of(sys::current());
            set_flags(top, (*top).flags | flag::BY_START);
        },
    }
}

/// Starts what is not recorded, so that the stop that belongs to it ends nothing else. What it
/// calls is called by the node that runs.
fn start_ignored() {
    // SAFETY: `Ready` holds this thread's own record, and there is room above the topmost place.
    unsafe {
        let Some(ready) = Ready::take() else { return };
        let thread = ready.thread();
        if (*thread).top == (*thread).private_limit && !thread::grow_stack(thread) {
            return;
        }
        let top = top_of(thread);
        let flags = flag::UNTIMED | flag::BY_START;
        let check = Activation::check_of((*top).node, flags);
        let ignored = Activation { flags, node: (*top).node, frame: NO_FRAME, check, ..Activation::default() };
        top.add(1).write(ignored);
        compiler_fence(Ordering::SeqCst);
        (*thread).top = top.add(1) as u64;
    }
}
