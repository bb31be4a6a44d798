//! The wall time that costs are responsible for.

use std::collections::{BTreeMap, HashMap};

use crate::{LineCost, LineId, Metric, MetricId, NodeId, Profile, ThreadId, Timeline, Unit};

impl Profile {
    /// Adds the metric `latency`: of each cost in nanoseconds of processor time the share of one thread among those that
    /// ran at that time. While one thread runs, its cost counts whole; while four run, each counts a quarter. The sum is
    /// how long anything ran.
    ///
    /// How many threads ran follows from the costs of each, slot by slot. Nothing where `metric` is no time or when it arose is
    /// not known.
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
    let thread_of = profile.node_threads();
    let shares = shares(profile, timeline, metric, &thread_of);
    let mut costs = vec![0.0; profile.tree.len()];
    let mut lines: HashMap<(NodeId, LineId), f64> = HashMap::new();
    timeline.each_cost(profile, metric, |cost, amount| {
        let place = (thread_of[cost.node.index()].index(), cost.slot);
        let latency = amount as f64 * shares.get(&place).copied().unwrap_or(1.0);
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

/// A thread, by its number, and a slot.
type Place = (usize, u32);

/// The share of each thread's cost in a slot that counts: one over the number of threads that ran meanwhile.
fn shares(
    profile: &Profile,
    timeline: &Timeline,
    metric: MetricId,
    thread_of: &[ThreadId],
) -> HashMap<Place, f64> {
    let mut used: BTreeMap<Place, u64> = BTreeMap::new();
    timeline.each_cost(profile, metric, |cost, amount| {
        *used.entry((thread_of[cost.node.index()].index(), cost.slot)).or_default() += amount;
    });
    let is_sampled = profile.metrics[metric.index()].counted_by().is_some();
    let mut running = vec![0.0; used.keys().map(|(_, slot)| *slot as usize + 1).max().unwrap_or(0)];
    let mut stretches = Vec::new();
    let mut previous = None;
    for (&place @ (thread, slot), &amount) in used.iter().filter(|(_, amount)| **amount > 0) {
        let before = previous.replace(place).filter(|&(of, _)| of == thread).map(|(_, slot)| slot);
        let stretch = Stretch::new(before, slot, amount as f64 / timeline.slot_ns as f64, is_sampled);
        stretch.parts().for_each(|(slot, part)| running[slot] += part);
        stretches.push((place, stretch));
    }
    stretches.into_iter().map(|(place, stretch)| (place, stretch.share(&running))).collect()
}

/// The time that a thread ran for its cost in a slot: some slots and a part of another, up to the end of that slot.
///
/// It does not go back beyond the slot that the thread had a cost in before. So a thread never counts as more than one,
/// however unequal the intervals between its samples are.
struct Stretch {
    end: u32,
    slots: f64,
}

impl Stretch {
    /// The stretch of a cost of so many slots in slot `end`.
    fn new(before: Option<u32>, end: u32, cost: f64, is_sampled: bool) -> Self {
        let room = f64::from(before.map_or(end + 1, |before| end - before));
        // Random intervals are up to twice as long as what their samples stand for.
        let is_whole = is_sampled && before.is_some() && 2.0 * cost >= room;
        Self { end, slots: if is_whole { room } else { cost.min(room) } }
    }

    /// Its slots, each with the part of it in which the thread ran.
    fn parts(&self) -> impl Iterator<Item = (usize, f64)> {
        let (end, slots) = (self.end as usize, self.slots);
        (0..slots.ceil() as usize).map(move |back| (end - back, (slots - back as f64).min(1.0)))
    }

    /// The mean of one over the number of threads that ran in its slots.
    fn share(&self, running: &[f64]) -> f64 {
        self.parts().map(|(slot, part)| part / running[slot].max(1.0)).sum::<f64>() / self.slots
    }
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

    /// The latency of all threads that ran in the spans of milliseconds, sampled at intervals between half and one and a half
    /// of the mean.
    fn sampled_latency(threads: &[&[(u64, u64)]], mean: u64) -> f64 {
        let mut profile = Profile::new(RecursionRule::Full);
        let samples = profile.add_metric(Metric::exact("samples", Unit::Count));
        let time = profile.add_metric(Metric::sampled("time", Unit::Nanoseconds, samples, Some(mean)));
        let first = profile.add_single_thread("main");
        let process = profile.threads[first.index()].process;
        let name = profile.strings.intern("work");
        let work = profile.functions.intern(Function::named(name));
        let mut timeline = Timeline::new();
        // Numbers as random as they need be (Knuth's MMIX generator).
        let mut state = 1_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            mean / 2 + (state >> 33) * mean / (1 << 31)
        };
        for (at, spans) in threads.iter().enumerate() {
            let thread = profile.add_thread(process, at as u32 + 2, "worker");
            let all: u64 = spans.iter().map(|(from, to)| (to - from) * MS).sum();
            let mut number = 0;
            let (mut next, mut ran) = (draw(), 0);
            let node = profile.add_stack(thread, &[Frame::new(work)], None, &[(time, all)]);
            for &(from, to) in *spans {
                while next < ran + (to - from) * MS {
                    timeline.add(from * MS + next - ran, samples, (node, None), 1);
                    number += 1;
                    next += draw();
                }
                ran += (to - from) * MS;
            }
            profile.tree.add_self_cost(samples, node, number);
        }
        timeline.compact();
        profile.timeline = Some(timeline);
        let latency = profile.add_latency(time).expect("times are known");
        profile.run_cost(latency) as f64 / MS as f64
    }

    /// With pieces of 10 ms, one thread had 913 of 1000 ms at 1 ms between samples, and 510 at 20 ms.
    #[test]
    fn the_latency_of_one_thread_is_its_time_at_any_rate() {
        for mean in [MS / 10, MS, 4 * MS, 10 * MS, 20 * MS, 50 * MS] {
            for spans in [&[(0, 1000)][..], &[(0, 100), (300, 500), (1500, 2200)]] {
                let latency = sampled_latency(&[spans], mean);
                assert!((latency - 1000.0).abs() < 0.1, "{mean} {spans:?}: {latency}");
            }
        }
    }

    #[test]
    fn threads_side_by_side_share_their_time_at_any_rate() {
        for mean in [MS / 10, MS, 4 * MS, 10 * MS, 20 * MS] {
            let edges = 3.0 * mean as f64 / MS as f64;
            let check = |threads: &[&[(u64, u64)]], expected: f64| {
                let latency = sampled_latency(threads, mean);
                assert!((latency - expected).abs() < 10.0 + edges, "{mean} {threads:?}: {latency}");
            };
            check(&[&[(0, 1000)], &[(0, 1000)]], 1000.0);
            check(&[&[(0, 1000)], &[(0, 1000)], &[(0, 1000)], &[(0, 1000)]], 1000.0);
            // One after the other.
            check(&[&[(0, 500)], &[(500, 1000)]], 1000.0);
            // Alone, then both.
            check(&[&[(0, 1000)], &[(600, 1000)]], 1000.0);
        }
    }

    #[test]
    fn without_times_there_is_no_latency() {
        let mut profile = Profile::new(RecursionRule::Full);
        let time = profile.add_metric(Metric::exact("time", Unit::Nanoseconds));
        assert_eq!(profile.add_latency(time), None);
    }
}
