//! A value that one thread uses at a time, and each of them once.
//!
//! A mutex would take two atomic steps where a call event has room for one.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

/// The value, and whether it is in use.
pub(crate) struct Exclusive<T> {
    is_used: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `is_used` lets one reference exist at a time, and the value may be used by any thread.
unsafe impl<T: Send> Sync for Exclusive<T> {}

/// Ends the use, also when it panics.
struct Used<'a>(&'a AtomicBool);

impl Drop for Used<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl<T> Exclusive<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { is_used: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Uses the value, unless it is in use already.
    #[inline(always)]
    pub(crate) fn try_with<R>(&self, use_it: impl FnOnce(&mut T) -> R) -> Option<R> {
        if self.is_used.swap(true, Ordering::Acquire) {
            return None;
        }
        let _used = Used(&self.is_used);
        // SAFETY: nobody else has a reference until `_used` is dropped.
        Some(use_it(unsafe { &mut *self.value.get() }))
    }

    /// Uses the value as soon as no other thread does, which must not wait for this one.
    pub(crate) fn with<R>(&self, use_it: impl FnOnce(&mut T) -> R) -> R {
        let mut use_it = Some(use_it);
        loop {
            let used = self.try_with(|value| use_it.take().map(|use_it| use_it(value)));
            if let Some(Some(result)) = used {
                return result;
            }
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_use_at_a_time() {
        static VALUE: Exclusive<u32> = Exclusive::new(0);
        assert_eq!(VALUE.try_with(|_| VALUE.try_with(|inner| *inner)), Some(None));
        let count = || (0..10_000).for_each(|_| VALUE.with(|value| *value += 1));
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(count))));
        assert_eq!(VALUE.try_with(|value| *value), Some(40_000));
    }
}
