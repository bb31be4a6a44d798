//! Parts of a run.

use std::ops::Range;

use crate::timeline::Apportioned;
use crate::{EndedWaits, LineCost, LineId, Losses, MetricId, NodeId, ProcessId, Profile, Timeline, Unit};

/// The reason why there is no profile of a part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPart {
    /// The profile does not know when its costs arose.
    NoTime,
    /// The part begins where the run has ended, or later.
    Outside {
        /// The length of the run, in nanoseconds.
        length_ns: u64,
    },
    /// The part is shorter than what can be told apart.
    TooShort {
        /// The length of a slot, in nanoseconds.
        slot_ns: u64,
    },
    /// No cost arose in the part.
    Empty {
        /// The start and the end of the nearest slot with a cost, in nanoseconds, if there is any.
        nearest: Option<(u64, u64)>,
    },
}

impl std::fmt::Display for NoPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoTime => f.write_str("the profile does not know when its costs arose"),
            Self::Outside { length_ns } => {
                write!(f, "the part is outside of the run, which took {length_ns} ns")
            }
            Self::TooShort { slot_ns } => write!(f, "the part is shorter than a slot of {slot_ns} ns"),
            Self::Empty { .. } => f.write_str("no cost arose in this part of the run"),
        }
    }
}

impl std::error::Error for NoPart {}

impl Profile {
    /// The part of the run in some ranges of time, in nanoseconds since its start. Their ends are rounded to those of
    /// slots, so the costs of consecutive parts add up to those of the whole exactly.
    ///
    /// The part has the same threads and times. What has no time is left out, and a note says so: calls, counts of code,
    /// and costs that are not timed.
    ///
    /// # Errors
    /// When the profile has no [`timeline`](Self::timeline), or nothing of it is in the ranges.
    pub fn part(&self, ranges: &[Range<u64>]) -> Result<Profile, NoPart> {
        let timeline = self.timeline.as_ref().ok_or(NoPart::NoTime)?;
        let slots = slots_of(timeline, ranges)?;
        let costs = PartCosts::of(self, timeline, &slots);
        if costs.columns.iter().flatten().all(|&cost| cost == 0) {
            return Err(NoPart::Empty { nearest: nearest(timeline, slots[0].start) });
        }
        let mut part = self.without_tree();
        part.arcs.clear();
        part.activations = None;
        let nodes = costs.copy(self, &mut part);
        let ended = costs.ended_waits.iter().filter_map(|row| {
            let waker = row.waker.and_then(|waker| nodes[waker.index()]);
            Some(EndedWaits { waiting: nodes[row.waiting.index()]?, waker, ..*row })
        });
        part.ended_waits = ended.collect();
        part.compact_ended_waits();
        let metrics: Vec<_> = self.metrics().map(|(metric, _)| metric).collect();
        part.add_points_of(self, &nodes, &metrics);
        let times: Vec<_> = slots.iter().map(|slots| timeline.times(slots)).collect();
        part.points.retain(|point| times.iter().any(|times| times.contains(&point.time_ns)));
        part.timeline = Some(timeline.cut(&slots, &times, &nodes));
        self.describe_part(&mut part, &times);
        Ok(part)
    }

    /// The ranges of time that a name stands for: from each mark of that name up to its end, or up to the next mark of
    /// its kind in the same process, or up to the end of the process or of the run.
    pub fn phase(&self, name: &str) -> Vec<Range<u64>> {
        let Some(timeline) = &self.timeline else { return Vec::new() };
        let process = |mark: &crate::Mark| self.threads[mark.thread.index()].process;
        let marks = timeline.marks.iter().enumerate();
        let named = marks.filter(|(_, mark)| self.strings[mark.name] == *name);
        let range = |(at, mark): (usize, &crate::Mark)| {
            let mut later = timeline.marks[at + 1..].iter();
            let mut next = || later.find(|next| next.kind == mark.kind && process(next) == process(mark));
            let end = mark.end_ns.or_else(|| next().map(|next| next.time_ns));
            mark.time_ns..end.or_else(|| self.end_of(process(mark))).unwrap_or(timeline.length_ns)
        };
        named.map(range).filter(|range| !range.is_empty()).collect()
    }

