//! A lock that needs no memory, around the value that it guards.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held from before a fork until after it, in both processes.
const HELD_OVER_FORK: u32 = 2;

/// A lock for rare operations. It spins and yields, so that it needs no memory and can be
/// held across a fork.
pub(crate) struct Lock<T> {
    state: AtomicU32,
    guarded: UnsafeCell<T>,
}

/// Holds a [`Lock`] until it goes out of scope.
pub(crate) struct Held<'a, T>(&'a Lock<T>);

// SAFETY: one thread at a time gets to what is guarded, as only `Held` leads to it.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) const fn new(guarded: T) -> Self {
        Self { state: AtomicU32::new(FREE), guarded: UnsafeCell::new(guarded) }
    }

    pub(crate) fn hold(&self) -> Held<'_, T> {
        while self.state.compare_exchange_weak(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            std::thread::yield_now();
        }
        Held(self)
    }

    /// Frees the lock after a fork, if it was held over it.
    pub(crate) fn release_after_fork(&self) {
        let _ = self.state.compare_exchange(HELD_OVER_FORK, FREE, Ordering::Release, Ordering::Relaxed);
    }
}

impl<T> Held<'_, T> {
    /// Keeps the lock without a guard until [`Lock::release_after_fork`].
    pub(crate) fn keep_over_fork(self) {
        self.0.state.store(HELD_OVER_FORK, Ordering::Relaxed);
        core::mem::forget(self);
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one, as the state is not `FREE` while it lives.
        unsafe { &*self.0.guarded.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one, as the state is not `FREE` while it lives; it is borrowed exclusively.
        unsafe { &mut *self.0.guarded.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        self.0.state.store(FREE, Ordering::Release);
    }
}
