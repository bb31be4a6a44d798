//! Series over time.

use crate::{MetricId, NodeId, StringId, ThreadId};

/// A point of a series over time, such as a memory plot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// When, in nanoseconds since the start of the run.
    pub time_ns: u64,
    /// The thread that took it.
    pub thread: ThreadId,
    /// The node that was running; the root of the thread where there was none.
    pub node: NodeId,
    /// The program's label for it, or the empty string.
    pub description: StringId,
    /// The values at that time, in metrics that are levels; see
    /// [`Metric::is_level`](crate::Metric::is_level).
    pub values: Vec<(MetricId, u64)>,
}