    /// When the last thread of a process ended, if all have.
    fn end_of(&self, process: ProcessId) -> Option<u64> {
        let lives = self.timeline.iter().flat_map(|timeline| &timeline.lives);
        let lives = lives.filter(|life| self.threads[life.thread.index()].process == process);
        let ends: Option<Vec<u64>> = lives.map(|life| life.end_ns).collect();
        ends?.into_iter().max()
    }

    /// States the length and the losses of a part, and the parts of the profile that have no time.
    fn describe_part(&self, part: &mut Profile, times: &[Range<u64>]) {
        let length = times.iter().map(|times| times.end - times.start).sum();
        for run in &mut part.runs {
            (run.duration_ns, run.cpu_ns, run.end) = (length, None, None);
        }
        let untimed = self.cost_metrics().filter(|&(id, _)| !self.has_time(id) && self.run_cost(id) > 0);
        let mut missing: Vec<&str> = untimed.map(|(_, metric)| metric.name.as_str()).collect();
        for (id, metric) in self.cost_metrics() {
            let untimed = self.untimed_cost(id);
            if untimed > 0 {
                let amount = match metric.unit {
                    Unit::Nanoseconds => format!("{:.3} ms", untimed as f64 / 1e6),
                    Unit::Bytes | Unit::Count => untimed.to_string(),
                };
                let reason = match metric.sampling {
                    Some(_) => "for which there is no sample",
                    None => "of which it is not known when it arose",
                };
                part.metadata.note(format!("in no part: {amount} of {}, {reason}", metric.name));
            }
        }
        if self.tree.has_calls() || !self.arcs.is_empty() {
            missing.push("calls");
        }
        if part.line_costs.is_empty() && !self.line_costs.is_empty() {
            missing.push("costs of lines");
        }
        if !self.code.is_empty() {
            missing.push("counts of code");
        }
        if !missing.is_empty() {
            part.metadata
                .note(format!("{} left out: they are known of the whole run only", missing.join(", ")));
        }
        let counted = self.metrics().find(|(_, metric)| metric.sampling.is_some());
        let (whole, share) = match counted.and_then(|(_, metric)| metric.counted_by()) {
            Some(samples) => (self.run_cost(samples), part.run_cost(samples)),
            None => (1, 1),
        };
        let share = share as f64 / whole.max(1) as f64;
        let losses = self.metadata.losses;
        part.metadata.losses = losses.scaled(share);
        if let Some(timeline) = part.timeline.as_ref().filter(|_| self.knows_losses()) {
            part.metadata.losses.lost_samples = timeline.losses.iter().map(|lost| lost.samples).sum();
        }
        let has_short_waits = self.timeline.as_ref().is_some_and(|timeline| {
            let count = timeline.waits.as_ref().map(|waits| waits.count);
            timeline.costs.iter().any(|cost| Some(cost.metric) == count)
        });
        if !self.ended_waits.is_empty() && has_short_waits {
            part.metadata.note("who ended the shortest waits is known of the whole run only");
        }
        if losses.any() {
            part.metadata.note("losses of this part are estimated from those of the whole run");
        }
        for metric in &mut part.metrics {
            if let Some(weights) = metric.weights_mut() {
                weights.of_known_cost = false;
                weights.hidden = (weights.hidden as f64 * share.sqrt()).round() as u64;
            }
        }
    }

