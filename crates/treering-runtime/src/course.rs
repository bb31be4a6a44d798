//! The course of a thread: how much of each node's time passed in which slot of time.
//!
//! Between two events of a thread one node runs, so the time between them is that node's, and is divided among slots
//! exactly: of each node they add up to its self cost. Slots are a millisecond long at first. Neighbours are joined where
//! there would be too many entries, so that memory and file stay bounded.
//!
//! Courses are in the process's memory and come into the finished profile; a live file has none.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::collections::BTreeMap;

use treering_events::cells::{Node, Thread};
use treering_events::Ref;

use crate::process;
use crate::record::{self, place_of};
use crate::store;
use crate::sys::{self, Lock};
use crate::thread::word;

/// The length of slots to begin with.
const FIRST_SLOT_NS: f64 = 1e6;

/// How many entries a course has at most.
const MOST: usize = 1 << 16;

/// The most slots that a reader takes.
pub(crate) const MOST_SLOTS: u64 = 1 << 24;

/// How many nodes' times in the running slot are added up before they become entries.
const HELD: usize = 128;

/// The course of one thread's record. Only that thread writes to it; another one, which finishes the profile, reads it.
pub(crate) struct Course {
    /// The clock up to which all time is charged.
    last: AtomicU64,
    /// The clock at the end of the running slot.
    slot_end: AtomicU64,
    held: [Held; HELD],
    /// The root, whose time is that outside of any function: no cost.
    root: Ref,
    kept: Lock<Slots>,
}

/// The time of a node in the running slot.
struct Held {
    node: AtomicU32,
    ticks: AtomicU64,
}

impl Held {
    /// Empties it; only its own thread does.
    fn take(&self) -> (Ref, u64) {
        let held = (self.node.load(Relaxed), self.ticks.load(Relaxed));
        self.node.store(0, Relaxed);
        self.ticks.store(0, Relaxed);
        held
    }
}

/// The time of a node in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) slot: u32,
    pub(crate) node: Ref,
    pub(crate) ticks: u64,
}

/// The entries of a course, and the length of its slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slots {
    /// The clock at the start of the first slot.
    start: u64,
    /// The length of a slot in ticks.
    length: u64,
    /// The running slot.
    running: u64,
    entries: Vec<Entry>,
}

/// The courses of the store in use, with the places of their threads' records.
static COURSES: Lock<Vec<(Ref, &'static Course)>> = Lock::new(Vec::new());

/// Keeps events of this thread out, which an allocator or a signal handler may make.
struct Busy(Option<&'static Thread>);

impl Busy {
    fn begin() -> Self {
        let before = sys::current();
        sys::set_current(Some(sys::busy_thread()));
        Self(before)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        sys::set_current(self.0);
    }
}

/// Forgets the courses of a store that is no longer in use. Threads may still hold them, so they stay in memory without
/// their entries.
pub(crate) fn forget() {
    let _busy = Busy::begin();
    for (_, course) in COURSES.hold().drain(..) {
        course.kept.hold().entries = Vec::new();
    }
}

/// Gives a thread's record a course, if one is wanted. Its time passes from now on.
pub(crate) fn begin(thread: &'static Thread) {
    if !process::wants_course() {
        // Its events do not tell which node ran.
        thread.private[word::COURSE].set(0);
    }
    if let Some(course) = of_new(thread) {
        COURSES.hold().push((place_of(thread), course));
    }
    restart(thread);
}

/// The same for a record that no reader knows of.
pub(crate) fn begin_unlisted(thread: &'static Thread) {
    of_new(thread);
    restart(thread);
}

/// The course of a record that had none, if one is wanted.
fn of_new(thread: &'static Thread) -> Option<&'static Course> {
    let word = &thread.private[word::COURSE];
    if !process::wants_course() || word.get() != 0 {
        return None;
    }
    let start = store::header()?.start_ticks.get();
    let length = (FIRST_SLOT_NS / process::ns_per_tick()).max(1.0) as u64;
    let _busy = Busy::begin();
    let course: &'static Course = Box::leak(Box::new(Course {
        last: AtomicU64::new(0),
        slot_end: AtomicU64::new(0),
        held: [const { Held { node: AtomicU32::new(0), ticks: AtomicU64::new(0) } }; HELD],
        root: thread.root.get(),
        kept: Lock::new(Slots::new(start, length)),
    }));
    word.set(core::ptr::from_ref(course) as u64);
    Some(course)
}

