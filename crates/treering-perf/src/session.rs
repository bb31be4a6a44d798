//! The open events of a recording: which could be had, and how they are jittered.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::io;
use std::time::{Duration, Instant};

use crate::attribute::{
    Contents, Pace, anchor, attribute, of_all_threads, of_one_thread, pace, states_period, wake_after,
};
use crate::error::{Denial, RecordError};
use crate::event::{Event as EventName, Modes, Nature};
use crate::interval_distribution::IntervalDistribution;
use crate::jitter::{Drawn, Jitter, Rows, Turn};
use crate::options::LARGEST_STACK;
use crate::record::Extent;
use crate::stream::{Notice, Stream};
use crate::sys::{Child, Event, Reading, Ring, abi, monotonic_ns};
use crate::waking::{self, Layout, Refusal, Tracepoint};

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

/// An event that is being sampled.
#[derive(Clone, Debug)]
pub(crate) struct Sampled {
    pub(crate) event: EventName,
    pub(crate) pace: Pace,
    /// Whether the intervals are drawn at random.
    pub(crate) jittered: bool,
    pub(crate) purpose: Purpose,
}

/// The use of an event's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Purpose {
    /// They stand for costs.
    Costs,
    /// They bring the stacks of blocked threads.
    Blocks,
    /// They bring the stacks of threads that wake others.
    Wakers,
    /// They say who woke a thread, whatever that was: they are of all that runs on the machine, and without a stack.
    Wakings,
}

impl Purpose {
    /// Whether its samples hold the record of the tracepoint for wakings.
    fn is_of_wakings(self) -> bool {
        matches!(self, Self::Wakers | Self::Wakings)
    }
}

/// The open events of a recording.
#[derive(Debug)]
pub(crate) struct Session {
    /// The sampled events; samples refer to them by [`sampled`](Self::sampled).
    pub(crate) events: Vec<Sampled>,
    /// Whether the kernel's mode is sampled too.
    pub(crate) kernel: bool,
    /// How wakings are read, or why they are not recorded.
    pub(crate) wakings: Result<Layout, Refusal>,
    pub(crate) stream: Stream,
    wake_after: u32,
    /// The size of every ring.
    ring_bytes: usize,
    /// How many bytes of a stack the kernel copies with each sample.
    pub(crate) stack_bytes: u32,
    handles: Vec<Handle>,
    /// The handle of every event's id.
    by_id: HashMap<u64, usize>,
    /// By processor, the handle that has its ring, and those of the rings for wakers and wakings.
    first_on: HashMap<(u32, Option<Purpose>), usize>,
    jitter: Jitter,
    rows: Rows,
    notices: Vec<Notice>,
    /// Events that keep the kernel from exchanging those of two threads; see [`anchor`].
    anchors: Vec<Event>,
    /// Whether threads that were made lately lived shortly; see [`IntervalDistribution::draw_template`].
    pub(crate) short_lives: bool,
    /// Whether parts of stacks were read from a process lately, which the next look should find as they are now.
    pub(crate) reads_stacks: bool,
    /// When threads or processes were last made.
    last_birth: Option<Instant>,
}

/// An event on one thread and processor.
#[derive(Debug)]
struct Handle {
    event: Event,
    /// The thread that it was opened on; 0 for our own.
    tid: u32,
    sampled: usize,
    role: Role,
    turn: Turn,
    intervals: Drawn,
}

/// The threads whose samples an event brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Of a thread and of those that it makes, which inherit the event.
    All,
    /// Of the program's first thread alone.
    FirstThread,
    /// Of all other threads. The event itself was opened on our own thread before the program's first thread was made
    /// from it, and its interval is so long that it never fires there. Threads inherit the present interval of this first
    /// ancestor, which can be drawn again without disturbing the program.
    Template,
    /// Of all threads of the machine.
    Machine,
}

/// In place of a thread: all of the machine.
const ALL_THREADS: u32 = u32::MAX;

/// An interval that never ends.
const NEVER: u64 = 1 << 62;