    /// The cost that is in no part of the run: what a sampled metric has where no sample was counted, such as that of
    /// threads without any, and what is in no slot.
    fn untimed_cost(&self, metric: MetricId) -> u64 {
        if let Some(timeline) = self.timeline.as_ref().filter(|timeline| timeline.is_timed(metric)) {
            if timeline.is_of_waits(metric) {
                return 0;
            }
            let timed = timeline.costs.iter().filter(|cost| cost.metric == metric).map(|cost| cost.amount);
            return self.run_cost(metric).saturating_sub(timed.fold(0, u64::saturating_add));
        }
        let counted = self.metrics[metric.index()].counted_by();
        let Some(samples) = counted.filter(|_| self.has_time(metric)) else { return 0 };
        let unseen = self.tree.nodes().filter(|&node| self.tree.self_cost(samples, node) == 0);
        unseen.map(|node| self.tree.self_cost(metric, node)).sum()
    }

    fn knows_losses(&self) -> bool {
        let timeline = self.timeline.iter().flat_map(|timeline| &timeline.losses);
        timeline.map(|lost| lost.samples).sum::<u64>() == self.metadata.losses.lost_samples
    }

    /// Whether it is known when the costs of a metric arose, or when its samples were taken.
    pub fn has_time(&self, metric: MetricId) -> bool {
        let Some(timeline) = &self.timeline else { return false };
        let counted = self.metrics[metric.index()].counted_by();
        timeline.is_timed(metric) || counted.is_some_and(|samples| timeline.is_timed(samples))
    }
}

/// The slots of ranges of time, in order and apart.
fn slots_of(timeline: &Timeline, ranges: &[Range<u64>]) -> Result<Vec<Range<u32>>, NoPart> {
    let mut inside = ranges.iter().filter(|range| range.start < timeline.length_ns).peekable();
    if inside.peek().is_none() {
        return Err(NoPart::Outside { length_ns: timeline.length_ns });
    }
    let edge = |time: u64| match time {
        time if time >= timeline.length_ns => timeline.slots(),
        time => time.saturating_add(timeline.slot_ns / 2) / timeline.slot_ns,
    };
    let mut slots: Vec<Range<u32>> =
        inside.map(|range| edge(range.start) as u32..edge(range.end) as u32).collect();
    slots.retain(|slots| !slots.is_empty());
    slots.sort_unstable_by_key(|slots| (slots.start, slots.end));
    slots.dedup_by(|next, kept| {
        let touches = next.start <= kept.end;
        if touches {
            kept.end = kept.end.max(next.end);
        }
        touches
    });
    match slots.is_empty() {
        true => Err(NoPart::TooShort { slot_ns: timeline.slot_ns }),
        false => Ok(slots),
    }
}

/// The slot with a cost that is nearest to another one: its start and its end.
fn nearest(timeline: &Timeline, to: u32) -> Option<(u64, u64)> {
    let of_waits = timeline.waits.iter().flat_map(|waits| &waits.intervals);
    let of_waits =
        of_waits.filter(|wait| !wait.preempted).map(|wait| (wait.start_ns / timeline.slot_ns) as u32);
    let slots = timeline.costs.iter().map(|cost| cost.slot).chain(of_waits);
    let slot = slots.min_by_key(|slot| slot.abs_diff(to))?;
    let times = timeline.times(&(slot..slot + 1));
    Some((times.start, times.end))
}

/// The self costs of a part, by metric and node of the whole.
struct PartCosts {
    columns: Vec<Vec<u64>>,
    lines: Vec<LineCost>,
    ended_waits: Vec<EndedWaits>,
}