/// Time passes from now on, without that since the last event.
pub(crate) fn restart(thread: &'static Thread) {
    if let Some(course) = record::course_of(thread) {
        course.turn_to(sys::ticks(), course.root);
        course.last.store(sys::ticks(), Relaxed);
    }
}

/// Charges the time since the last event to a node.
#[inline(always)]
pub(crate) fn charge(thread: &'static Thread, node: &'static Node, now: u64) {
    if let Some(course) = record::course_of(thread) {
        course.charge(node, now);
    }
}

impl Course {
    #[inline(always)]
    fn charge(&self, node: &'static Node, now: u64) {
        let node = place_of(node);
        if now < self.slot_end.load(Relaxed) {
            // A clock that shows less than before is counted where the activation is left.
            let last = self.last.load(Relaxed);
            self.hold(node, now.saturating_sub(last));
            self.last.store(now.max(last), Relaxed);
        } else {
            self.turn_to(now, node);
        }
    }

    #[inline(always)]
    fn hold(&self, node: Ref, ticks: u64) {
        let held = &self.held[node.wrapping_mul(0x9E37_79B9) as usize >> 25];
        if held.node.load(Relaxed) != node {
            self.keep(held);
            held.node.store(node, Relaxed);
        }
        held.ticks.store(held.ticks.load(Relaxed) + ticks, Relaxed);
    }

    /// Makes an entry of what is held of a node.
    #[cold]
    #[inline(never)]
    fn keep(&self, held: &Held) {
        let (node, ticks) = held.take();
        if ticks == 0 || node == self.root {
            return;
        }
        let _busy = Busy::begin();
        let mut kept = self.kept.hold();
        kept.add(node, ticks);
        self.slot_end.store(kept.end(), Relaxed);
    }

    /// Charges time that goes on beyond the running slot.
    #[cold]
    #[inline(never)]
    fn turn_to(&self, now: u64, node: Ref) {
        let _busy = Busy::begin();
        let mut kept = self.kept.hold();
        for (node, ticks) in self.held.iter().map(Held::take) {
            if ticks > 0 && node != self.root {
                kept.add(node, ticks);
            }
        }
        let last = self.last.load(Relaxed);
        kept.pass(last, now, (node != self.root).then_some(node));
        self.last.store(now.max(last), Relaxed);
        self.slot_end.store(kept.end(), Relaxed);
    }

    /// The entries until a moment, up to which a node runs.
    fn until(&self, end: u64, node: Ref) -> Slots {
        let mut slots = self.kept.hold().clone();
        for held in &self.held {
            let (node, ticks) = (held.node.load(Relaxed), held.ticks.load(Relaxed));
            if ticks > 0 && node != self.root {
                slots.add(node, ticks);
            }
        }
        slots.pass(self.last.load(Relaxed), end, (node != self.root).then_some(node));
        slots.join();
        slots
    }
}

impl Slots {
    fn new(start: u64, length: u64) -> Self {
        Self { start, length, running: 0, entries: Vec::new() }
    }

    /// The clock at the end of the running slot.
    fn end(&self) -> u64 {
        self.start.saturating_add((self.running + 1).saturating_mul(self.length))
    }

    /// Adds time to a node in the running slot.
    fn add(&mut self, node: Ref, ticks: u64) {
        self.entries.push(Entry { slot: self.running as u32, node, ticks });
        if self.entries.len() >= MOST {
            self.join();
            while self.entries.len() > MOST / 2 {
                self.coarsen();
            }
        }
    }

