//! Timelines that go from one profile to another, or become shorter.

use std::ops::Range;

use crate::{LineId, Mark, MetricId, NodeId, Profile, ThreadId, TimeCost, Timeline, Wait, Waits, Waking};

impl Profile {
    /// Takes the timeline of `from`. `metrics` gives its metrics as they are here, `place` where the costs of a node and
    /// line went, and `root` where the root of a thread went; what went nowhere is left out.
    pub fn take_timeline_of(
        &mut self,
        from: &Profile,
        metrics: &[MetricId],
        mut place: impl FnMut(NodeId, Option<LineId>) -> Option<(NodeId, Option<LineId>)>,
        root: impl Fn(NodeId) -> Option<NodeId>,
    ) {
        let Some(timeline) = &from.timeline else { return };
        let roots = self.threads_by_root();
        let thread = |thread: ThreadId| roots.get(&root(from.threads[thread.index()].root)?).copied();
        let costs = timeline.costs.iter().filter_map(|cost| {
            let (node, line) = place(cost.node, cost.line)?;
            Some(TimeCost { node, line, metric: metrics[cost.metric.index()], ..*cost })
        });
        let costs = costs.collect();
        let waits = timeline.waits.as_ref().map(|waits| Waits {
            time: metrics[waits.time.index()],
            count: metrics[waits.count.index()],
            intervals: waits
                .intervals
                .iter()
                .filter_map(|wait| {
                    let waking = wait.waking.map(|waking| Waking {
                        waker: waking.waker.and_then(|waker| Some(place(waker, None)?.0)),
                        ..waking
                    });
                    Some(Wait { node: place(wait.node, None)?.0, waking, ..*wait })
                })
                .collect(),
        });
        let lives = timeline.lives.iter();
        let lives =
            lives.filter_map(|life| Some(crate::Life { thread: thread(life.thread)?, ..*life })).collect();
        let marks = timeline.marks.iter().filter_map(|mark| {
            let name = self.strings.intern(&from.strings[mark.name]);
            Some(Mark { thread: thread(mark.thread)?, name, ..*mark })
        });
        let marks = marks.collect();
        let mut moved = Timeline { costs, waits, lives, marks, ..timeline.without_content() };
        moved.losses.clone_from(&timeline.losses);
        moved.compact();
        self.timeline = Some(moved);
    }
}

impl Timeline {
    /// The times of some slots.
    pub fn times(&self, slots: &Range<u32>) -> Range<u64> {
        let start = |slot: u32| (u64::from(slot) * self.slot_ns).min(self.length_ns);
        start(slots.start)..start(slots.end)
    }

    /// The same slots and length, with nothing in them.
    fn without_content(&self) -> Self {
        Self {
            slot_ns: self.slot_ns,
            length_ns: self.length_ns,
            clock_steps_back: self.clock_steps_back,
            ..Self::new()
        }
    }

    /// The part of it in some slots, whose times are `times`, with nodes as `nodes` says.
    pub(crate) fn cut(&self, slots: &[Range<u32>], times: &[Range<u64>], nodes: &[Option<NodeId>]) -> Self {
        let costs = self.costs.iter().filter(|cost| slots.iter().any(|slots| slots.contains(&cost.slot)));
        let costs = costs.filter_map(|cost| Some(TimeCost { node: nodes[cost.node.index()]?, ..*cost }));
        let costs = costs.collect();
        let cut = |wait: &Wait, times: &Range<u64>| {
            let (start_ns, end_ns) = (wait.start_ns.max(times.start), wait.end_ns.min(times.end));
            let node = nodes[wait.node.index()]?;
            let waking = wait.waking.map(|waking| Waking {
                waker: waking.waker.and_then(|waker| nodes[waker.index()]),
                ..waking
            });
            (start_ns < end_ns).then_some(Wait { start_ns, end_ns, node, waking, ..*wait })
        };
        let is_in = |time: u64| times.iter().any(|times| times.contains(&time));
        let overlaps =
            |start: u64, end: u64| times.iter().any(|times| start < times.end && end > times.start);
        let waits = self.waits.as_ref().map(|waits| Waits {
            intervals: waits
                .intervals
                .iter()
                .flat_map(|wait| times.iter().filter_map(|times| cut(wait, times)))
                .collect(),
            ..*waits
        });
        let lives = self.lives.iter();
        let lives =
            lives.filter(|life| overlaps(life.start_ns.unwrap_or(0), life.end_ns.unwrap_or(u64::MAX)));
        let marks = self.marks.iter();
        let marks = marks
            .filter(|mark| is_in(mark.time_ns) || mark.end_ns.is_some_and(|end| overlaps(mark.time_ns, end)));
        let mut part = Self {
            costs,
            waits,
            lives: lives.copied().collect(),
            marks: marks.copied().collect(),
            losses: self.losses.iter().filter(|lost| is_in(lost.time_ns)).copied().collect(),
            ..self.without_content()
        };
        part.compact();
        part
    }
}
