//! What the hooks record, as bits that every event looks at.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// What is recorded, as bits.
pub(crate) mod what {
    /// Calls of functions.
    pub(crate) const CALLS: u32 = 1;
    /// Operators as well.
    pub(crate) const OPERATORS: u32 = 2;
    /// Statements, by line.
    pub(crate) const LINES: u32 = 4;
    /// Sizes of arguments.
    pub(crate) const SIZES: u32 = 8;
    /// Allocations.
    pub(crate) const MEMORY: u32 = 16;
}

/// What is recorded now; 0 also while a command of ours runs.
static RECORDED: AtomicU32 = AtomicU32::new(0);
/// What is recorded after that.
static WANTED: AtomicU32 = AtomicU32::new(0);

/// Records what was recorded before.
pub(crate) fn resume(bits: u32) {
    WANTED.store(bits, Relaxed);
    RECORDED.store(bits, Relaxed);
}

/// Passes all calls on.
pub(crate) fn stop() {
    resume(0);
}

/// Records nothing while a command works, until [`go_on`].
pub(crate) fn pause() {
    RECORDED.store(0, Relaxed);
}

/// Records what is wanted.
pub(crate) fn go_on() {
    RECORDED.store(WANTED.load(Relaxed), Relaxed);
}

/// What is recorded now, as bits of [`what`].
#[inline(always)]
pub(crate) fn recorded() -> u32 {
    RECORDED.load(Relaxed)
}

/// Whether anything is recorded, but for the command that runs.
pub(crate) fn wanted() -> u32 {
    WANTED.load(Relaxed)
}
