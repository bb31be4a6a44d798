//! The costs of a metric in the order of time, for formats that have a sample for each.

use treering_profile::{MetricId, NodeId, Profile};

/// A cost of a node, and the slot of time in which it arose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimedCost {
    pub(crate) slot: u32,
    pub(crate) node: NodeId,
    pub(crate) cost: u64,
}

/// The costs of a metric by thread, each in the order of time.
pub(crate) struct TimedCosts {
    /// The length of a slot in nanoseconds.
    pub(crate) slot_ns: u64,
    by_thread: Vec<Vec<TimedCost>>,
}

impl TimedCosts {
    /// Nothing unless it is known of all costs when they arose.
    pub(crate) fn of(profile: &Profile, metric: MetricId) -> Option<Self> {
        let timeline = profile.timeline.as_ref().filter(|_| profile.has_time(metric))?;
        let threads = profile.node_threads();
        let mut by_thread = vec![Vec::new(); profile.threads.len()];
        let mut sum = 0_u64;
        timeline.each_cost(profile, metric, |entry, cost| {
            if cost > 0 {
                sum = sum.saturating_add(cost);
                let (slot, node) = (entry.slot, entry.node);
                by_thread[threads[node.index()].index()].push(TimedCost { slot, node, cost });
            }
        });
        (sum == profile.run_cost(metric)).then_some(Self { slot_ns: timeline.slot_ns, by_thread })
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &TimedCost> {
        self.by_thread.iter().flatten()
    }

    pub(crate) fn of_thread(&self, thread: usize) -> &[TimedCost] {
        &self.by_thread[thread]
    }

    /// When a slot begins, in nanoseconds since the start of the run.
    pub(crate) fn start_ns(&self, slot: u32) -> u64 {
        u64::from(slot).saturating_mul(self.slot_ns)
    }
}
