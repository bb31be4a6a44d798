//! Opening the events of a session: which can be had, on which threads and processors.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;

use super::failure::OpenFailure;
use super::{Handle, Purpose, Role, Sampled, Session};
use crate::attribute::{Contents, Pace, anchor, attribute, of_all_threads, of_one_thread, wake_after};
use crate::error::RecordError;
use crate::event::Event as EventName;
use crate::jitter::{Drawn, Jitter, Rows, Turn};
use crate::options::LARGEST_STACK;
use crate::stream::Stream;
use crate::sys::{Child, Event, Ring, abi};
use crate::waking::{self, Refusal, Tracepoint};

/// The events and the program to sample.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The events; empty to take the best clock that can be had.
    pub(crate) events: Vec<EventName>,
    pub(crate) frequency: f64,
    /// Counts between samples, where the user gave a number.
    pub(crate) period: Option<u64>,
    pub(crate) jitter: bool,
    /// How many bytes of a stack to copy, where the user gave a number.
    pub(crate) stack_bytes: Option<u32>,
    /// Whether to note blocked time.
    pub(crate) off_cpu: bool,
    /// Where wakings can be had, or why not.
    pub(crate) wakings: Result<Tracepoint, Refusal>,
    /// Whether kernel frames are wanted; they are left out where not permitted.
    pub(crate) kernel: bool,
    pub(crate) seed: u64,
    /// Whether events start with the program that a child is about to run.
    pub(crate) on_exec: bool,
}

/// A sampled event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject<'a> {
    /// A program that is about to be run, and variables of its environment.
    Command(&'a [OsString], &'a [(OsString, OsString)]),
    /// Threads that run already.
    Threads(&'a [u32]),
}

/// In place of a thread: all of the machine.
const ALL_THREADS: u32 = u32::MAX;

/// An interval that never ends.
const NEVER: u64 = 1 << 62;

/// The space for the samples of one processor: some 30 stacks of 64 KiB.
const RING_BYTES: usize = 1 << 21;
const SMALLEST_RING_BYTES: usize = 1 << 16;

/// How many bytes of a stack are copied where rings are smaller, so that they hold as many samples.
const SMALLER_STACK: u32 = 32 << 10;