/// How often the interval that new threads get is redrawn while threads are being made.
const REDRAW: Duration = Duration::from_millis(1);

/// How often to look for samples while parts of stacks are read from processes.
const READ_SOON: Duration = Duration::from_millis(1);

/// How long after the last one was made more are expected.
const MORE_BIRTHS: Duration = Duration::from_millis(50);

/// How often to look for threads that were made.
const LOOK_FOR_BIRTHS: Duration = Duration::from_millis(10);

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

    /// Starts sampling, where it does not start with the program.
    pub(crate) fn enable(&self) -> io::Result<()> {
        self.handles.iter().try_for_each(|handle| handle.event.enable())
    }

    /// Stops sampling.
    pub(crate) fn disable(&self) -> io::Result<()> {
        self.handles.iter().try_for_each(|handle| handle.event.disable())
    }

    /// Looks for new samples and draws the next interval of the events that took enough of them, and of
    /// threads that will be made if any were.
    ///
    /// Only the events that we opened are redrawn. Threads inherit the interval that is set when they are made, and
    /// keep it; their samples state it.
    pub(crate) fn look(&mut self) {
        self.notices.clear();
        let births = self.stream.look(&mut self.notices);
        let now = monotonic_ns();
        let notices = std::mem::take(&mut self.notices);
        for (at, notice) in notices.iter().enumerate() {
            let Some(handle) = self.own_handle(notice.event, notice.stream) else { continue };
            self.handles[handle].turn.take();
            let is_last = !notices[at + 1..].iter().any(|other| other.stream == notice.stream);
            if is_last {
                self.redraw(handle, now.saturating_sub(notice.time));
            }
        }
        self.notices = notices;
        if births > 0 {
            self.last_birth = Some(Instant::now());
            self.redraw_templates();
        }
    }

    /// Draws an event's next interval, if the present one has had its turn.
    fn redraw(&mut self, handle: usize, latency_ns: u64) {
        let Handle { event, sampled, turn, intervals, .. } = &mut self.handles[handle];
        let Sampled { pace: Pace::Period(mean), jittered: true, event: ref name, .. } = self.events[*sampled]
        else {
            return;
        };
        let Some(row) = turn.end(self.wake_after) else { return };
        self.rows.add(row);
        self.jitter.note_latency(latency_ns, row);
        let mean_ns = if name.nature() == Nature::Clock { mean as f64 } else { mean as f64 / 3.0 };
        let (period, interval) = self.jitter.draw_late(mean, mean_ns);
        intervals.set(monotonic_ns(), interval);
        // A thread that has just ended takes no new interval.
        let _ = event.set_period(period);
    }

    /// How many samples an event takes at one interval, if the recorder is not late.
    pub(crate) fn turn(&self) -> u32 {
        self.wake_after
    }

    /// The note on intervals that were drawn late.
    pub(crate) fn note_of_rows(&self) -> Option<String> {
        self.rows.note(self.wake_after)
    }

    /// Draws the intervals that threads made from now on get, on each processor one.
    fn redraw_templates(&mut self) {
        for handle in self.handles.iter().filter(|handle| handle.role == Role::Template) {
            let Some(mean) = self.events[handle.sampled].pace.period() else { continue };
            let interval = IntervalDistribution::draw_template(&mut self.jitter, mean, self.short_lives);
            // It only fails when the event is gone, and then no thread inherits it any more.
            let _ = handle.event.set_period(interval);
        }
    }

    /// How long to wait at most, so that threads made from now on get other intervals than those
    /// before, and that stacks are read from processes soon.
    pub(crate) fn patience(&self) -> Duration {
        if self.reads_stacks {
            return READ_SOON;
        }
        if !self.handles.iter().any(|handle| handle.role == Role::Template) {
            return Duration::MAX;
        }
        let lately = self.last_birth.is_some_and(|last| last.elapsed() < MORE_BIRTHS);
        if lately { REDRAW } else { LOOK_FOR_BIRTHS }
    }

    /// The index in [`events`](Self::events) of the event that a sample names.
    pub(crate) fn sampled(&self, id: u64) -> Option<usize> {
        self.by_id.get(&id).map(|&at| self.handles[at].sampled)
    }

    /// The fields that the samples of an event have.
    pub(crate) fn extent(&self, id: u64) -> Extent {
        self.sampled(id).map_or_else(Extent::default, |at| {
            let sampled = &self.events[at];
            let stated = states_period(&sampled.event, sampled.pace);
            let period = sampled.pace.period().filter(|_| !stated);
            Extent { has_raw: sampled.purpose.is_of_wakings(), period }
        })
    }

    /// Whether an event's samples hold the record of the tracepoint for wakings.
    pub(crate) fn is_of_wakings(&self, id: u64) -> bool {
        self.sampled(id).is_some_and(|at| self.events[at].purpose.is_of_wakings())
    }

    /// Starts the events of all threads of the machine, which start with no program.
    pub(crate) fn enable_machine(&self) -> io::Result<()> {
        self.of_machine().try_for_each(|handle| handle.event.enable())
    }

    /// Stops the events that bring the stacks of wakers, or starts them again; tells whether it did. Of a program with very many
    /// threads that would take longer than it saves.
    pub(crate) fn set_stacks(&self, on: bool) -> bool {
        const MOST: usize = 256;
        let brings = |handle: &&Handle| self.events[handle.sampled].purpose == Purpose::Wakers;
        let handles = || self.handles.iter().filter(brings);
        let few = handles().count() <= MOST;
        for handle in handles().filter(|_| few) {
            // The event of a thread that has ended is gone.
            let _ = if on { handle.event.enable() } else { handle.event.disable() };
        }
        few
    }

    /// Stops the events of all threads of the machine.
    pub(crate) fn disable_machine(&self) {
        self.of_machine().for_each(|handle| _ = handle.event.disable());
    }

    fn of_machine(&self) -> impl Iterator<Item = &Handle> {
        self.handles.iter().filter(|handle| handle.role == Role::Machine)
    }

    /// How intervals were drawn that threads inherit.
    pub(crate) fn interval_distribution(&self, sampled: usize) -> IntervalDistribution {
        let is_template = |handle: &Handle| handle.sampled == sampled && handle.role == Role::Template;
        match (self.events[sampled].jittered, self.handles.iter().any(is_template)) {
            (false, _) => IntervalDistribution::Fixed,
            (true, true) => IntervalDistribution::Template,
            (true, false) => IntervalDistribution::LengthBiased,
        }
    }

    /// Whether an event's samples in a thread stand for its count there. The kernel's timer counts all of a thread's
    /// time, also in modes that are not sampled.
    pub(crate) fn counts_what_it_samples(&self, sampled: usize) -> bool {
        let event = &self.events[sampled].event;
        event.nature() != Nature::Clock || self.kernel && event.modes == Modes::Any
    }

    /// The thread that the event `id` was opened on, if the event `stream` that took a sample is that very event.
    pub(crate) fn own_thread(&self, id: u64, stream: u64) -> Option<u32> {
        self.own_handle(id, stream).map(|at| self.handles[at].tid)
    }

    /// The interval that ended with a sample of an event that we opened, if its intervals are drawn. Samples of an event come
    /// in the order of time.
    pub(crate) fn own_interval(&mut self, id: u64, time: u64) -> Option<u64> {
        let at = *self.by_id.get(&id)?;
        self.handles[at].intervals.at(time)
    }

    /// The threads that events were opened on, other than our own.
    pub(crate) fn own_threads(&self) -> BTreeSet<u32> {
        let is_own = |handle: &&Handle| !matches!(handle.role, Role::Template | Role::Machine);
        self.handles.iter().filter(is_own).map(|handle| handle.tid).collect()
    }

    fn own_handle(&self, id: u64, stream: u64) -> Option<usize> {
        self.by_id.get(&id).copied().filter(|_| id == stream)
    }

    /// The use that an event has counted: the count, or of a timer how long it ran, which is the same for all timers of a
    /// thread.
    pub(crate) fn use_of(&self, sampled: usize, reading: Reading) -> u64 {
        match self.events[sampled].event.nature() {
            Nature::Clock => reading.running_ns,
            _ => reading.count,
        }
    }

    /// An event's counts in the threads that it was opened on; nothing if one of them is unknown.
    pub(crate) fn own_counts(&self, sampled: usize) -> Option<OwnCounts> {
        let mut counts = OwnCounts::default();
        let own = |handle: &&Handle| handle.sampled == sampled && handle.role != Role::Template;
        for handle in self.handles.iter().filter(own) {
            *counts.by_thread.entry(handle.tid).or_default() +=
                self.use_of(sampled, handle.event.read().ok()?);
            counts.with_inherited |= handle.role == Role::All;
        }
        Some(counts)
    }

    /// The processor time of all threads since the recording began, by the first event; nothing if it is unknown.
    ///
    /// An event that threads inherit adds up the times of all of them. The program's first thread has inherited the
    /// templates as well.
    pub(crate) fn processor_time(&self) -> Option<u64> {
        let of = |role| self.handles.iter().filter(move |handle| handle.sampled == 0 && handle.role == role);
        let inherited = if of(Role::Template).next().is_some() { Role::Template } else { Role::All };
        of(inherited).map(|handle| handle.event.read().ok().map(|reading| reading.running_ns)).sum()
    }
}

