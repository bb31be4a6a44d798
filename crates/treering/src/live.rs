//! Live files: whether their writer still runs, and its profile so far.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use treering_formats::live::{FileState, Running, Writer, read_running};
use treering_formats::{Error, Format, ReadError};
use treering_proc::start_ticks;

/// The fate of the program that writes a live file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It runs.
    Runs,
    /// It ended its profile, but could not put the finished one in the file's place.
    Finished,
    /// It was ended before.
    Ended,
}

impl Fate {
    /// The fate of the writer, as far as this machine knows.
    pub fn of(writer: &Writer) -> Self {
        match (writer.finished, is_running(writer)) {
            (true, _) => Self::Finished,
            (false, true) => Self::Runs,
            (false, false) => Self::Ended,
        }
    }
}

/// Whether the process runs, finished profile or not.
pub fn is_running(writer: &Writer) -> bool {
    start_ticks(writer.pid) == Some(writer.process_start)
}

/// A live file that was read.
#[derive(Debug)]
pub struct Read {
    /// The profile so far, with functions as addresses.
    pub running: Running,
    /// The process that writes it.
    pub writer: Writer,
    /// The fate of the writer.
    pub fate: Fate,
}

/// Reads a live file. Activations that are open count up to now where the writer runs.
pub fn read(bytes: &[u8]) -> Result<Read, Error> {
    read_raw(bytes).map_err(|error| error.of(Format::Live))
}

fn read_raw(bytes: &[u8]) -> Result<Read, ReadError> {
    let writer = Writer::of(bytes)?;
    let fate = Fate::of(&writer);
    let now = if fate == Fate::Runs { now_raw_ns() } else { None };
    let mut running = read_running(bytes, now)?;
    // `message` states the fate; nothing is missing as from a recording.
    running.report.unfinished = false;
    running.profile.metadata.unfinished = false;
    if let Some(message) = message(&writer, fate, running.state) {
        running.profile.metadata.note(message);
    }
    Ok(Read { running, writer, fate })
}

/// The warning for a profile that was not finished.
pub fn message(writer: &Writer, fate: Fate, state: FileState) -> Option<&'static str> {
    match (fate, writer.stores_all) {
        (Fate::Ended, _) if state == FileState::Damaged => {
            Some("the program ended before it finished its profile, and the file was damaged afterwards")
        }
        (Fate::Ended, true) if state == FileState::Unchecked => Some(
            "the program ended before it finished its profile; no call is missing unless the file was \
             damaged, which this older layout cannot show",
        ),
        (Fate::Runs, _) => Some("the program is still running; this is its profile up to now"),
        (Fate::Ended, true) => Some("the program ended before it finished its profile; no call is missing"),
        (Fate::Ended, false) => Some(
            "the program ended before it finished its profile; calls are missing that were made \
             after the file could no longer grow",
        ),
        (Fate::Finished, _) => None,
    }
}

/// `CLOCK_MONOTONIC_RAW` in nanoseconds, which live files are in step with.
pub fn now_raw_ns() -> Option<u64> {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC_RAW).ok()?;
    u64::try_from(Duration::from(time).as_nanos()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(pid: u32, process_start: u64) -> Writer {
        Writer { pid, process_start, start_raw_ns: 0, finished: false, stores_all: true }
    }

    #[test]
    fn a_number_that_another_process_has_now_is_not_the_writer() {
        let own = std::process::id();
        let start = start_ticks(own).expect("this process runs");
        assert_eq!(Fate::of(&writer(own, start)), Fate::Runs);
        assert_eq!(Fate::of(&writer(own, start - 1)), Fate::Ended);
        assert_eq!(Fate::of(&Writer { finished: true, ..writer(own, start) }), Fate::Finished);
    }

    #[test]
    fn the_clock_goes_on() {
        let before = now_raw_ns().expect("Linux has this clock");
        assert!(now_raw_ns().expect("Linux has this clock") >= before);
    }
}
