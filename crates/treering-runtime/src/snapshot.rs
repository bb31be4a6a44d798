//! Copies of the recording, taken while the program runs.

use std::io;
use std::path::{Path, PathBuf};

use treering_events::{Forest, View};

use crate::process::{self, Quiet};
use crate::output::write_whole;
use crate::{compact, store, sys};

/// A copy of the recording as it was at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    bytes: Vec<u8>,
    ticks: u64,
}

impl Snapshot {
    /// The records, for [`Forest::of`](treering_events::Forest::of).
    ///
    /// ```
    /// # treering_runtime::clear_profiler();
    /// assert!(treering_runtime::snapshot().is_none());
    /// ```
    pub fn view(&self) -> Option<View<'_>> {
        View::new(&self.bytes).ok()
    }

    /// The trees with their costs; activations that are open count up to the moment.
    pub fn forest(&self) -> Forest {
        self.view().map(|view| Forest::of(&view, Some(self.ticks))).unwrap_or_default()
    }
}

/// The recording so far; `None` when there is no profile.
pub fn snapshot() -> Option<Snapshot> {
    let _quiet = Quiet::begin();
    process::output()?;
    process::refresh_clock();
    Some(Snapshot { ticks: sys::ticks(), bytes: store::copy() })
}

/// Writes what was recorded so far to a file of its own. Recording goes on.
///
/// # Errors
/// When there is no profile, or the file cannot be written.
pub fn save(path: &Path) -> io::Result<()> {
    let snapshot = snapshot().ok_or_else(|| io::Error::other("nothing was recorded"))?;
    let bytes =
        compact::compact(&snapshot.bytes).ok_or_else(|| io::Error::other("the profile is damaged"))?;
    write_whole(path, &bytes)
}

/// Forgets what was recorded and removes its file. Nothing is recorded until a profiler is set
/// again; functions that are known keep their numbers.
pub fn discard() {
    process::discard();
}

/// Ends the profile of this process as [`finish`](crate::finish) does, but leaves the live file as it
/// is, for another process that reads such files.
pub fn keep_live() {
    process::keep_live();
}

/// The recording that another process has made so far in its live file; `None` if the bytes are not of one.
pub fn snapshot_of(bytes: Vec<u8>) -> Option<Snapshot> {
    let ticks = View::new(&bytes).ok()?;
    let ticks = Forest::end_of(&ticks);
    Some(Snapshot { bytes, ticks })
}

/// The file that is being written; nothing when there is no profile.
pub fn output() -> Option<PathBuf> {
    process::output()
}

/// The clock of all events, in ticks: differences of it times the nanoseconds in a tick of the
/// file's header are times.
#[inline]
pub fn ticks() -> u64 {
    sys::ticks()
}

/// One moment in [`ticks`] and in nanoseconds of `CLOCK_MONOTONIC_RAW`: two such moments tell how long a tick is.
pub fn ticks_and_ns() -> (u64, u64) {
    sys::both_clocks()
}
