//! When costs arose.

mod apportioned;
mod latency;
mod moved;
mod wait_kind;

use crate::{LineId, MetricId, NodeId, StringId, ThreadId, Waking};

pub(crate) use apportioned::Apportioned;
pub use wait_kind::WaitKind;

/// The course of one run: which costs arose in which slot of time, and what else has a time.
///
/// All times are in nanoseconds since the start of the run. Slots are equally long: slot `s` holds the times from
/// `s * slot_ns` on, up to and without the start of the next. So the sums of consecutive parts of a run are exactly those
/// of the whole.
///
/// A metric is timed when its costs are in [`costs`](Self::costs). Of sampled metrics that is mostly the one that
/// counts the samples; the cost that they stand for is apportioned by it, node by node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// The length of a slot in nanoseconds; never 0. Neighbours are joined where there would be too many entries.
    pub slot_ns: u64,
    /// How long the run was, in nanoseconds. Nothing in the timeline is later.
    pub length_ns: u64,
    /// The costs by slot; in the order of their fields, each place once, after [`compact`](Self::compact).
    pub costs: Vec<TimeCost>,
    /// When threads waited, where it was measured.
    pub waits: Option<Waits>,
    /// When threads began and ended, as far as it was seen.
    pub lives: Vec<Life>,
    /// Moments and intervals with a name.
    pub marks: Vec<Mark>,
    /// Where samples were lost.
    pub losses: Vec<LostSamples>,
    /// How often a clock showed less than before. What had such a time is in the slot of that time, or the first one.
    pub clock_steps_back: u64,
    /// Changes when entries that were there before were joined or moved, and not only others added.
    pub revision: u64,
    /// How often there were too many entries since they were last compacted.
    overflows: u32,
}

/// A cost of a node in one slot of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeCost {
    /// The slot.
    pub slot: u32,
    /// The metric.
    pub metric: MetricId,
    /// The node, which belongs to one thread.
    pub node: NodeId,
    /// The source line that was executed, where known.
    pub line: Option<LineId>,
    /// The cost in the metric's unit, such as a number of samples.
    pub amount: u64,
}

/// When threads were off the processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    /// The metric that their time is part of, in nanoseconds.
    pub time: MetricId,
    /// The metric that counts them, each where it begins.
    pub count: MetricId,
    /// The intervals by their start. Of very many the shorter ones are costs of slots instead.
    pub intervals: Vec<Wait>,
}

/// An interval in which a thread was off the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    /// When it left the processor.
    pub start_ns: u64,
    /// When it came back, or ended, or the recording did.
    pub end_ns: u64,
    /// Where it waited.
    pub node: NodeId,
    /// Whether it was ready all the time and only had no processor. Such waits have no cost in the metrics.
    pub preempted: bool,
    /// The waker that ended it, where that is known.
    pub waking: Option<Waking>,
}

/// When a thread began and ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Life {
    /// The thread. It has several lives where threads were added up.
    pub thread: ThreadId,
    /// When it began, if that was seen.
    pub start_ns: Option<u64>,
    /// When it ended, if it has.
    pub end_ns: Option<u64>,
}

/// A moment or interval with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// When it is, or begins.
    pub time_ns: u64,
    /// When it ends, for an interval.
    pub end_ns: Option<u64>,
    /// The thread that it is of.
    pub thread: ThreadId,
    /// Its kind.
    pub kind: MarkKind,
    /// Its name.
    pub name: StringId,
}

/// The kind of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MarkKind {
    /// The program said so itself.
    Mark,
    /// The process began to run the program of that name.
    Exec,
}

/// Samples that were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LostSamples {
    /// When it was noticed.
    pub time_ns: u64,
    /// How many.
    pub samples: u64,
}

impl Timeline {
    /// The length of slots to begin with.
    pub const FIRST_SLOT_NS: u64 = 1_000_000;
    /// The most entries of [`costs`](Self::costs).
    pub const MOST_COSTS: usize = 4_000_000;
    /// The most slots, so that they can be held in memory.
    pub const MOST_SLOTS: u64 = 1 << 24;
    /// The most intervals of waits. Where there are more, the longest half stays.
    pub const MOST_WAITS: usize = 1 << 18;

    /// An empty timeline with slots of [`FIRST_SLOT_NS`](Self::FIRST_SLOT_NS).
    pub fn new() -> Self {
        Self {
            slot_ns: Self::FIRST_SLOT_NS,
            length_ns: 0,
            costs: Vec::new(),
            waits: None,
            lives: Vec::new(),
            marks: Vec::new(),
            losses: Vec::new(),
            clock_steps_back: 0,
            revision: 0,
            overflows: 0,
        }
    }

    /// How many slots the run has.
    pub fn slots(&self) -> u64 {
        self.length_ns.div_ceil(self.slot_ns)
    }

    /// Whether the costs of a metric are in slots.
    pub fn is_timed(&self, metric: MetricId) -> bool {
        self.costs.iter().any(|cost| cost.metric == metric) || self.is_of_waits(metric)
    }

    /// Whether a metric is one of those of the waits.
    pub fn is_of_waits(&self, metric: MetricId) -> bool {
        self.waits.as_ref().is_some_and(|waits| [waits.time, waits.count].contains(&metric))
    }

    /// Adds a cost at a time. The run lasts that long at least.
    pub fn add(
        &mut self,
        time_ns: u64,
        metric: MetricId,
        (node, line): (NodeId, Option<LineId>),
        amount: u64,
    ) {
        self.extend_to(time_ns.saturating_add(1));
        let slot = (time_ns.min(self.length_ns - 1) / self.slot_ns) as u32;
        self.costs.push(TimeCost { slot, metric, node, line, amount });
        self.make_room();
    }

