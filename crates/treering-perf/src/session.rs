//! The open events of a recording, how they are jittered, and what they counted.

mod failure;
mod opening;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::time::{Duration, Instant};

pub(crate) use self::opening::{Plan, Subject, online_processors};
use crate::attribute::{Pace, pace, states_period};
use crate::event::{Event as EventName, Modes, Nature};
use crate::interval_distribution::IntervalDistribution;
use crate::jitter::{Drawn, Jitter, Rows, Turn};
use crate::record::Extent;
use crate::stream::{Notice, Stream};
use crate::sys::{Event, Reading, monotonic_ns};
use crate::waking::{Layout, Refusal};

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

/// How often the interval that new threads get is redrawn while threads are being made.
const REDRAW: Duration = Duration::from_millis(1);

/// How often to look for samples while parts of stacks are read from processes.
const READ_SOON: Duration = Duration::from_millis(1);

/// How long after the last one was made more are expected.
const MORE_BIRTHS: Duration = Duration::from_millis(50);

/// How often to look for threads that were made.
const LOOK_FOR_BIRTHS: Duration = Duration::from_millis(10);

impl Session {
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
