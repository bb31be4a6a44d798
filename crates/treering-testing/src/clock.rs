//! A clock that shows what a test tells it to.

/// A clock that shows what a test tells it to, in nanoseconds from 0.
///
/// ```
/// let mut clock = treering_testing::ScriptedClock::default();
/// clock.advance(5);
/// assert_eq!(clock.now(), 5);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptedClock {
    now: u64,
}

impl ScriptedClock {
    /// The time now, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Lets time pass, in nanoseconds; the clock stops at 2^64 − 1.
    pub fn advance(&mut self, by: u64) {
        self.now = self.now.saturating_add(by);
    }

    /// Sets the time in nanoseconds, backwards too: broken clocks are worth testing.
    pub fn set(&mut self, now: u64) {
        self.now = now;
    }
}
