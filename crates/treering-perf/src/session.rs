//! The open events of a recording: which could be had, and how they are jittered.

use std::collections::HashMap;
use std::io;

use crate::attribute::{Contents, Pace, attribute, pace, wake_after};
use crate::error::{Denial, RecordError};
use crate::event::{Event as EventName, Nature};
use crate::jitter::Jitter;
use crate::stream::{Notice, Stream};
use crate::sys::{Event, Ring, abi, monotonic_ns};

/// What to sample.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The events; empty to take the best clock that can be had.
    pub(crate) events: Vec<EventName>,
    pub(crate) frequency: f64,
    /// Counts between samples, where the user gave a number.
    pub(crate) period: Option<u64>,
    pub(crate) jitter: bool,
    pub(crate) stack_bytes: u32,
    /// Whether to note blocked time.
    pub(crate) off_cpu: bool,
    /// Whether kernel frames are wanted; they are left out where not permitted.
    pub(crate) kernel: bool,
    pub(crate) seed: u64,
    /// Whether events start with the program that a child is about to run.
    pub(crate) on_exec: bool,
}

/// An event that is being sampled.
#[derive(Clone, Debug)]
pub(crate) struct Sampled {
    pub(crate) event: EventName,
    pub(crate) pace: Pace,
    /// Whether the intervals are drawn at random.
    pub(crate) jittered: bool,
    /// Whether its samples only bring the stacks of blocked threads.
    pub(crate) marks_blocks: bool,
}

/// The open events of a recording.
#[derive(Debug)]
pub(crate) struct Session {
    /// What is sampled; samples refer to it by [`sampled`](Self::sampled).
    pub(crate) events: Vec<Sampled>,
    /// Whether the kernel's mode is sampled too.
    pub(crate) kernel: bool,
    pub(crate) stream: Stream,
    wake_after: u32,
    /// The size of every ring.
    ring_bytes: usize,
    handles: Vec<Handle>,
    /// The handle of every event's id.
    by_id: HashMap<u64, usize>,
    jitter: Jitter,
    notices: Vec<Notice>,
}

/// An event on one thread and processor.
#[derive(Debug)]
struct Handle {
    event: Event,
    sampled: usize,
    /// The period that it was opened with, which its samples state for ever.
    opened_with: u64,
}

/// The space for the samples of one processor: some 60 stacks of 32 KiB.
const RING_BYTES: usize = 1 << 21;
const SMALLEST_RING_BYTES: usize = 1 << 16;

impl Session {
    /// Opens what `plan` asks for on every one of the threads, or the best that can be had.
    ///
    /// Where no events are given: hardware cycles, else the kernel's timer. Each with the kernel's
    /// mode, else without.
    pub(crate) fn open(plan: &Plan, tids: &[u32], target: &str) -> Result<Self, RecordError> {
        let choices = match plan.events[..] {
            [] => vec![vec![EventName::cycles()], vec![EventName::cpu_clock()]],
            _ => vec![plan.events.clone()],
        };
        let mut tried = Vec::new();
        let mut last = None;
        for events in &choices {
            for kernel in [true, false].into_iter().filter(|&kernel| plan.kernel || !kernel) {
                match Self::try_open(plan, events, kernel, tids) {
                    Ok(session) => return Ok(session),
                    Err(failure) if failure.is_final() => return Err(failure.explain(target, tried)),
                    Err(failure) => {
                        let mode = if kernel { "user and kernel" } else { "user only" };
                        tried.push(format!("{} ({mode})", failure.event));
                        last = Some(failure);
                    }
                }
            }
        }
        match last {
            Some(failure) => Err(failure.explain(target, tried)),
            None => unreachable!("there is at least one choice"),
        }
    }

    fn try_open(plan: &Plan, events: &[EventName], kernel: bool, tids: &[u32]) -> Result<Self, OpenFailure> {
        // Where less memory may be locked all rings are smaller, and the recorder must wake sooner,
        // which events know from their start.
        let mut ring_bytes = RING_BYTES;
        loop {
            match Self::open_rings(plan, events, kernel, tids, ring_bytes) {
                Err(failure) if failure.ring && ring_bytes > SMALLEST_RING_BYTES => ring_bytes /= 2,
                opened => return opened,
            }
        }
    }