    /// A node runs from one moment to another, or none does.
    fn pass(&mut self, from: u64, to: u64, node: Option<Ref>) {
        let mut at = from;
        if node.is_none() {
            at = to;
        }
        while at < to {
            self.turn_to(at);
            let until = self.end().min(to);
            if let Some(node) = node {
                self.add(node, until - at);
            }
            at = until;
        }
        self.turn_to(to);
    }

    /// Makes the slot of a moment the running one, unless it is an earlier one.
    fn turn_to(&mut self, moment: u64) {
        let slot = |slots: &Self| moment.saturating_sub(slots.start) / slots.length;
        while slot(self) >= MOST_SLOTS {
            self.coarsen();
        }
        self.running = self.running.max(slot(self));
    }

    /// Joins every slot with the next one.
    fn coarsen(&mut self) {
        self.length *= 2;
        self.running /= 2;
        self.entries.iter_mut().for_each(|entry| entry.slot /= 2);
        self.join();
    }

    /// Sorts the entries, and joins those of one node in one slot.
    fn join(&mut self) {
        self.entries.sort_unstable();
        self.entries.dedup_by(|next, kept| {
            let same = (next.slot, next.node) == (kept.slot, kept.node);
            if same {
                kept.ticks += next.ticks;
            }
            same
        });
    }
}

/// The entries of all threads, in slots of the same length.
#[derive(Clone, Debug)]
pub(crate) struct Courses {
    /// The length of a slot in ticks.
    pub(crate) length: u64,
    pub(crate) entries: Vec<Entry>,
}

impl Courses {
    /// The courses of all threads up to a moment; `running` gives the node that runs in the thread of a record. Nothing
    /// where no thread has a course.
    pub(crate) fn until(end: u64, running: impl Fn(Ref) -> Option<Ref>) -> Option<Self> {
        let courses: Vec<Slots> = COURSES
            .hold()
            .iter()
            .map(|(thread, course)| course.until(end, running(*thread).unwrap_or(course.root)))
            .collect();
        Self::of(courses)
    }

    fn of(mut courses: Vec<Slots>) -> Option<Self> {
        let length = courses.iter().map(|slots| slots.length).max()?;
        for slots in &mut courses {
            while slots.length < length {
                slots.coarsen();
            }
        }
        let mut all = Slots::new(0, length);
        all.entries = courses.into_iter().flat_map(|slots| slots.entries).collect();
        all.join();
        Some(Self { length, entries: all.entries })
    }

    /// Joins every slot with the next one.
    pub(crate) fn coarsen(&mut self) {
        let mut slots = Slots { entries: core::mem::take(&mut self.entries), ..Slots::new(0, self.length) };
        slots.coarsen();
        (self.length, self.entries) = (slots.length, slots.entries);
    }

