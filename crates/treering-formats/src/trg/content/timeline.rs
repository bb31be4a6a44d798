//! The facts about a timeline as a whole.

use std::marker::PhantomData;

use serde_json::Value;
use treering_profile::{MetricId, Timeline};

use super::column::{Column, Plain};
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