    /// Opens the events with rings of `ring_bytes`.
    fn open_rings(
        plan: &Plan,
        events: &[EventName],
        kernel: bool,
        tids: &[u32],
        ring_bytes: usize,
    ) -> Result<Self, OpenFailure> {
        let mut session = Self {
            events: events.iter().map(|event| Sampled::new(event, plan)).collect(),
            kernel,
            stream: Stream::new(),
            wake_after: wake_after(plan.frequency, ring_bytes, plan.stack_bytes),
            ring_bytes,
            handles: Vec::new(),
            by_id: HashMap::new(),
            jitter: Jitter::new(plan.seed),
            notices: Vec::new(),
        };
        if plan.off_cpu && kernel {
            session.events.push(Sampled::blocks());
        }
        for cpu in online_processors() {
            session.open_on_processor(plan, cpu, tids)?;
        }
        match session.handles.is_empty() {
            true => Err(OpenFailure::new("", io::Error::from_raw_os_error(libc::ESRCH))),
            false => Ok(session),
        }
    }

    fn open_on_processor(&mut self, plan: &Plan, cpu: u32, tids: &[u32]) -> Result<(), OpenFailure> {
        let first_handle = self.handles.len();
        for &tid in tids {
            for sampled in 0..self.events.len() {
                let Some(handle) = self.open_one(plan, sampled, tid, cpu)? else { break };
                let failure = |source| OpenFailure::new(&self.events[sampled].event.name, source);
                self.by_id.insert(handle.event.id().map_err(failure)?, self.handles.len());
                match self.handles.get(first_handle) {
                    Some(first) => handle.event.redirect_to(&first.event).map_err(failure)?,
                    None => {
                        let ring = Ring::map(&handle.event, self.ring_bytes).map_err(OpenFailure::ring)?;
                        self.stream.add(&handle.event, ring);
                    }
                }
                self.handles.push(handle);
            }
        }
        Ok(())
    }

    /// Opens one event; nothing when the thread has ended or the processor is off.
    ///
    /// A jittered event gets another period at once, so that those who inherit it never state
    /// the one that it was opened with; see [`is_own`](Self::is_own).
    fn open_one(
        &mut self,
        plan: &Plan,
        sampled: usize,
        tid: u32,
        cpu: u32,
    ) -> Result<Option<Handle>, OpenFailure> {
        let Sampled { ref event, pace, jittered, .. } = self.events[sampled];
        let failure = |source| OpenFailure::new(&event.name, source);
        let mean = pace.period().filter(|_| jittered);
        let first = mean.map(|mean| self.jitter.draw(mean));
        let contents = Contents {
            stack_bytes: plan.stack_bytes,
            kernel: self.kernel,
            switches: plan.off_cpu,
            wake_after: self.wake_after,
        };
        let pace = first.map_or(pace, Pace::Period);
        let mut attribute = attribute(event, pace, contents, sampled == 0);
        attribute.set_enable_on_exec(plan.on_exec.into());
        let opened = match open_patiently(&mut attribute, tid, cpu) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENODEV)) => {
                return Ok(None);
            }
            opened => opened.map_err(failure)?,
        };
        if let Some(mean) = mean {
            opened.set_period(self.jitter.draw(mean)).map_err(failure)?;
        }
        Ok(Some(Handle { event: opened, sampled, opened_with: first.unwrap_or(0) }))
    }

    /// Starts sampling, where it does not start with the program.
    pub(crate) fn enable(&self) -> io::Result<()> {
        self.handles.iter().try_for_each(|handle| handle.event.enable())
    }

    /// Stops sampling.
    pub(crate) fn disable(&self) -> io::Result<()> {
        self.handles.iter().try_for_each(|handle| handle.event.disable())
    }

    /// Looks for new samples and draws the next interval of the events that they belong to.
    ///
    /// Only the events that we opened are redrawn. Children inherit the interval of the moment,
    /// which was drawn at random too, and keep it; their samples state it.
    pub(crate) fn look(&mut self) {
        self.notices.clear();
        self.stream.look(&mut self.notices);
        let now = monotonic_ns();
        let notices = std::mem::take(&mut self.notices);
        for (at, notice) in notices.iter().enumerate() {
            let same = |other: &Notice| (other.event, other.period) == (notice.event, notice.period);
            let is_last = !notices[at + 1..].iter().any(same);
            if is_last {
                self.redraw(notice, now);
            }
        }
        self.notices = notices;
    }

    fn redraw(&mut self, notice: &Notice, now: u64) {
        let Some(handle) = self.by_id.get(&notice.event).map(|&at| &self.handles[at]) else { return };
        let sampled = &self.events[handle.sampled];
        let Sampled { pace: Pace::Period(mean), jittered: true, ref event, .. } = *sampled else { return };
        if handle.opened_with != notice.period {
            return;
        }
        self.jitter.note_latency(now.saturating_sub(notice.time));
        let mean_ns = if event.nature() == Nature::Clock { mean as f64 } else { mean as f64 / 3.0 };
        // A thread that has just ended takes no new interval.
        let _ = handle.event.set_period(self.jitter.draw_late(mean, mean_ns));
    }

    /// The index in [`events`](Self::events) of the event that a sample names.
    pub(crate) fn sampled(&self, id: u64) -> Option<usize> {
        self.by_id.get(&id).map(|&at| self.handles[at].sampled)
    }

    /// Whether a sample of the event `id` that states `period` is of the event that we opened,
    /// whose intervals are redrawn, rather than of one that a child inherited.
    ///
    /// The kernel's timer states the period it was opened with, whatever was set later, so the
    /// number tells them apart. The thread does not: when parent and child follow each other on a
    /// processor, the kernel may exchange their events.
    pub(crate) fn is_own(&self, id: u64, period: u64) -> bool {
        self.by_id.get(&id).is_some_and(|&at| self.handles[at].opened_with == period)
    }
}

