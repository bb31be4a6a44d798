//! The kinds of events that the hooks record, as bits that every event looks at.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

/// The bits.
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
    /// Only functions of files: the time of the interpreter's functions is their callers'.
    pub(crate) const NO_BUILTINS: u32 = 32;
}

/// The words that the hook of every call reads, in one line of the cache.
#[repr(align(64))]
pub(super) struct Hot {
    /// The bits that are recorded now; 0 also while a command of ours runs.
    recorded: AtomicU32,
    /// The bits that are recorded after that.
    wanted: AtomicU32,
    /// The functions that the hooks of calls stand in for.
    pub(super) user_function: AtomicUsize,
    pub(super) user_script: AtomicUsize,
    pub(super) builtin: AtomicUsize,
    pub(super) mex_function: AtomicUsize,
}

pub(super) static HOT: Hot = Hot {
    recorded: AtomicU32::new(0),
    wanted: AtomicU32::new(0),
    user_function: AtomicUsize::new(0),
    user_script: AtomicUsize::new(0),
    builtin: AtomicUsize::new(0),
    mex_function: AtomicUsize::new(0),
};

/// Records the kinds of events that `bits` select from now on, as before an interruption.
pub(crate) fn resume(bits: u32) {
    HOT.wanted.store(bits, Relaxed);
    HOT.recorded.store(bits, Relaxed);
}

/// Passes all calls on.
pub(crate) fn stop() {
    resume(0);
}

/// Records nothing while a command works, until [`go_on`].
pub(crate) fn pause() {
    HOT.recorded.store(0, Relaxed);
}

/// Records the wanted kinds of events again.
pub(crate) fn go_on() {
    HOT.recorded.store(HOT.wanted.load(Relaxed), Relaxed);
}

/// The bits that are recorded now; see [`what`].
#[inline(always)]
pub(crate) fn recorded() -> u32 {
    HOT.recorded.load(Relaxed)
}

/// Whether anything is recorded, but for the command that runs.
pub(crate) fn wanted() -> u32 {
    HOT.wanted.load(Relaxed)
}
