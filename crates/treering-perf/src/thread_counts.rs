//! Counts of each thread by itself, as the kernel reports them when a thread ends (`PERF_RECORD_READ`).

use std::collections::HashMap;
use std::io;
use std::os::fd::RawFd;

use crate::attribute::{Contents, Pace, anchor, attribute};
use crate::event::Event as EventName;
use crate::record::{Extent, Record, decode};
use crate::session::online_processors;
use crate::stream::Stream;
use crate::sys::{Event, Ring, monotonic_ns};

/// The counts of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadCounts {
    /// Its process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Its name when it ended.
    pub name: String,
    /// Of every event, in the order in which they were asked for; 0 for those that were not counted at all.
    pub counts: Vec<u64>,
}

/// Events whose counts are kept by thread.
#[derive(Debug)]
pub(crate) struct ThreadCounters {
    stream: Stream,
    /// Each with the place of its event among those that were asked for.
    events: Vec<(Event, usize)>,
    /// Without it, the kernel exchanges the counts of the first thread with those of one that it made, and of different
    /// events, as their lists are in different orders; see [`anchor`].
    _anchor: Event,
    by_id: HashMap<u64, usize>,
    /// By place, whether the event is a timer: how long it ran is its count, the same for all timers of a thread.
    is_time: Vec<bool>,
    /// All threads, the program's first one before all others.
    threads: Vec<ThreadCounts>,
    /// The latest thread of each number.
    by_tid: HashMap<u32, usize>,
    asked_for: usize,
    lost: u64,
}

/// An interval between samples that never ends: only the count is wanted.
const NEVER: u64 = 1 << 62;

/// The space for the records of one processor: as much as the user may lock of it.
const RING_BYTES: [usize; 5] = [1 << 20, 1 << 19, 1 << 18, 1 << 17, 1 << 16];

/// How long after its time a record may become visible.
const SETTLE_NS: u64 = 200_000;

impl ThreadCounters {
    /// Opens events on the first thread of a program that is about to be run. Each has its place among all that were asked
    /// for, and whether it counts in user mode alone.
    pub(crate) fn open(pid: u32, events: &[(&EventName, usize, bool)], asked_for: usize) -> io::Result<Self> {
        let first = ThreadCounts { pid, tid: pid, name: String::new(), counts: vec![0; asked_for] };
        let mut counters = Self {
            stream: Stream::new(),
            events: Vec::new(),
            _anchor: Event::open_on_thread(&mut anchor(), pid)?,
            by_id: HashMap::new(),
            is_time: vec![false; asked_for],
            threads: vec![first],
            by_tid: HashMap::from([(pid, 0)]),
            asked_for,
            lost: 0,
        };
        for cpu in online_processors() {
            counters.open_on(pid, cpu, events)?;
        }
        Ok(counters)
    }

    fn open_on(&mut self, pid: u32, cpu: u32, events: &[(&EventName, usize, bool)]) -> io::Result<()> {
        let first = self.events.len();
        for &(event, place, is_user_only) in events {
            let contents = Contents {
                stack_bytes: 0,
                kernel: !is_user_only,
                switches: false,
                raw: false,
                wake_after: 1,
            };
            let is_first = self.events.len() == first;
            let mut attribute = attribute(event, Pace::Period(NEVER), contents, is_first);
            attribute.set_enable_on_exec(1);
            let opened = match Event::open(&mut attribute, pid, cpu) {
                // The processor is off.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Ok(()),
                opened => opened?,
            };
            if is_first {
                let mut rings = RING_BYTES.iter().map(|&bytes| Ring::map(&opened, bytes));
                let ring = rings.find(Result::is_ok).unwrap_or_else(|| Ring::map(&opened, RING_BYTES[4]))?;
                drop(rings);
                self.stream.add(&opened, ring);
            } else {
                opened.redirect_to(&self.events[first].0)?;
            }
            self.by_id.insert(opened.id()?, place);
            self.is_time[place] = event.is_time();
            self.events.push((opened, place));
        }
        Ok(())
    }

    /// The descriptors that become readable when there are records.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.stream.descriptors()
    }

    /// Takes the records that have come so far.
    pub(crate) fn take(&mut self) {
        self.take_until(monotonic_ns().saturating_sub(SETTLE_NS));
    }

    fn take_until(&mut self, horizon: u64) {
        let mut stream = std::mem::replace(&mut self.stream, Stream::new());
        stream.look(&mut Vec::new());
        stream.take(horizon, |record| self.add(&decode(record, |_| Extent::default())));
        self.stream = stream;
    }

    fn add(&mut self, record: &Record<'_>) {
        match *record {
            Record::Forked { pid, tid, parent_tid, .. } => {
                let name = self.by_tid.get(&parent_tid).map(|&at| self.threads[at].name.clone());
                self.by_tid.insert(tid, self.threads.len());
                let (name, counts) = (name.unwrap_or_default(), vec![0; self.asked_for]);
                self.threads.push(ThreadCounts { pid, tid, name, counts });
            }
            Record::Named { tid, name, .. } => {
                if let Some(&at) = self.by_tid.get(&tid) {
                    self.threads[at].name = String::from_utf8_lossy(name).into_owned();
                }
            }
            Record::Counted { tid, event, count, running_ns } => {
                if let (Some(&at), Some(&place)) = (self.by_tid.get(&tid), self.by_id.get(&event)) {
                    self.threads[at].counts[place] += if self.is_time[place] { running_ns } else { count };
                }
            }
            Record::Lost { samples, .. } => self.lost += samples,
            _ => {}
        }
    }

    /// The counts of all threads once the program has ended, and how many records were lost.
    ///
    /// The first thread's own events are the ones that were opened, and count the others too: what is not theirs is its
    /// own, and that of threads which still run.
    pub(crate) fn finish(mut self) -> io::Result<(Vec<ThreadCounts>, u64)> {
        self.take_until(u64::MAX);
        let mut rest = vec![0_u64; self.asked_for];
        for (event, place) in &self.events {
            let reading = event.read()?;
            rest[*place] += if self.is_time[*place] { reading.running_ns } else { reading.count };
        }
        for thread in &self.threads[1..] {
            rest.iter_mut().zip(&thread.counts).for_each(|(rest, count)| *rest = rest.saturating_sub(*count));
        }
        self.threads[0].counts = rest;
        Ok((self.threads, self.lost))
    }
}
