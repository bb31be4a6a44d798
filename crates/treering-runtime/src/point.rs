//! Points of the memory plot, and facts about the run.

use treering_events::Point;

use crate::process::{self, Quiet, STATE};
use crate::registry::to_ref;
use crate::store::{self, LOCK};
use crate::{port, sys};
use core::sync::atomic::Ordering;

/// Notes how much memory the process has, with the task that runs. Takes some microseconds.
pub(crate) fn take(description: &[u8]) {
    if !process::wants_points() {
        return;
    }
    {
        let _quiet = Quiet::begin();
        process::initialise();
    }
    if STATE.load(Ordering::Relaxed) == process::OFF {
        return;
    }
    let Some((node, thread)) = port::running() else { return };
    let _quiet = Quiet::begin();
    let (virtual_bytes, resident_bytes) = sys::memory_size();
    let virtual_bytes = virtual_bytes.saturating_sub(store::reserved());
    let ticks = sys::ticks();
    let _held = LOCK.hold();
    let description = store::store_text(description);
    let Some(place) = store::allocate(Point::BYTES as u64).map(to_ref) else { return };
    // SAFETY: the record was allocated for this; the lock is held.
    unsafe {
        let next = treering_events::first((*store::header()).points);
        let point = Point {
            next,
            node,
            thread,
            ticks,
            virtual_bytes,
            resident_bytes,
            description,
            ..Point::default()
        };
        store::at::<Point>(place).write(point);
        store::seal::<Point>(place, store::at(place));
        store::list(&raw mut (*store::header()).points, place);
    }
}
