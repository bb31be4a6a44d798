//! Puts together when costs arose.

use treering_profile::{
    Life, LostSamples, Mark, MetricId, Profile, Thread, ThreadId, TimeCost, Timeline, Wait, Waits,
};

use super::detail::thread_places;
use super::{append, ensure};
use crate::trg::Damage;
use crate::trg::content::{Interval, TimelineHead, WaitEnd};

/// The contents of frames 29 to 34 and 36 so far.
#[derive(Default)]
pub(crate) struct Times {
    head: Option<TimelineHead>,
    costs: Vec<TimeCost>,
    waits: Vec<Wait>,
    ends: Vec<WaitEnd>,
    lives: Vec<Life>,
    marks: Vec<Mark>,
    losses: Vec<LostSamples>,
}

/// How long the tables are that times refer to.
#[derive(Clone, Copy)]
pub(crate) struct TimeLengths {
    pub(crate) nodes: usize,
    pub(crate) lines: usize,
    pub(crate) metrics: usize,
    pub(crate) threads: usize,
    pub(crate) strings: usize,
}

impl Times {
    pub(crate) fn head(&mut self, heads: Vec<TimelineHead>, known: TimeLengths) -> Result<(), Damage> {
        let Some(&head) = heads.last() else { return Ok(()) };
        let few = head.slot_ns > 0 && head.length_ns.div_ceil(head.slot_ns) <= Timeline::MOST_SLOTS;
        ensure(few && head.slot_ns <= 1 << 62, "it has too many slots")?;
        let metric = |metric: Option<MetricId>| metric.is_none_or(|metric| metric.index() < known.metrics);
        ensure(metric(head.wait_time) && metric(head.wait_count), "the metrics of waits are missing")?;
        ensure(head.wait_time.is_some() == head.wait_count.is_some(), "a metric of waits is missing")?;
        if self.head.is_some_and(|before| before.revision != head.revision) {
            *self = Self::default();
        }
        self.head = Some(head);
        Ok(())
    }

    fn stated(&self) -> Result<TimelineHead, Damage> {
        self.head.ok_or(Damage::Content("the length of slots is missing"))
    }

    pub(crate) fn costs(&mut self, costs: Vec<TimeCost>, known: TimeLengths) -> Result<(), Damage> {
        let head = self.stated()?;
        let slots = head.length_ns.div_ceil(head.slot_ns);
        let fits = |cost: &TimeCost| {
            u64::from(cost.slot) < slots
                && cost.metric.index() < known.metrics
                && cost.node.index() < known.nodes
                && cost.line.is_none_or(|line| line.index() < known.lines)
        };
        ensure(costs.iter().all(fits), "a cost of a slot refers to something missing")?;
        append(&mut self.costs, costs);
        Ok(())
    }

    pub(crate) fn waits(&mut self, waits: Vec<Interval>, known: TimeLengths) -> Result<(), Damage> {
        let head = self.stated()?;
        ensure(head.wait_time.is_some(), "the metrics of waits are missing")?;
        let fits = |wait: &Interval| {
            wait.node.index() < known.nodes && wait.start_ns <= wait.end_ns && wait.end_ns <= head.length_ns
        };
        ensure(waits.iter().all(fits), "a wait refers to something missing")?;
        self.waits.extend(waits.into_iter().map(Interval::wait));
        Ok(())
    }

    pub(crate) fn ends(&mut self, ends: Vec<WaitEnd>, known: TimeLengths) -> Result<(), Damage> {
        let fits = |end: &WaitEnd| {
            usize::try_from(end.wait).is_ok_and(|wait| wait < self.waits.len())
                && end.waker.is_none_or(|waker| waker.index() < known.nodes)
        };
        ensure(ends.iter().all(fits), "the end of a wait refers to something missing")?;
        append(&mut self.ends, ends);
        Ok(())
    }

    pub(crate) fn lives(&mut self, lives: Vec<Life>, known: TimeLengths) -> Result<(), Damage> {
        let fits = |life: &Life| life.thread.index() < known.threads;
        ensure(lives.iter().all(fits), "the thread of a life is missing")?;
        append(&mut self.lives, lives);
        Ok(())
    }

    pub(crate) fn marks(&mut self, marks: Vec<Mark>, known: TimeLengths) -> Result<(), Damage> {
        let fits = |mark: &Mark| mark.thread.index() < known.threads && mark.name.index() < known.strings;
        ensure(marks.iter().all(fits), "a mark refers to something missing")?;
        append(&mut self.marks, marks);
        Ok(())
    }

    pub(crate) fn losses(&mut self, losses: Vec<LostSamples>) -> Result<(), Damage> {
        append(&mut self.losses, losses);
        Ok(())
    }

    /// Hands everything over, but for what belongs to threads whose root was not read.
    pub(crate) fn finish(mut self, profile: &mut Profile, threads: &[Thread]) {
        let Some(head) = self.head else { return };
        let places = thread_places(profile.tree.len(), threads);
        let place = |thread: &mut ThreadId| {
            let place = places[thread.index()];
            *thread = place.map_or(*thread, ThreadId::from_usize);
            place.is_some()
        };
        self.lives.retain_mut(|life| place(&mut life.thread));
        self.marks.retain_mut(|mark| place(&mut mark.thread));
        for end in self.ends {
            self.waits[end.wait as usize].waking = Some(end.waking());
        }
        let mut timeline = Timeline::new();
        (timeline.slot_ns, timeline.length_ns) = (head.slot_ns, head.length_ns);
        timeline.clock_steps_back = head.clock_steps_back;
        timeline.costs = self.costs;
        timeline.waits = head.wait_time.zip(head.wait_count).map(|(time, count)| Waits {
            time,
            count,
            intervals: self.waits,
        });
        (timeline.lives, timeline.marks, timeline.losses) = (self.lives, self.marks, self.losses);
        timeline.compact();
        timeline.revision = head.revision;
        profile.timeline = Some(timeline);
    }
}
