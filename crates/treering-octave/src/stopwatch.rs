//! The time of the recording: the part that no function took is the top level's.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A watch in ticks that can be stopped and go on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stopwatch {
    /// The ticks until it was stopped last.
    passed: u64,
    /// When it was started, while it goes.
    since: Option<u64>,
}

impl Stopwatch {
    /// Goes on at a moment, if it stands.
    pub(crate) fn start(&mut self, now: u64) {
        self.since.get_or_insert(now);
    }

    /// Stops at a moment.
    pub(crate) fn stop(&mut self, now: u64) {
        *self = Self { passed: self.read(now), since: None };
    }

    /// The ticks that it went until a moment.
    pub(crate) fn read(&self, now: u64) -> u64 {
        self.passed + self.since.map_or(0, |since| now.saturating_sub(since))
    }
}

/// How long the profile that there is was recorded.
static RECORDING: Mutex<Stopwatch> = Mutex::new(Stopwatch { passed: 0, since: None });

/// The watch of the profile that there is.
pub(crate) fn recording() -> MutexGuard<'static, Stopwatch> {
    RECORDING.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_between_start_and_stop_only() {
        let mut watch = Stopwatch::default();
        assert_eq!(watch.read(50), 0);
        watch.start(100);
        watch.start(140);
        assert_eq!(watch.read(150), 50, "started once");
        watch.stop(160);
        watch.stop(170);
        assert_eq!(watch.read(900), 60);
        watch.start(1000);
        assert_eq!(watch.read(1005), 65);
    }
}
