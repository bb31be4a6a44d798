//! A lock that needs no memory, around the value that it guards.

use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held from before a fork until after it, in both processes.
const HELD_OVER_FORK: u32 = 2;

/// A lock for rare operations. It spins and yields, so that it needs no memory and can be
/// held across a fork.
///
/// The state decides which thread has the lock, so the mutex inside is always free for it. The mutex alone would not
/// do: a child could not free the one that its parent held at the fork.
pub(crate) struct Lock<T> {
    state: AtomicU32,
    guarded: Mutex<T>,
}

/// Holds a [`Lock`] until it goes out of scope.
pub(crate) struct Held<'a, T> {
    // Dropped in this order: the mutex is free before another thread can get the lock.
    guarded: MutexGuard<'a, T>,
    release: Release<'a>,
}

/// Sets the state of a lock when it is dropped.
struct Release<'a> {
    state: &'a AtomicU32,
    to: u32,
}

impl<T> Lock<T> {
    pub(crate) const fn new(guarded: T) -> Self {
        Self { state: AtomicU32::new(FREE), guarded: Mutex::new(guarded) }
    }

    pub(crate) fn hold(&self) -> Held<'_, T> {
        while self.state.compare_exchange_weak(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            std::thread::yield_now();
        }
        Held {
            // A panic while the lock is held leaves the value as usable as before.
            guarded: self.guarded.lock().unwrap_or_else(PoisonError::into_inner),
            release: Release { state: &self.state, to: FREE },
        }
    }

    /// Frees the lock after a fork, if it was held over it.
    pub(crate) fn release_after_fork(&self) {
        let _ = self.state.compare_exchange(HELD_OVER_FORK, FREE, Ordering::Release, Ordering::Relaxed);
    }
}

impl<T> Held<'_, T> {
    /// Keeps the lock without a guard until [`Lock::release_after_fork`].
    pub(crate) fn keep_over_fork(mut self) {
        self.release.to = HELD_OVER_FORK;
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guarded
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guarded
    }
}

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.state.store(self.to, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_held_over_a_fork_is_free_after_it_only() {
        let lock = Lock::new(1);
        lock.hold().keep_over_fork();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| *lock.hold() += 1);
            assert_eq!(lock.state.load(Ordering::Relaxed), HELD_OVER_FORK);
            lock.release_after_fork();
            other.join().unwrap();
        });
        lock.release_after_fork();
        assert_eq!(*lock.hold(), 2);
    }
}
