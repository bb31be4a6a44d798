//! The costs of a metric in the order of time, for formats that have a sample for each.

use treering_profile::{MetricId, NodeId, Profile, Unit};

use crate::Dropped;

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
    /// The sum of all costs without a time.
    untimed: u64,
}

impl TimedCosts {
    /// Nothing where it is not known when costs arose. Those without a time, such as those of threads without a sample, are
    /// in the last slot.
    pub(crate) fn of(profile: &Profile, metric: MetricId) -> Option<Self> {
        let timeline = profile.timeline.as_ref().filter(|_| profile.has_time(metric))?;
        let threads = profile.node_threads();
        let mut by_thread = vec![Vec::new(); profile.threads.len()];
        let mut timed = vec![0_u64; profile.tree.len()];
        timeline.each_cost(profile, metric, |entry, cost| {
            if cost > 0 {
                let (slot, node) = (entry.slot, entry.node);
                timed[node.index()] = timed[node.index()].saturating_add(cost);
                by_thread[threads[node.index()].index()].push(TimedCost { slot, node, cost });
            }
        });
        let mut untimed = 0_u64;
        let slot = timeline.slots().saturating_sub(1) as u32;
        for (node, timed) in profile.tree.nodes().zip(timed) {
            let cost = profile.tree.self_cost(metric, node).checked_sub(timed)?;
            if cost > 0 {
                untimed = untimed.saturating_add(cost);
                by_thread[threads[node.index()].index()].push(TimedCost { slot, node, cost });
            }
        }
        Some(Self { slot_ns: timeline.slot_ns, by_thread, untimed })
    }

    /// Says of which costs it is not known when they arose.
    pub(crate) fn note(&self, profile: &Profile, metric: MetricId, dropped: &mut Dropped) {
        if self.untimed > 0 {
            let metric = &profile.metrics[metric.index()];
            let amount = match metric.unit {
                Unit::Nanoseconds => format!("{:.3} ms", self.untimed as f64 / 1e6),
                _ => self.untimed.to_string(),
            };
            dropped.note(format!(
                "when {amount} of {} arose, which is not known where there is no sample: it is at the end",
                metric.name
            ));
        }
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
