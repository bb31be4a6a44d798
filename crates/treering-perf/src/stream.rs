//! The records of all processors' rings, in the order of time.

use std::collections::VecDeque;
use std::os::fd::RawFd;

use crate::record::{self, HEADER};
use crate::sys::{Event, Ring, abi};

/// The rings of all processors. Every one is written by the kernel in nearly the order of time;
/// here they become one stream.
#[derive(Debug)]
pub(crate) struct Stream {
    rings: Vec<OpenRing>,
    /// For a record that lies at the end and the start of its ring.
    spare: Vec<u8>,
}

#[derive(Debug)]
struct OpenRing {
    ring: Ring,
    fd: RawFd,
    /// Records seen but not yet taken, oldest first.
    pending: VecDeque<Pending>,
    /// Up to where the ring was looked through.
    seen: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    position: u64,
    size: usize,
    time: u64,
}

/// A new sample, noticed before it is decoded so that the next interval can be set at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notice {
    /// The event that it belongs to.
    pub(crate) event: u64,
    pub(crate) time: u64,
    /// The very event that fired, which is another one in threads that inherited it.
    pub(crate) stream: u64,
}

impl Stream {
    pub(crate) fn new() -> Self {
        Self { rings: Vec::new(), spare: Vec::new() }
    }

    /// Adds the ring that `event` writes to.
    pub(crate) fn add(&mut self, event: &Event, ring: Ring) {
        self.rings.push(OpenRing { ring, fd: event.raw(), pending: VecDeque::new(), seen: 0 });
    }

    /// How many rings there are.
    pub(crate) fn rings(&self) -> usize {
        self.rings.len()
    }

    /// Removes the rings that were added behind the first `count`.
    pub(crate) fn keep_rings(&mut self, count: usize) {
        self.rings.truncate(count);
    }

    /// The descriptors that become readable when there are records.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.rings.iter().map(|ring| ring.fd)
    }

    /// Reads the kernel's new records and reports the samples.
    ///
    /// Returns how many threads and processes were made meanwhile.
    pub(crate) fn look(&mut self, notices: &mut Vec<Notice>) -> usize {
        self.rings.iter_mut().map(|ring| ring.look(|notice| notices.push(notice))).sum()
    }

    /// Hands over the records that were looked at, oldest first, up to the time `horizon`.
    ///
    /// A record may become visible a little later than a younger one of another processor; with a
    /// horizon some time before the last look none is overtaken.
    pub(crate) fn take(&mut self, horizon: u64, mut each: impl FnMut(&[u8])) {
        while let Some(at) = self.oldest(horizon) {
            let ring = &mut self.rings[at];
            let Some(next) = ring.pending.pop_front() else { break };
            ring.ring.show(next.position, next.size, &mut self.spare, &mut each);
            ring.ring.set_tail(next.position + next.size as u64);
        }
    }

    fn oldest(&self, horizon: u64) -> Option<usize> {
        let fronts = self.rings.iter().enumerate();
        let times = fronts.filter_map(|(at, ring)| Some((ring.pending.front()?.time, at)));
        times.min().filter(|&(time, _)| time <= horizon).map(|(_, at)| at)
    }
}

/// Where the number of the very event stands in a sample's body: behind identifier, address, thread
/// and time.
const STREAM: u64 = 32;

impl OpenRing {
    fn look(&mut self, mut notice: impl FnMut(Notice)) -> usize {
        let mut births = 0;
        let head = self.ring.head();
        // Records of one processor are in order but for interrupts that nest; a record is never
        // taken before the one in front of it.
        let mut latest = self.pending.back().map_or(0, |last| last.time);
        while self.seen < head {
            let mut first = [0; HEADER];
            self.ring.copy(self.seen, &mut first);
            let (kind, _, size) = record::header(first);
            if size < HEADER {
                self.seen = head;
                break;
            }
            let time = record::time_position(kind, size).map_or(0, |at| self.word(self.seen + at as u64));
            if kind == abi::PERF_RECORD_SAMPLE {
                let body = self.seen + HEADER as u64;
                notice(Notice { event: self.word(body), time, stream: self.word(body + STREAM) });
            }
            births += usize::from(kind == abi::PERF_RECORD_FORK);
            latest = latest.max(time);
            self.pending.push_back(Pending { position: self.seen, size, time: latest });
            self.seen += size as u64;
        }
        births
    }

    fn word(&self, position: u64) -> u64 {
        let mut bytes = [0; 8];
        self.ring.copy(position, &mut bytes);
        u64::from_ne_bytes(bytes)
    }
}