impl Session {
    /// Opens the planned events on the subject, or the best available ones, and makes the child that is about to run
    /// a command.
    ///
    /// Where no events are given: hardware cycles, else the kernel's timer. Each with the kernel's mode, else
    /// without.
    pub(crate) fn open(
        plan: &Plan,
        subject: Subject<'_>,
        target: &str,
    ) -> Result<(Self, Option<Child>), RecordError> {
        let choices = match plan.events[..] {
            [] => vec![vec![EventName::cycles()], vec![EventName::cpu_clock()]],
            _ => vec![plan.events.clone()],
        };
        let mut tried = Vec::new();
        let mut last = None;
        for events in &choices {
            for kernel in [true, false].into_iter().filter(|&kernel| plan.kernel || !kernel) {
                match Self::try_open(plan, events, kernel, subject) {
                    Ok(opened) => return Ok(opened),
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

    fn try_open(
        plan: &Plan,
        events: &[EventName],
        kernel: bool,
        subject: Subject<'_>,
    ) -> Result<(Self, Option<Child>), OpenFailure> {
        // Where less memory may be locked all rings are smaller, and the recorder must wake sooner,
        // which events know from their start.
        let mut ring_bytes = RING_BYTES;
        loop {
            let mut session = Self::new(plan, events, kernel, ring_bytes);
            match session.open_events(plan, subject) {
                Err(failure) if failure.is_of_ring() && ring_bytes > SMALLEST_RING_BYTES => ring_bytes /= 2,
                opened => return opened.map(|child| (session, child)),
            }
        }
    }

    /// A session without events, with rings of `ring_bytes`.
    fn new(plan: &Plan, events: &[EventName], kernel: bool, ring_bytes: usize) -> Self {
        let roomiest = if ring_bytes < RING_BYTES { SMALLER_STACK } else { LARGEST_STACK };
        let stack_bytes = plan.stack_bytes.unwrap_or(roomiest);
        let mut session = Self {
            events: events.iter().map(|event| Sampled::new(event, plan)).collect(),
            kernel,
            wakings: Err(Refusal::UserOnly),
            stream: Stream::new(),
            wake_after: wake_after(plan.frequency, ring_bytes, stack_bytes),
            ring_bytes,
            stack_bytes,
            handles: Vec::new(),
            by_id: HashMap::new(),
            first_on: HashMap::new(),
            jitter: Jitter::new(plan.seed),
            rows: Rows::default(),
            notices: Vec::new(),
            anchors: Vec::new(),
            short_lives: false,
            reads_stacks: false,
            last_birth: None,
        };
        if plan.off_cpu && kernel {
            session.events.push(Sampled::blocks());
        }
        session
    }

    fn open_events(&mut self, plan: &Plan, subject: Subject<'_>) -> Result<Option<Child>, OpenFailure> {
        let processors = online_processors();
        let child = match subject {
            Subject::Threads(tids) => {
                tids.iter().for_each(|&tid| self.anchor(tid));
                for &cpu in &processors {
                    for &tid in tids {
                        self.open_all(plan, tid, cpu)?;
                    }
                }
                if self.handles.is_empty() {
                    return Err(OpenFailure::new("", io::Error::from_raw_os_error(libc::ESRCH)));
                }
                self.open_wakings(plan, tids, &processors);
                None
            }
            Subject::Command(command, environment) => {
                Some(self.open_on_child(plan, (command, environment), &processors)?)
            }
        };
        Ok(child)
    }

    /// Opens the events for a program that is to be run: templates for the intervals of all threads
    /// but the first, then the child, then the events of its first thread.
    fn open_on_child(
        &mut self,
        plan: &Plan,
        (command, environment): (&[OsString], &[(OsString, OsString)]),
        processors: &[u32],
    ) -> Result<Child, OpenFailure> {
        let has_templates = self.events.iter().any(|sampled| sampled.jittered);
        if has_templates {
            self.anchor(0);
        }
        for &cpu in processors {
            for sampled in 0..self.events.len() {
                if self.events[sampled].jittered {
                    self.open_one(plan, sampled, 0, cpu, Role::Template)?;
                }
            }
        }
        let child = Child::prepare(command, environment).map_err(OpenFailure::child)?;
        if !has_templates {
            // Else the events of the first thread alone keep to it.
            self.anchor(child.pid());
        }
        for &cpu in processors {
            for sampled in 0..self.events.len() {
                let role = if self.events[sampled].jittered { Role::FirstThread } else { Role::All };
                self.open_one(plan, sampled, child.pid(), cpu, role)?;
            }
        }
        self.open_wakings(plan, &[child.pid()], processors);
        // Not before the child was made, which has inherited events that never fire.
        self.redraw_templates();
        Ok(child)
    }

    /// Keeps the events of a thread in that thread. Where it cannot be had they may be exchanged,
    /// which costs some accuracy and nothing else.
    fn anchor(&mut self, tid: u32) {
        self.anchors.extend(Event::open_on_thread(&mut anchor(), tid).ok());
    }

    /// Opens all events on a thread that runs already.
    fn open_all(&mut self, plan: &Plan, tid: u32, cpu: u32) -> Result<(), OpenFailure> {
        for sampled in 0..self.events.len() {
            if !self.open_one(plan, sampled, tid, cpu, Role::All)? {
                break;
            }
        }
        Ok(())
    }

    /// Opens the events of wakings, if they can be had; a recording goes on without them.
    fn open_wakings(&mut self, plan: &Plan, tids: &[u32], processors: &[u32]) {
        if !plan.off_cpu {
            return;
        }
        let tracepoint = match &plan.wakings {
            Ok(_) if !plan.kernel => return self.wakings = Err(Refusal::UserOnly),
            Ok(tracepoint) => tracepoint,
            Err(refusal) => return self.wakings = Err(refusal.clone()),
        };
        if !self.kernel {
            return self.wakings = Err(Refusal::of(&io::Error::from_raw_os_error(libc::EACCES)));
        }
        let (events, handles, rings) = (self.events.len(), self.handles.len(), self.stream.rings());
        self.events.extend([Purpose::Wakers, Purpose::Wakings].map(|purpose| Sampled {
            event: tracepoint.event.clone(),
            pace: Pace::Period(1),
            jittered: false,
            purpose,
        }));
        self.wakings = Ok(tracepoint.layout);
        let on_threads = tids.iter().map(|&tid| (events, tid, Role::All));
        let all: Vec<_> = on_threads.chain([(events + 1, ALL_THREADS, Role::Machine)]).collect();
        for &cpu in processors {
            for &(sampled, tid, role) in &all {
                if let Err(failure) = self.open_one(plan, sampled, tid, cpu, role) {
                    self.wakings = Err(Refusal::of(&failure.source));
                    self.events.truncate(events);
                    self.handles.truncate(handles);
                    self.by_id.retain(|_, handle| *handle < handles);
                    self.stream.keep_rings(rings);
                    return;
                }
            }
        }
    }

    /// Opens one event, with a ring if it is the first of its processor; tells whether it could,
    /// which it cannot when the thread has ended or the processor is off.
    fn open_one(
        &mut self,
        plan: &Plan,
        sampled: usize,
        tid: u32,
        cpu: u32,
        role: Role,
    ) -> Result<bool, OpenFailure> {
        let Sampled { ref event, pace, jittered, purpose } = self.events[sampled];
        let failure = |source| OpenFailure::new(&event.name, source);
        let mean = pace.period().filter(|_| jittered);
        let (stack_bytes, wake_after, ring_bytes) = match purpose {
            Purpose::Costs | Purpose::Blocks => (self.stack_bytes, self.wake_after, self.ring_bytes),
            Purpose::Wakers => {
                (self.stack_bytes.min(waking::STACK_BYTES), waking::WAKE_AFTER_STACKS, waking::RING_OF_STACKS)
            }
            Purpose::Wakings => (0, waking::WAKE_AFTER, waking::RING_BYTES),
        };
        let contents = Contents {
            stack_bytes,
            kernel: self.kernel,
            switches: plan.off_cpu,
            raw: purpose.is_of_wakings(),
            wake_after,
        };
        let pace = match role {
            Role::Template => Pace::Period(NEVER),
            _ => mean.map_or(pace, |mean| Pace::Period(self.jitter.draw(mean))),
        };
        let place = (cpu, Some(purpose).filter(|purpose| purpose.is_of_wakings()));
        let first = self.first_on.get(&place).copied();
        let tracks = place.1.is_none() && if plan.on_exec { first.is_none() } else { sampled == 0 };
        let mut attribute = attribute(event, pace, contents, tracks);
        if role == Role::FirstThread {
            attribute = of_one_thread(attribute);
        }
        attribute.set_enable_on_exec(u64::from(plan.on_exec));
        if role == Role::Machine {
            attribute = of_all_threads(attribute, waking::FRAMES);
        }
        let opened = match open_patiently(&mut attribute, tid, cpu) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENODEV)) => {
                return Ok(false);
            }
            opened => opened.map_err(failure)?,
        };
        self.by_id.insert(opened.id().map_err(failure)?, self.handles.len());
        match first {
            Some(first) => opened.redirect_to(&self.handles[first].event).map_err(failure)?,
            None => {
                let ring = Ring::map(&opened, ring_bytes).map_err(OpenFailure::ring)?;
                self.stream.add(&opened, ring);
                self.first_on.insert(place, self.handles.len());
            }
        }
        // That of a template is for those that inherit it, and no sample of its own ends it.
        let intervals = Drawn::from_start(mean.and(pace.period()).filter(|&period| period != NEVER));
        self.handles.push(Handle { event: opened, tid, sampled, role, turn: Turn::default(), intervals });
        Ok(true)
    }
}

/// The numbers of the processors that run, as sysfs lists them: `0-3,6`.
pub(crate) fn online_processors() -> Vec<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_else(|_| "0".to_owned());
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

/// Opens an event, without features that an older kernel lacks.
fn open_patiently(attribute: &mut abi::perf_event_attr, tid: u32, cpu: u32) -> io::Result<Event> {
    match Event::open(attribute, tid, cpu) {
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            std::thread::sleep(std::time::Duration::from_millis(10));
            Event::open(attribute, tid, cpu)
        }
        other => other,
    }
}
