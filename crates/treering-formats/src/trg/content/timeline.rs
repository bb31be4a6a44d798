//! The facts about a timeline as a whole.

use std::marker::PhantomData;

use serde_json::Value;
use treering_profile::{MetricId, NodeId, Timeline, Wait, WakerKind, Waking};

use super::column::{Bytes, Column, Delta, Plain};
use super::entry::{self, Entry, entry};
use crate::trg::Damage;
use crate::trg::varint::{CUT_SHORT, Decoder, Encoder};

/// A timeline without its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimelineHead {
    pub(crate) slot_ns: u64,
    pub(crate) length_ns: u64,
    pub(crate) clock_steps_back: u64,
    /// How often earlier frames became void, since entries were joined.
    pub(crate) revision: u64,
    pub(crate) wait_time: Option<MetricId>,
    pub(crate) wait_count: Option<MetricId>,
}

entry!(TimelineHead: object, columns {
    slot_ns: Plain, length_ns: Plain, clock_steps_back: Plain, revision: Plain, wait_time: Plain, wait_count: Plain,
});

impl TimelineHead {
    pub(crate) fn of(timeline: &Timeline) -> Self {
        let &Timeline { slot_ns, length_ns, clock_steps_back, revision, ref waits, .. } = timeline;
        let waits = waits.as_ref();
        let (wait_time, wait_count) = (waits.map(|waits| waits.time), waits.map(|waits| waits.count));
        Self { slot_ns, length_ns, clock_steps_back, revision, wait_time, wait_count }
    }
}

/// A wait without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) node: NodeId,
    pub(crate) preempted: bool,
}

entry!(Interval: object, columns { start_ns: Delta, end_ns: Delta, node: Delta, preempted: Bytes });

impl Interval {
    pub(crate) fn of(wait: &Wait) -> Self {
        let &Wait { start_ns, end_ns, node, preempted, .. } = wait;
        Self { start_ns, end_ns, node, preempted }
    }

    pub(crate) fn wait(self) -> Wait {
        let Self { start_ns, end_ns, node, preempted } = self;
        Wait { start_ns, end_ns, node, preempted, waking: None }
    }
}

/// The waker that ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitEnd {
    /// The index of the wait among those of the timeline.
    pub(crate) wait: u64,
    pub(crate) woken_ns: u64,
    pub(crate) kind: WakerKind,
    pub(crate) waker: Option<NodeId>,
}

entry!(WaitEnd: object, columns { wait: Delta, woken_ns: Delta, kind: Bytes, waker: Delta });

impl WaitEnd {
    /// The ends of the waits from `first` on.
    pub(crate) fn of(waits: &[Wait], first: usize) -> Vec<Self> {
        let ends = waits.iter().enumerate().skip(first).filter_map(|(wait, found)| {
            let Waking { woken_ns, kind, waker } = found.waking?;
            Some(Self { wait: wait as u64, woken_ns, kind, waker })
        });
        ends.collect()
    }

    pub(crate) fn waking(self) -> Waking {
        Waking { woken_ns: self.woken_ns, kind: self.kind, waker: self.waker }
    }
}
