//! A clock that shows the same in every run: it advances by being read, and by waiting.

/// The time that a reading takes, in nanoseconds. A program that reads the clock until a time has come waits about that
/// long: a reading, for which the tracer is asked, takes as long as this.
const READING: u64 = 10_000;

const SECOND: u64 = 1_000_000_000;

/// The date at the beginning, in seconds: 2026-01-01, 00:00 UTC.
const DATE: u64 = 1_767_225_600;

/// The time since the machine's start, in seconds.
const UP: u64 = 1_000;

/// The time that passes for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HeldClock {
    /// The nanoseconds since the beginning.
    passed: u64,
}

impl HeldClock {
    /// The nanoseconds since the beginning, one reading later.
    pub(crate) fn read(&mut self) -> u64 {
        self.passed = self.passed.saturating_add(READING);
        self.passed
    }

    /// The nanoseconds since the beginning.
    pub(crate) fn now(&self) -> u64 {
        self.passed
    }

    /// The time becomes that many nanoseconds since the beginning, if it is not later already.
    pub(crate) fn reach(&mut self, passed: u64) {
        self.passed = self.passed.max(passed);
    }
}

/// The time of a clock of the system at the beginning, in nanoseconds. Those of processor time began with 0. Nothing for a
/// clock that is none.
pub(crate) fn beginning(clock: i32) -> Option<u64> {
    Some(match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_REALTIME_ALARM | libc::CLOCK_TAI => {
            DATE * SECOND
        }
        libc::CLOCK_MONOTONIC
        | libc::CLOCK_MONOTONIC_RAW
        | libc::CLOCK_MONOTONIC_COARSE
        | libc::CLOCK_BOOTTIME
        | libc::CLOCK_BOOTTIME_ALARM => UP * SECOND,
        libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID => 0,
        // Those of the processor time of other processes and threads, and of devices.
        _ => return None,
    })
}

/// A time of a clock as the kernel writes it: seconds, and nanoseconds or, with 1,000, microseconds.
pub(crate) fn time_value(nanoseconds: u64, unit: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&(nanoseconds / SECOND).to_le_bytes());
    bytes[8..].copy_from_slice(&(nanoseconds % SECOND / unit).to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_advances_by_reading_and_waiting_only_forwards() {
        let mut clock = HeldClock::default();
        let first = clock.read();
        assert!(clock.read() > first);
        let now = clock.now();
        clock.reach(1);
        assert_eq!(clock.now(), now);
        clock.reach(now + 1);
        assert_eq!(clock.now(), now + 1);
    }

    #[test]
    fn times_are_written_as_the_kernel_does() {
        let value = time_value(3_000_000_007_000, 1_000);
        assert_eq!(value[..8], 3_000_u64.to_le_bytes());
        assert_eq!(value[8..], 7_u64.to_le_bytes());
    }
}