/// An event's counts in the threads that it was opened on.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnCounts {
    pub(crate) by_thread: HashMap<u32, u64>,
    /// Whether they contain those of all threads that were made by these.
    pub(crate) with_inherited: bool,
}

impl Sampled {
    fn new(event: &EventName, plan: &Plan) -> Self {
        let pace = pace(event, plan.frequency, plan.period);
        // An event whose samples do not state their period cannot have many, and has a sample at once after each is set.
        let jittered =
            plan.jitter && matches!(pace, Pace::Period(period) if period > 1) && states_period(event, pace);
        Self { event: event.clone(), pace, jittered, purpose: Purpose::Costs }
    }

    fn blocks() -> Self {
        Self {
            event: EventName::context_switches(),
            pace: Pace::Period(1),
            jittered: false,
            purpose: Purpose::Blocks,
        }
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

/// Why a set of events could not be opened.
#[derive(Debug)]
struct OpenFailure {
    event: String,
    doing: Doing,
    source: io::Error,
}

/// The step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Opening,
    MappingRing,
    MakingChild,
}

impl OpenFailure {
    fn new(event: &str, source: io::Error) -> Self {
        Self { event: event.to_owned(), doing: Doing::Opening, source }
    }

    fn ring(source: io::Error) -> Self {
        Self { event: String::new(), doing: Doing::MappingRing, source }
    }

    fn child(source: io::Error) -> Self {
        Self { event: String::new(), doing: Doing::MakingChild, source }
    }

    fn is_of_ring(&self) -> bool {
        self.doing == Doing::MappingRing
    }

    /// Whether no other choice can do better.
    fn is_final(&self) -> bool {
        let other_choices =
            [libc::ENOENT, libc::EOPNOTSUPP, libc::EACCES, libc::EPERM, libc::EINVAL, libc::ENODEV];
        self.doing != Doing::Opening
            || !self.source.raw_os_error().is_some_and(|code| other_choices.contains(&code))
    }

    fn explain(self, target: &str, tried: Vec<String>) -> RecordError {
        match self.source.raw_os_error() {
            _ if self.doing == Doing::MappingRing => RecordError::NoRing(self.source),
            _ if self.doing == Doing::MakingChild => {
                RecordError::CannotRun { program: target.to_owned(), source: self.source }
            }
            Some(libc::EACCES | libc::EPERM | libc::ENOSYS) => {
                RecordError::NotPermitted(Denial::new("sample", target.to_owned(), tried, self.source))
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
