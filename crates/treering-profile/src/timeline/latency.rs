//! The wall time that costs are responsible for.

use std::collections::HashMap;

use crate::{LineCost, LineId, Metric, MetricId, NodeId, Profile, Timeline, Unit};

/// How long the pieces of the run are in which threads are counted, at least: some ten samples of the usual frequency, so
/// that the number of threads is not that of the samples that happen to fall into a piece.
const PIECE_NS: u64 = 10_000_000;

impl Profile {
    /// Adds the metric `latency`: of each cost in nanoseconds of processor time the share of one thread among those that
    /// ran at that time. While one thread runs, its cost counts whole; while four run, each counts a quarter. The sum is
    /// how long anything ran.
    ///
    /// How many threads ran follows from the costs themselves: those of all threads in a piece of the run of 10 ms or one
    /// slot, over its length, and never less than one. Nothing where `metric` is no time or when it arose is not known.
    pub fn add_latency(&mut self, metric: MetricId) -> Option<MetricId> {
        let is_time = self.metrics[metric.index()].unit == Unit::Nanoseconds;
        let timeline = self.timeline.as_ref().filter(|_| is_time && self.has_time(metric))?;
        let (costs, lines) = latencies(self, timeline, metric);
        let of = &self.metrics[metric.index()];
        let samples = of.counted_by();
        let latency = match samples {
            Some(samples) => Metric::sampled("latency", Unit::Nanoseconds, samples, None),
            None => Metric::exact("latency", Unit::Nanoseconds),
        };
        let latency = self.add_metric(latency);
        self.tree.set_self_costs(latency, costs);
        let lines = lines.into_iter().filter(|(_, cost)| *cost > 0);
        self.line_costs.extend(lines.map(|((node, line), cost)| LineCost {
            node,
            line,
            metric: latency,
            cost,
        }));
        self.compact_line_costs();
        Some(latency)
    }
}

type OfLines = HashMap<(NodeId, LineId), u64>;

/// The wall time of each node, and of the lines of each.
fn latencies(profile: &Profile, timeline: &Timeline, metric: MetricId) -> (Vec<u64>, OfLines) {
    let slots = (PIECE_NS / timeline.slot_ns).max(1);
    let piece_ns = (slots * timeline.slot_ns) as f64;
    let piece = |slot: u32| u64::from(slot) / slots;
    let mut running: HashMap<u64, u64> = HashMap::new();
    timeline
        .each_cost(profile, metric, |cost, amount| *running.entry(piece(cost.slot)).or_default() += amount);
    let mut costs = vec![0.0; profile.tree.len()];
    let mut lines: HashMap<(NodeId, LineId), f64> = HashMap::new();
    timeline.each_cost(profile, metric, |cost, amount| {
        let threads = (running[&piece(cost.slot)] as f64 / piece_ns).max(1.0);
        let latency = amount as f64 / threads;
        costs[cost.node.index()] += latency;
        if let Some(line) = cost.line {
            *lines.entry((cost.node, line)).or_default() += latency;
        }
    });
    let whole = |cost: f64| cost.round() as u64;
    (
        costs.into_iter().map(whole).collect(),
        lines.into_iter().map(|(place, cost)| (place, whole(cost))).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Frame, Function, RecursionRule};

    const MS: u64 = 1_000_000;

    #[test]
    fn parallel_costs_share_the_wall_time() {
        let mut profile = Profile::new(RecursionRule::Full);
        let time = profile.add_metric(Metric::exact("time", Unit::Nanoseconds));
        let thread = profile.add_single_thread("main");
        let process = profile.threads[thread.index()].process;
        let helper = profile.add_thread(process, 2, "helper");
        let name = profile.strings.intern("work");
        let work = profile.functions.intern(Function::named(name));
        // 100 ms alone, 100 ms with a helper, 50 ms of nothing, 50 ms of the helper alone.
        let main = profile.add_stack(thread, &[Frame::new(work)], None, &[(time, 200 * MS)]);
        let other = profile.add_stack(helper, &[Frame::new(work)], None, &[(time, 150 * MS)]);
        let mut timeline = Timeline::new();
        timeline.add_span((0, 200 * MS), time, (main, None));
        timeline.add_span((100 * MS, 200 * MS), time, (other, None));
        timeline.add_span((250 * MS, 300 * MS), time, (other, None));
        timeline.compact();
        profile.timeline = Some(timeline);
        let latency = profile.add_latency(time).expect("times are known");
        assert_eq!(profile.tree.self_cost(latency, main), 150 * MS);
        assert_eq!(profile.tree.self_cost(latency, other), 100 * MS);
        assert_eq!(profile.run_cost(latency), 250 * MS, "as long as anything ran");
    }

    #[test]
    fn without_times_there_is_no_latency() {
        let mut profile = Profile::new(RecursionRule::Full);
        let time = profile.add_metric(Metric::exact("time", Unit::Nanoseconds));
        assert_eq!(profile.add_latency(time), None);
    }
}