    /// Adds a cost in nanoseconds that arose evenly from one time to another.
    pub fn add_span(
        &mut self,
        (start_ns, end_ns): (u64, u64),
        metric: MetricId,
        place: (NodeId, Option<LineId>),
    ) {
        self.extend_to(end_ns);
        let mut from = start_ns;
        while from < end_ns.min(self.length_ns) {
            let next = (from / self.slot_ns + 1).saturating_mul(self.slot_ns);
            let until = next.min(end_ns);
            self.add(from, metric, place, until - from);
            from = until;
        }
    }

    /// Adds a wait. The run lasts as long as it at least.
    pub fn add_wait(&mut self, time: MetricId, count: MetricId, wait: Wait) {
        self.extend_to(wait.end_ns);
        let waits = self.waits.get_or_insert_with(|| Waits { time, count, intervals: Vec::new() });
        waits.intervals.push(wait);
        if waits.intervals.len() > 2 * Self::MOST_WAITS {
            self.fold_waits();
        }
    }

    /// Makes the run last this long, if it was shorter.
    pub fn extend_to(&mut self, length_ns: u64) {
        // The last slot must end before the clock does.
        self.length_ns = self.length_ns.max(length_ns.min(1 << 63));
        while self.slots() > Self::MOST_SLOTS {
            self.coarsen();
        }
    }

    /// Ends the run at this time, or behind everything that the timeline has if that is later.
    pub fn end_at(&mut self, length_ns: u64) {
        let costs = self.costs.iter().map(|cost| u64::from(cost.slot) * self.slot_ns + 1);
        let waits = self.waits.iter().flat_map(|waits| &waits.intervals).map(|wait| wait.end_ns);
        let lives = self.lives.iter().filter_map(|life| life.end_ns.max(life.start_ns));
        let marks = self.marks.iter().map(|mark| mark.end_ns.unwrap_or(mark.time_ns));
        let losses = self.losses.iter().map(|lost| lost.time_ns);
        self.length_ns = costs.chain(waits).chain(lives).chain(marks).chain(losses).max().unwrap_or(0);
        self.extend_to(length_ns);
    }

    /// Joins every slot with the next one.
    pub fn coarsen(&mut self) {
        self.revision += 1;
        self.slot_ns *= 2;
        self.costs.iter_mut().for_each(|cost| cost.slot /= 2);
        self.join();
    }

    /// Sorts everything, and joins entries of the same place.
    pub fn compact(&mut self) {
        self.revision += 1;
        self.overflows = 0;
        self.fold_waits();
        self.join();
        self.lives.sort_unstable();
        self.marks.sort_unstable();
        self.losses.sort_unstable();
    }

    /// Joins entries, and slots where that is not enough, as soon as there are too many.
    fn make_room(&mut self) {
        if self.costs.len() > Self::MOST_COSTS {
            self.revision += 1;
            self.overflows += 1;
            self.join();
            // Long spans that overlap fill the same few entries again and again.
            let most = (Self::MOST_COSTS / 2) >> (self.overflows / 16).min(20);
            while self.costs.len() > most && self.slots() > 1 {
                self.coarsen();
            }
        }
    }

    fn join(&mut self) {
        let place = |cost: &TimeCost| TimeCost { amount: 0, ..*cost };
        self.costs.sort_unstable();
        self.costs.dedup_by(|next, kept| {
            let same = place(next) == place(kept);
            if same {
                kept.amount = kept.amount.saturating_add(next.amount);
            }
            same
        });
    }

    /// Sorts waits; of very many leaves the longest, and adds the others to the costs.
    fn fold_waits(&mut self) {
        let Some(waits) = &mut self.waits else { return };
        if waits.intervals.len() > Self::MOST_WAITS {
            let length = |wait: &Wait| wait.end_ns.saturating_sub(wait.start_ns);
            waits.intervals.sort_unstable_by_key(|wait| (std::cmp::Reverse(length(wait)), *wait));
            let shorter = waits.intervals.split_off(Self::MOST_WAITS / 2);
            let (time, count) = (waits.time, waits.count);
            self.revision += 1;
            for wait in shorter.into_iter().filter(|wait| !wait.preempted) {
                self.add_to_slots(time, count, wait);
            }
        }
        if let Some(waits) = &mut self.waits {
            waits.intervals.sort_unstable();
        }
    }

    fn add_to_slots(&mut self, time: MetricId, count: MetricId, wait: Wait) {
        let Wait { start_ns, end_ns, node, .. } = wait;
        self.add(start_ns.min(self.length_ns.saturating_sub(1)), count, (node, None), 1);
        self.add_span((start_ns, end_ns), time, (node, None));
    }
}

impl Default for Timeline {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_no_earlier_than_what_arose_last() {
        let mut timeline = Timeline::new();
        timeline.add(5_200_000, MetricId::new(0), (NodeId::new(0), None), 1);
        timeline.extend_to(20_000_000);
        timeline.end_at(9_000_000);
        assert_eq!((timeline.length_ns, timeline.slots()), (9_000_000, 9));
        timeline.end_at(1_000_000);
        assert_eq!((timeline.length_ns, timeline.slots()), (5_000_001, 6), "the slot of the cost");
        timeline.losses.push(LostSamples { time_ns: 7_000_000, samples: 1 });
        timeline.end_at(1_000_000);
        assert_eq!(timeline.length_ns, 7_000_000);
    }
}
