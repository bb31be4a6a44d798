//! A lock that needs no memory.

use core::sync::atomic::{AtomicU32, Ordering};

/// A lock for what happens seldom. It spins and yields, so that it needs no memory and can be
/// held across a fork.
pub(crate) struct Lock(AtomicU32);

/// Holds a [`Lock`] until it goes out of scope.
pub(crate) struct Held<'a>(&'a Lock);

impl Lock {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    pub(crate) fn hold(&self) -> Held<'_> {
        self.take();
        Held(self)
    }

    /// Takes the lock without a guard; to be followed by [`release`](Self::release).
    pub(crate) fn take(&self) {
        while self.0.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            std::thread::yield_now();
        }
    }

    pub(crate) fn release(&self) {
        self.0.store(0, Ordering::Release);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}