impl Sampled {
    fn new(event: &EventName, plan: &Plan) -> Self {
        let pace = pace(event, plan.frequency, plan.period);
        let jittered = plan.jitter && matches!(pace, Pace::Period(period) if period > 1);
        Self { event: event.clone(), pace, jittered, marks_blocks: false }
    }

    fn blocks() -> Self {
        Self {
            event: EventName::context_switches(),
            pace: Pace::Period(1),
            jittered: false,
            marks_blocks: true,
        }
    }
}

/// The numbers of the processors that run, as sysfs lists them: `0-3,6`.
fn online_processors() -> Vec<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_else(|_| "0".to_owned());
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

/// Opens an event, without what older kernels do not know.
fn open_patiently(attribute: &mut abi::perf_event_attr, tid: u32, cpu: u32) -> io::Result<Event> {
    match Event::open(attribute, tid, cpu) {
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            std::thread::sleep(std::time::Duration::from_millis(10));
            Event::open(attribute, tid, cpu)
        }
        other => other,
    }
}

/// Why a set of events could not be opened.
#[derive(Debug)]
struct OpenFailure {
    event: String,
    ring: bool,
    source: io::Error,
}

impl OpenFailure {
    fn new(event: &str, source: io::Error) -> Self {
        Self { event: event.to_owned(), ring: false, source }
    }

    fn ring(source: io::Error) -> Self {
        Self { event: String::new(), ring: true, source }
    }

    /// Whether no other choice can do better.
    fn is_final(&self) -> bool {
        let other_choices =
            [libc::ENOENT, libc::EOPNOTSUPP, libc::EACCES, libc::EPERM, libc::EINVAL, libc::ENODEV];
        self.ring || !self.source.raw_os_error().is_some_and(|code| other_choices.contains(&code))
    }

    fn explain(self, target: &str, tried: Vec<String>) -> RecordError {
        match self.source.raw_os_error() {
            _ if self.ring => RecordError::NoRing(self.source),
            Some(libc::EACCES | libc::EPERM | libc::ENOSYS) => {
                RecordError::NotPermitted(Denial::new(target.to_owned(), tried, self.source))
            }
            Some(libc::ESRCH) => RecordError::HasEnded(target.to_owned()),
            Some(libc::EMFILE) => RecordError::System {
                doing: "opening an event for every thread and processor",
                source: self.source,
            },
            _ => RecordError::NotSupported { event: self.event, source: self.source },
        }
    }
}