    /// Turns the ticks of entries into nanoseconds, such that those of each node add up to its self cost. `self_ns` has the self cost of
    /// a node that the profile has.
    ///
    /// The ticks of a node give its cost but for roundings. Where they do not, since its clock stepped back, they are
    /// taken as shares of it if there are too many; what is missing is in no slot.
    pub(crate) fn turn_into_ns(&mut self, ns_per_tick: f64, self_ns: impl Fn(Ref) -> Option<u64>) {
        let mut sums: BTreeMap<Ref, u64> = BTreeMap::new();
        for entry in &self.entries {
            *sums.entry(entry.node).or_default() += entry.ticks;
        }
        let mut seen: BTreeMap<Ref, u64> = BTreeMap::new();
        for entry in &mut self.entries {
            let (of, cost) = (sums[&entry.node], self_ns(entry.node).unwrap_or(0));
            let measured = (of as f64 * ns_per_tick + 0.5) as u64;
            let all = if cost.abs_diff(measured) <= 2 { cost } else { cost.min(measured) };
            let before = seen.entry(entry.node).or_default();
            let part = |ticks: u64| (u128::from(all) * u128::from(ticks) / u128::from(of.max(1))) as u64;
            let (from, to) = (part(*before), part(*before + entry.ticks));
            *before += entry.ticks;
            entry.ticks = to - from;
        }
        self.entries.retain(|entry| entry.ticks > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(length: u64) -> Slots {
        Slots::new(1000, length)
    }

    fn rows(slots: &Slots) -> Vec<(u32, Ref, u64)> {
        slots.entries.iter().map(|entry| (entry.slot, entry.node, entry.ticks)).collect()
    }

    fn sum(entries: &[Entry], node: Ref) -> u64 {
        entries.iter().filter(|entry| entry.node == node).map(|entry| entry.ticks).sum()
    }

    #[test]
    fn time_is_divided_among_the_slots_that_it_passes_in() {
        let mut slots = slots(100);
        slots.pass(1030, 1050, Some(7));
        slots.pass(1050, 1320, Some(8));
        slots.pass(1320, 1390, None);
        slots.pass(1390, 1400, Some(7));
        slots.join();
        assert_eq!(rows(&slots), [(0, 7, 20), (0, 8, 50), (1, 8, 100), (2, 8, 100), (3, 7, 10), (3, 8, 20)]);
    }

    #[test]
    fn long_times_are_kept_in_few_entries_and_lose_nothing() {
        let mut slots = slots(10);
        let end = 1000 + 10 * 1_000_000;
        slots.pass(1000, end, Some(7));
        slots.pass(end, end + 5, Some(8));
        assert!(slots.entries.len() < MOST, "{}", slots.entries.len());
        assert_eq!((sum(&slots.entries, 7), sum(&slots.entries, 8)), (10_000_000, 5));
        assert_eq!(slots.length % 10, 0);
        assert_eq!(slots.entries.last().map(|last| u64::from(last.slot)), Some((end - 1000) / slots.length));
    }

    #[test]
    fn no_slot_is_beyond_those_that_a_reader_takes() {
        let mut slots = slots(10);
        slots.pass(1000, 1001, Some(7));
        slots.pass(1000 + 10 * MOST_SLOTS, 1001 + 10 * MOST_SLOTS, Some(7));
        assert_eq!(slots.length, 20);
        assert_eq!(rows(&slots), [(0, 7, 1), ((MOST_SLOTS / 2) as u32, 7, 1)]);
    }

    #[test]
    fn courses_of_threads_are_joined_in_slots_of_the_longest() {
        let (mut short, mut long) = (slots(10), slots(10));
        (0..4).for_each(|slot| short.pass(1000 + 10 * slot, 1003 + 10 * slot, Some(7)));
        long.pass(1000, 1040, Some(8));
        long.coarsen();
        let courses = Courses::of(vec![short, long]).expect("there are two");
        let rows: Vec<_> = courses.entries.iter().map(|entry| (entry.slot, entry.node, entry.ticks)).collect();
        assert_eq!((courses.length, rows), (20, vec![(0, 7, 6), (0, 8, 20), (1, 7, 6), (1, 8, 20)]));
        assert!(Courses::of(Vec::new()).is_none());
    }

    #[test]
    fn nanoseconds_of_a_node_add_up_to_its_self_cost() {
        let entry = |slot, node, ticks| Entry { slot, node, ticks };
        // Of node 9 the profile has more, of node 8 less, and of node 6 nothing.
        let entries = (0..7).map(|slot| entry(slot, 7, 10)).chain([
            entry(3, 9, 30),
            entry(1, 8, 300),
            entry(2, 8, 600),
            entry(2, 6, 40),
        ]);
        let mut courses = Courses { length: 100, entries: entries.collect() };
        courses.turn_into_ns(0.333, |node| match node {
            7 => Some(24),
            8 => Some(90),
            9 => Some(50),
            _ => None,
        });
        assert_eq!([7, 8, 9, 6].map(|node| sum(&courses.entries, node)), [24, 90, 10, 0]);
        let of_8: Vec<_> = courses.entries.iter().filter(|entry| entry.node == 8).map(|entry| entry.ticks).collect();
        assert_eq!(of_8, [30, 60]);
    }
}
