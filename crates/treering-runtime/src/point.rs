//! Points of the memory plot, and facts about the run.

use treering_events::Point as Record;
use treering_events::cells::Point;

use crate::process::{self, Quiet, STATE};
use crate::store::{self, STORE};
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
    let mut store = STORE.hold();
    let description = store.text(description);
    let facts = Record { node, thread, ticks, virtual_bytes, resident_bytes, description, ..Record::default() };
    // Without room there is one point less.
    let _ = store.add::<Point>(|header| &header.points, |next| Record { next, ..facts });
}
