//! The course of a run: what every node cost in every slot of time, and what else has a time.

use serde_json::{Value, json};
use treering_analysis::{places, preorder};
use treering_profile::{MarkKind, MetricId, NodeId, Profile, Timeline, Wait, WaitKind, Waits, WakerKind};

use crate::columns::Columns;
use crate::page::Shape;

/// The kinds of waits, as the page numbers them: a lock, input or output, no processor free, nothing to do, any other.
const READY: u8 = 2;

/// The timeline that a page of this shape can show; none for a profile without nodes whose costs have times.
pub(crate) fn timeline(profile: &Profile, shape: Shape, is_difference: bool) -> Option<&Timeline> {
    let timeline = profile.timeline.as_ref()?;
    let has_slots = timeline.slots() > 0;
    (shape == Shape::Tree && !is_difference && has_slots && profile.runs.len() <= 1).then_some(timeline)
}

/// The facts about the timeline that the page has before it reads it.
pub(crate) fn head(profile: &Profile, timeline: &Timeline) -> Value {
    let timed: Vec<bool> = profile.metrics().map(|(metric, _)| is_timed(profile, timeline, metric)).collect();
    json!({
        "slotNs": timeline.slot_ns, "slots": timeline.slots(), "lengthNs": timeline.length_ns,
        "timed": timed, "hasWaits": timeline.waits.is_some(),
    })
}

/// Whether costs of a metric are known by time: its own, or by those of the metric that counts its samples.
fn is_timed(profile: &Profile, timeline: &Timeline, metric: MetricId) -> bool {
    let counted = profile.metrics[metric.index()].counted_by();
    timeline.is_timed(metric) || counted.is_some_and(|counted| timeline.is_timed(counted))
}

/// The timeline as a payload of its own; empty where there is none.
pub(crate) fn payload(profile: &Profile, timeline: Option<&Timeline>) -> Vec<u8> {
    let Some(timeline) = timeline else { return Vec::new() };
    let mut columns = Columns::default();
    let order = preorder(profile);
    let place = places(profile, &order);
    let rows = Rows::of(profile, timeline, &place);
    let costs: Vec<Value> = rows
        .amounts
        .iter()
        .map(|amounts| if amounts.is_empty() { Value::Null } else { columns.add(amounts) })
        .collect();
    let lives = timeline
        .lives
        .iter()
        .map(|life| json!({ "thread": life.thread.index(), "start": life.start_ns, "end": life.end_ns }));
    let lives: Vec<Value> = lives.collect();
    let marks = timeline.marks.iter().map(|mark| {
        let kind = match mark.kind {
            MarkKind::Exec => "exec",
            MarkKind::Mark => "mark",
        };
        json!({
            "time": mark.time_ns, "end": mark.end_ns, "thread": mark.thread.index(), "kind": kind,
            "name": profile.strings[mark.name],
        })
    });
    let marks: Vec<Value> = marks.collect();
    let losses =
        timeline.losses.iter().map(|lost| json!({ "time": lost.time_ns, "samples": lost.samples })).collect();
    let waits = timeline.waits.as_ref().map(|found| waits(profile, found, &place, &order, &mut columns));
    let skeleton = json!({
        "slotNs": timeline.slot_ns, "lengthNs": timeline.length_ns,
        "perSlot": columns.add_indexes(rows.per_slot),
        "node": columns.add_indexes(rows.nodes),
        "costs": costs,
        "waits": waits,
        "lives": columns.add_json(&lives),
        "marks": columns.add_json(&marks),
        "losses": columns.add_json(&Value::Array(losses)),
        "clockStepsBack": timeline.clock_steps_back,
    });
    columns.finish(&skeleton)
}

/// The costs by slot and node, in this order, one row each.
struct Rows {
    /// By slot: how many rows it has.
    per_slot: Vec<u32>,
    /// By row: the place of its node.
    nodes: Vec<u32>,
    /// By metric: the amounts of all rows; empty where none has any.
    amounts: Vec<Vec<u64>>,
}

impl Rows {
    fn of(profile: &Profile, timeline: &Timeline, place: &[u32]) -> Self {
        let slots = timeline.slots() as usize;
        let mut rows = Self { per_slot: vec![0; slots], nodes: Vec::new(), amounts: Vec::new() };
        let mut keys: Vec<(u32, u32)> =
            timeline.costs.iter().map(|cost| (cost.slot, place[cost.node.index()])).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut amounts: Vec<Vec<u64>> = vec![Vec::new(); profile.metrics.len()];
        for cost in &timeline.costs {
            let of = &mut amounts[cost.metric.index()];
            of.resize(keys.len(), 0);
            let row = keys.binary_search(&(cost.slot, place[cost.node.index()])).expect("every row is there");
            of[row] = of[row].saturating_add(cost.amount);
        }
        for (slot, _) in &keys {
            rows.per_slot[*slot as usize] += 1;
        }
        rows.nodes = keys.into_iter().map(|(_, node)| node).collect();
        rows.amounts = amounts;
        rows
    }
}

