//! Costs of samples over time.

use std::ops::Range;

use crate::{MetricId, Profile, TimeCost, Timeline};

/// Gives each entry of a timeline, in order, the parts of other costs that its samples stand for.
///
/// Of a node whose `s` samples stand for a cost `c` the first `n` have `c * n / s`, rounded down. So the costs of all
/// entries add up to `c`, however they are divided into parts.
pub(crate) struct Apportioned<'p> {
    profile: &'p Profile,
    /// By metric that counts samples: the metrics that are apportioned by it.
    by: Vec<Vec<MetricId>>,
    /// By metric and node: how many samples came so far.
    seen: Vec<Vec<u64>>,
}

impl<'p> Apportioned<'p> {
    pub(crate) fn of(profile: &'p Profile, timeline: &Timeline) -> Self {
        let mut timed = vec![false; profile.metrics.len()];
        timeline.costs.iter().for_each(|cost| timed[cost.metric.index()] = true);
        let mut by = vec![Vec::new(); profile.metrics.len()];
        for (id, metric) in profile.metrics() {
            let Some(samples) = metric.counted_by().filter(|samples| timed[samples.index()]) else {
                continue;
            };
            let weights = metric.weights().map(|weights| [weights.squares, weights.unseen]);
            let weights = weights.into_iter().flatten().map(MetricId::new);
            let metrics = [id].into_iter().chain(weights).filter(|id| !timed[id.index()]);
            by[samples.index()].extend(metrics);
        }
        let nodes = |by: &Vec<MetricId>| if by.is_empty() { Vec::new() } else { vec![0; profile.tree.len()] };
        let seen = by.iter().map(nodes).collect();
        Self { profile, by, seen }
    }

    /// Takes the next entry; calls `add` with its own cost, and with the parts of others.
    pub(crate) fn next(&mut self, entry: &TimeCost, mut add: impl FnMut(MetricId, u64)) {
        add(entry.metric, entry.amount);
        let by = &self.by[entry.metric.index()];
        if by.is_empty() {
            return;
        }
        let seen = &mut self.seen[entry.metric.index()][entry.node.index()];
        let before = *seen;
        *seen = seen.saturating_add(entry.amount);
        let tree = &self.profile.tree;
        let samples = tree.self_cost(entry.metric, entry.node);
        for &metric in by {
            add(metric, part(tree.self_cost(metric, entry.node), before..*seen, samples));
        }
    }
}

/// The part of a cost of `of` samples that those in `samples` stand for.
fn part(cost: u64, samples: Range<u64>, of: u64) -> u64 {
    let first = |count: u64| (u128::from(cost) * u128::from(count.min(of)) / u128::from(of.max(1))) as u64;
    first(samples.end) - first(samples.start)
}

impl Timeline {
    /// The parts of the costs of a metric in the order of time, each with the entry that it is of: of a metric without entries of its
    /// own, those that its samples stand for. Waits that are intervals are not in it.
    pub fn each_cost(&self, profile: &Profile, metric: MetricId, mut each: impl FnMut(&TimeCost, u64)) {
        let mut apportioned = Apportioned::of(profile, self);
        for cost in &self.costs {
            apportioned.next(cost, |of, amount| {
                if of == metric {
                    each(cost, amount);
                }
            });
        }
    }
}