impl PartCosts {
    fn of(profile: &Profile, timeline: &Timeline, slots: &[Range<u32>]) -> Self {
        let columns = profile.metrics.iter().map(|_| vec![0; profile.tree.len()]).collect();
        let mut costs = Self { columns, lines: Vec::new(), ended_waits: Vec::new() };
        let mut apportioned = Apportioned::of(profile, timeline);
        for cost in &timeline.costs {
            let is_in = slots.iter().any(|slots| slots.contains(&cost.slot));
            apportioned.next(cost, |metric, amount| {
                if is_in {
                    costs.add(metric, cost.node, cost.line, amount);
                }
            });
        }
        if let Some(waits) = &timeline.waits {
            for wait in waits.intervals.iter().filter(|wait| !wait.preempted) {
                for times in slots.iter().map(|slots| timeline.times(slots)) {
                    let inside = wait.end_ns.min(times.end).saturating_sub(wait.start_ns.max(times.start));
                    costs.add(waits.time, wait.node, None, inside);
                    let begins = times.contains(&wait.start_ns);
                    costs.add(waits.count, wait.node, None, begins.into());
                    if let Some(waking) = wait.waking.filter(|_| inside > 0 || begins) {
                        costs.ended_waits.push(EndedWaits {
                            waiting: wait.node,
                            kind: waking.kind,
                            waker: waking.waker,
                            waits: begins.into(),
                            time_ns: inside,
                        });
                    }
                }
            }
        }
        costs
    }

    fn add(&mut self, metric: MetricId, node: NodeId, line: Option<LineId>, cost: u64) {
        if cost == 0 {
            return;
        }
        let sum = &mut self.columns[metric.index()][node.index()];
        *sum = sum.saturating_add(cost);
        if let Some(line) = line {
            self.lines.push(LineCost { node, line, metric, cost });
        }
    }

    /// Copies the nodes that have costs or end waits, and their callers; gives the copy of each.
    fn copy(&self, from: &Profile, into: &mut Profile) -> Vec<Option<NodeId>> {
        let tree = &from.tree;
        let mut needed = vec![false; tree.len()];
        for column in &self.columns {
            needed.iter_mut().zip(column).for_each(|(needed, &cost)| *needed |= cost > 0);
        }
        for waker in self.ended_waits.iter().filter_map(|row| row.waker) {
            needed[waker.index()] = true;
        }
        for node in tree.nodes().rev() {
            if let Some(parent) = tree.parent(node) {
                needed[parent.index()] |= needed[node.index()];
            }
        }
        let mut nodes = vec![None; tree.len()];
        for thread in &from.threads {
            let added = into.add_thread(thread.process, thread.tid, thread.name.clone());
            nodes[thread.root.index()] = Some(into.threads[added.index()].root);
        }
        for node in tree.nodes().filter(|node| needed[node.index()]) {
            let Some(caller) = tree.parent(node).and_then(|parent| nodes[parent.index()]) else { continue };
            let copy = into.tree.child(caller, tree.function(node), tree.call_site(node));
            nodes[node.index()] = Some(copy);
        }
        for (metric, column) in self.columns.iter().enumerate() {
            let metric = MetricId::from_usize(metric);
            for (&cost, node) in column.iter().zip(&nodes).filter(|&(&cost, _)| cost > 0) {
                if let &Some(node) = node {
                    into.tree.add_self_cost(metric, node, cost);
                }
            }
        }
        let lines = self.lines.iter();
        into.line_costs =
            lines.filter_map(|cost| Some(LineCost { node: nodes[cost.node.index()]?, ..*cost })).collect();
        into.compact_line_costs();
        nodes
    }
}

impl Losses {
    /// The losses of a part of a run that has this share of its samples.
    fn scaled(&self, share: f64) -> Self {
        let scale = |count: u64| (count as f64 * share).ceil() as u64;
        Self {
            samples: scale(self.samples),
            lost_samples: scale(self.lost_samples),
            truncated_stacks: scale(self.truncated_stacks),
            unresolved_samples: scale(self.unresolved_samples),
            throttled: scale(self.throttled),
            unsampled_threads: scale(self.unsampled_threads),
            unsampled_cost: scale(self.unsampled_cost),
            unsampled_groups_cost: scale(self.unsampled_groups_cost),
            unknown_threads: scale(self.unknown_threads),
            unseen_cpu_ns: scale(self.unseen_cpu_ns),
            ..*self
        }
    }
}

#[cfg(test)]
mod tests;