/// When threads waited, and in which nodes they wait for what.
fn waits(profile: &Profile, waits: &Waits, place: &[u32], order: &[NodeId], columns: &mut Columns) -> Value {
    let kinds = profile.wait_kinds();
    let intervals = &waits.intervals;
    let start: Vec<u64> = intervals.iter().map(|wait| wait.start_ns).collect();
    let end: Vec<u64> = intervals.iter().map(|wait| wait.end_ns).collect();
    let kind = intervals.iter().map(|wait| match wait.preempted {
        true => u32::from(READY),
        false => u32::from(number(kinds[wait.node.index()])),
    });
    let kind = columns.add_indexes(kind);
    let entries = profile.kernel_entries();
    let ends: Vec<_> = intervals.iter().map(|wait| end_of(wait, &entries, place)).collect();
    let known = ends.iter().any(|end| end.kind > 0);
    let woken: Vec<u64> = ends.iter().map(|end| end.woken_ns).collect();
    json!({
        "time": waits.time.index(), "count": waits.count.index(),
        "start": columns.add(&start), "end": columns.add(&end),
        "node": columns.add_indexes(intervals.iter().map(|wait| place[wait.node.index()])),
        "kind": kind,
        "woken": if known { columns.add(&woken) } else { Value::Null },
        "waker": if known { columns.add_indexes(ends.iter().map(|end| end.waker)) } else { Value::Null },
        "wakerKind": if known { columns.add_indexes(ends.iter().map(|end| end.kind)) } else { Value::Null },
        "kindOf": columns.add_indexes(order.iter().map(|node| u32::from(number(kinds[node.index()])))),
    })
}

/// The end of a wait, as the page has it.
struct End {
    woken_ns: u64,
    /// The place of the waker's node plus 1; 0 where it is not known.
    waker: u32,
    /// The kind of waker, in the order of [`WakerKind::ALL`] and from 1 on; 0 where it is not known.
    kind: u32,
}

fn end_of(wait: &Wait, entries: &[Option<bool>], place: &[u32]) -> End {
    let Some(waking) = wait.waking else { return End { woken_ns: 0, waker: 0, kind: 0 } };
    let waker = waking.waker.map_or(0, |waker| place[waker.index()] + 1);
    let kind = Profile::waker_kind(waking.kind, waking.waker, entries);
    let kind = WakerKind::ALL.iter().position(|&known| known == kind).map_or(0, |at| at as u32 + 1);
    End { woken_ns: waking.woken_ns, waker, kind }
}

fn number(kind: WaitKind) -> u8 {
    match kind {
        WaitKind::Lock => 0,
        WaitKind::InputOutput => 1,
        WaitKind::Idle => 3,
        WaitKind::Other => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two functions of one thread over 3 slots: `work` with 2 samples and then 1, `copy` with 5 in the last one.
    fn timed() -> Profile {
        let mut profile = treering_testing::stacks("main;work 3\n main;copy 5");
        let metric = profile.metrics().next().expect("samples have a metric").0;
        let node = |name: &str| {
            let is = |node: &NodeId| {
                treering_analysis::function_name(&profile, profile.tree.function(*node)) == name
            };
            profile.tree.nodes().find(is).expect("the function is there")
        };
        let (work, copy) = (node("work"), node("copy"));
        let mut timeline = Timeline::new();
        for (time_ns, node, amount) in [(0, work, 2), (2_500_000, work, 1), (2_900_000, copy, 5)] {
            timeline.add(time_ns, metric, (node, None), amount);
        }
        timeline.compact();
        profile.timeline = Some(timeline);
        profile
    }

    #[test]
    fn rows_are_in_the_order_of_slots_and_hold_every_cost_once() {
        let profile = timed();
        let timeline = profile.timeline.as_ref().expect("it was made");
        let order = preorder(&profile);
        let place = places(&profile, &order);
        let rows = Rows::of(&profile, timeline, &place);
        assert_eq!(rows.per_slot, [1, 0, 2]);
        let metric = profile.metrics().next().expect("samples have a metric").0;
        assert_eq!(rows.amounts[metric.index()].iter().sum::<u64>(), 8);
        for (row, &at) in rows.nodes.iter().enumerate().skip(1) {
            let name = treering_analysis::function_name(&profile, profile.tree.function(order[at as usize]));
            let amount = rows.amounts[metric.index()][row];
            assert_eq!(amount, if name == "work" { 1 } else { 5 });
        }
    }

    #[test]
    fn a_difference_and_a_flat_profile_have_no_time_in_the_page() {
        let profile = timed();
        assert!(timeline(&profile, Shape::Tree, false).is_some());
        assert!(timeline(&profile, Shape::Tree, true).is_none());
        assert!(timeline(&profile, Shape::Flat, false).is_none());
    }
}
