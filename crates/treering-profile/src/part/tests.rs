#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::{
    Frame, Function, Life, Line, Mark, MarkKind, Metric, RecursionRule, ThreadId, Unit, Wait, Waits,
    WakerKind, Waking, merge,
};

const MS: u64 = 1_000_000;

/// Two threads of a run of 10 ms: 7 samples of `work` in slots 0 to 6 that stand for 100 ns together, 3 of `rest` in
/// slots 7 to 9 that stand for 50 ns, and a wait in `rest` from 3.5 to 8.5 ms.
struct Course {
    profile: Profile,
    time: MetricId,
    samples: MetricId,
    off_cpu: MetricId,
    waits: MetricId,
    work: NodeId,
    rest: NodeId,
}

fn course() -> Course {
    let mut profile = Profile::new(RecursionRule::Full);
    let time = MetricId::new(0);
    profile.add_metric(Metric::sampled("cpu-clock", Unit::Nanoseconds, MetricId::new(1), None));
    let samples = profile.add_metric(Metric::exact("samples", Unit::Count));
    let off_cpu = profile.add_metric(Metric::exact("off-cpu", Unit::Nanoseconds));
    let waits = profile.add_metric(Metric::exact("waits", Unit::Count));
    let main = profile.add_single_thread("main");
    let process = profile.threads[main.index()].process;
    let helper = profile.add_thread(process, 2, "helper");
    let mut function = |name: &str| {
        let name = profile.strings.intern(name);
        profile.functions.intern(Function::named(name))
    };
    let (work, rest) = (function("work"), function("rest"));
    let file = profile.strings.intern("a.c");
    let lines = [3, 4].map(|line| profile.lines.intern(Line { file, line }));
    let work = profile.add_stack(main, &[Frame::new(work)], None, &[(time, 100), (samples, 7)]);
    let rest = profile.add_stack(helper, &[Frame::new(rest)], None, &[(time, 50), (samples, 3)]);
    let mut timeline = Timeline::new();
    for slot in 0..7 {
        timeline.add(slot * MS + 17, samples, (work, Some(lines[slot as usize % 2])), 1);
    }
    for slot in 7..10 {
        timeline.add(slot * MS, samples, (rest, None), 1);
    }
    let waking = Waking { woken_ns: 8 * MS, kind: WakerKind::Thread, waker: Some(work) };
    let (start_ns, end_ns) = (3 * MS + MS / 2, 8 * MS + MS / 2);
    let wait = Wait { start_ns, end_ns, node: rest, preempted: false, waking: Some(waking) };
    timeline.add_wait(off_cpu, waits, wait);
    timeline.add_wait(
        off_cpu,
        waits,
        Wait { start_ns: 0, end_ns: MS, node: work, preempted: true, waking: None },
    );
    profile.tree.add_self_cost(off_cpu, rest, 5 * MS);
    profile.tree.add_self_cost(waits, rest, 1);
    profile.ended_waits.push(EndedWaits {
        waiting: rest,
        kind: WakerKind::Thread,
        waker: Some(work),
        waits: 1,
        time_ns: 5 * MS,
    });
    timeline.extend_to(10 * MS);
    timeline.compact();
    profile.timeline = Some(timeline);
    assert_eq!(profile.validate(), Ok(()));
    Course { profile, time, samples, off_cpu, waits, work, rest }
}

fn costs(profile: &Profile) -> Vec<u64> {
    profile.metrics().map(|(metric, _)| profile.run_cost(metric)).collect()
}

fn part(profile: &Profile, range: Range<u64>) -> Profile {
    let part = profile.part(&[range]).expect("a part");
    assert_eq!(part.validate(), Ok(()));
    part
}

#[test]
fn a_measured_cost_that_is_in_no_slot_is_told() {
    let mut profile = Profile::new(RecursionRule::Full);
    let time = profile.add_metric(Metric::exact("time", Unit::Nanoseconds));
    let thread = profile.add_single_thread("main");
    let name = profile.strings.intern("work");
    let work = profile.functions.intern(Function::named(name));
    let work = profile.add_stack(thread, &[Frame::new(work)], None, &[(time, 5 * MS)]);
    let mut timeline = Timeline::new();
    timeline.add_span((0, 3_500_000), time, (work, None));
    profile.timeline = Some(timeline);
    let part = part(&profile, 0..2 * MS);
    assert_eq!(part.run_cost(time), 2 * MS);
    let notes: Vec<&str> = part.metadata.notes.iter().map(|note| &*note.0).collect();
    assert!(
        notes.contains(&"in no part: 1.500 ms of time, of which it is not known when it arose"),
        "{notes:?}"
    );
}

/// Parts of a run fell short of the whole without a word where a thread had a cost and no sample.
#[test]
fn a_cost_without_a_sample_is_in_no_part_and_told() {
    let Course { mut profile, time, .. } = course();
    let told = |profile: &Profile| {
        let part = part(profile, 0..5 * MS);
        part.metadata
            .notes
            .iter()
            .filter(|note| note.0.starts_with("in no part"))
            .map(|note| note.0.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(told(&profile), Vec::<String>::new());
    let name = profile.strings.intern("[not sampled]");
    let unseen = profile.functions.intern(Function::named(name));
    profile.add_stack(ThreadId::new(0), &[Frame::new(unseen)], None, &[(time, 1_095_000)]);
    assert_eq!(told(&profile), ["in no part: 1.095 ms of cpu-clock, for which there is no sample"]);
    let halves = [0..5 * MS, 5 * MS..10 * MS].map(|range| part(&profile, range).run_cost(time));
    assert_eq!(halves.iter().sum::<u64>() + 1_095_000, profile.run_cost(time));
}

#[test]
fn consecutive_parts_add_up_to_the_whole() {
    let Course { profile, .. } = course();
    for edges in [vec![0, 5, 10], vec![0, 1, 2, 3, 7, 10], vec![0, 4, 10], (0..=10).collect()] {
        let mut sums = vec![0; 4];
        let mut on_lines = 0;
        for pair in edges.windows(2) {
            let part = part(&profile, pair[0] * MS..pair[1] * MS);
            sums.iter_mut().zip(costs(&part)).for_each(|(sum, cost)| *sum += cost);
            let lines = part.line_costs.iter().filter(|cost| cost.metric == MetricId::new(0));
            on_lines += lines.map(|cost| cost.cost).sum::<u64>();
        }
        assert_eq!((sums, on_lines), (vec![150, 10, 5 * MS, 1], 100), "{edges:?}");
    }
}

#[test]
fn a_part_has_the_costs_that_arose_in_it() {
    let Course { profile, time, samples, off_cpu, waits, .. } = course();
    let first = part(&profile, 0..2 * MS);
    // 2 of 7 samples of 100 ns.
    assert_eq!([time, samples, off_cpu, waits].map(|metric| first.run_cost(metric)), [28, 2, 0, 0]);
    assert_eq!(first.tree.len(), 3, "roots stay, and nodes without a cost go");
    assert_eq!(first.runs[0].duration_ns, 2 * MS);
    let middle = part(&profile, 4 * MS..8 * MS);
    assert_eq!([time, samples, off_cpu, waits].map(|metric| middle.run_cost(metric)), [59, 4, 4 * MS, 0]);
    let with_start = part(&profile, 3 * MS..4 * MS);
    assert_eq!([off_cpu, waits].map(|metric| with_start.run_cost(metric)), [MS / 2, 1]);
    let lines = part(&profile, 0..3 * MS).line_costs;
    assert_eq!(
        lines.iter().filter(|cost| cost.metric == samples).map(|cost| cost.cost).collect::<Vec<_>>(),
        [2, 1]
    );
}

#[test]
fn a_part_of_a_part_is_that_part() {
    let Course { profile, .. } = course();
    let part_of = part(&profile, 2 * MS..8 * MS);
    let again = part(&part_of, 2 * MS..8 * MS);
    assert_eq!((costs(&again), &again.timeline), (costs(&part_of), &part_of.timeline));
    let first = part(&part_of, 2 * MS..5 * MS);
    let second = part(&part_of, 5 * MS..8 * MS);
    let sums: Vec<u64> = costs(&first).iter().zip(costs(&second)).map(|(a, b)| a + b).collect();
    assert_eq!(sums, costs(&part_of));
}

#[test]
fn bands_are_parts_of_several_ranges() {
    let Course { profile, samples, off_cpu, .. } = course();
    let band = profile.part(&[8 * MS..9 * MS, 0..MS, MS..2 * MS, 30 * MS..40 * MS]).expect("a part");
    assert_eq!([samples, off_cpu].map(|metric| band.run_cost(metric)), [3, MS / 2]);
    assert_eq!(band.runs[0].duration_ns, 3 * MS);
}

#[test]
fn parts_that_cannot_be_are_explained() {
    let Course { mut profile, .. } = course();
    let refused = |profile: &Profile, range: Range<u64>| profile.part(&[range]).map(|_| ()).unwrap_err();
    assert_eq!(refused(&profile, 10 * MS..20 * MS), NoPart::Outside { length_ns: 10 * MS });
    assert_eq!(refused(&profile, 100..200), NoPart::TooShort { slot_ns: MS });
    let timeline = profile.timeline.as_mut().expect("a timeline");
    timeline.extend_to(100 * MS);
    assert_eq!(refused(&profile, 20 * MS..30 * MS), NoPart::Empty { nearest: Some((9 * MS, 10 * MS)) });
    profile.timeline = None;
    assert_eq!(refused(&profile, 0..MS), NoPart::NoTime);
}

#[test]
fn metrics_without_times_are_left_out_and_said() {
    let Course { mut profile, work, .. } = course();
    profile.tree.add_calls(work, 4, 0);
    let bytes = profile.add_metric(Metric::exact("allocated", Unit::Bytes));
    profile.tree.add_self_cost(bytes, work, 12);
    let part = part(&profile, 0..5 * MS);
    assert_eq!((part.run_cost(bytes), part.tree.has_calls()), (0, false));
    let notes: Vec<&str> = part.metadata.notes.iter().map(|note| note.0.as_str()).collect();
    assert_eq!(notes, ["allocated, calls left out: they are known of the whole run only"]);
}

#[test]
fn joined_slots_keep_the_sums() {
    let Course { mut profile, .. } = course();
    let whole = costs(&profile);
    let timeline = profile.timeline.as_mut().expect("a timeline");
    timeline.coarsen();
    timeline.coarsen();
    assert_eq!((timeline.slot_ns, timeline.slots(), timeline.costs.len()), (4 * MS, 3, 6));
    let sums: Vec<u64> = costs(&part(&profile, 0..4 * MS))
        .iter()
        .zip(costs(&part(&profile, 4 * MS..10 * MS)))
        .map(|(a, b)| a + b)
        .collect();
    assert_eq!(sums, whole);
}

#[test]
fn very_many_waits_become_costs_of_slots_with_the_same_sums() {
    let Course { mut profile, off_cpu, waits, rest, .. } = course();
    let timeline = profile.timeline.as_mut().expect("a timeline");
    let many = Timeline::MOST_WAITS as u64 + 10;
    for at in 0..many {
        let start_ns = at * 30;
        let wait = Wait { start_ns, end_ns: start_ns + 20, node: rest, preempted: false, waking: None };
        timeline.add_wait(off_cpu, waits, wait);
    }
    timeline.compact();
    assert_eq!(timeline.waits.as_ref().map(|waits| waits.intervals.len()), Some(Timeline::MOST_WAITS / 2));
    profile.tree.add_self_cost(off_cpu, rest, 20 * many);
    profile.tree.add_self_cost(waits, rest, many);
    let halves = [0..5 * MS, 5 * MS..10 * MS].map(|range| part(&profile, range));
    for metric in [off_cpu, waits] {
        let sum: u64 = halves.iter().map(|half| half.run_cost(metric)).sum();
        assert_eq!(sum, profile.run_cost(metric));
    }
}

#[test]
fn a_phase_lasts_up_to_the_next_mark() {
    let Course { mut profile, samples, .. } = course();
    let mark = |profile: &mut Profile, at: u64, name: &str, end_ns| Mark {
        time_ns: at * MS,
        end_ns,
        thread: ThreadId::new(0),
        kind: MarkKind::Mark,
        name: profile.strings.intern(name),
    };
    let marks = [(0, "read", None), (3, "sort", None), (5, "read", None), (8, "pause", Some(9 * MS))];
    let marks: Vec<_> = marks.into_iter().map(|(at, name, end)| mark(&mut profile, at, name, end)).collect();
    profile.timeline.as_mut().expect("a timeline").marks = marks;
    assert_eq!(profile.phase("read"), [0..3 * MS, 5 * MS..8 * MS]);
    assert_eq!(profile.phase("pause"), vec![Range { start: 8 * MS, end: 9 * MS }]);
    assert_eq!(profile.phase("other"), []);
    let part = profile.part(&profile.phase("read")).expect("a part");
    assert_eq!(part.run_cost(samples), 6);
}

#[test]
fn times_go_with_threads_that_are_added_up() {
    let Course { mut profile, samples, .. } = course();
    let life = |thread| Life { thread: ThreadId::new(thread), start_ns: Some(0), end_ns: None };
    profile.timeline.as_mut().expect("a timeline").lives = vec![life(0), life(1)];
    let joined = profile.collapse_threads(|_| Some(0));
    assert_eq!(joined.validate(), Ok(()));
    let timeline = joined.timeline.as_ref().expect("a timeline");
    assert!(timeline.lives.iter().all(|life| life.thread == ThreadId::new(0)));
    assert_eq!(part(&joined, 5 * MS..9 * MS).run_cost(samples), 4);
    let one = profile.collapse_threads(|thread| (thread.name == "helper").then_some(0));
    assert_eq!(part(&one, 5 * MS..9 * MS).run_cost(samples), 2);
}

#[test]
fn profiles_with_times_of_their_own_have_none_together() {
    let Course { profile, samples, .. } = course();
    let both = merge(&[&profile, &profile]);
    assert_eq!((both.timeline.is_none(), both.run_cost(samples)), (true, 20));
    assert!(both.metadata.notes.iter().any(|note| note.0.contains("times of costs are left out")));
    let mut counts = Profile::new(RecursionRule::Full);
    let instructions = counts.add_metric(Metric::exact("instructions", Unit::Count));
    let thread = counts.add_single_thread("main");
    counts.add_stack(thread, &[], None, &[(instructions, 9)]);
    let with_counts = merge(&[&counts, &profile]);
    assert_eq!(with_counts.validate(), Ok(()));
    let timeline = with_counts.timeline.as_ref().expect("only one has times");
    assert_eq!(timeline.costs.len(), 10);
    let samples = with_counts.find_metric("samples").expect("it is there");
    assert_eq!(part(&with_counts, 0..5 * MS).run_cost(samples), 5);
}

#[test]
fn a_run_with_a_huge_time_has_few_slots() {
    let mut timeline = Timeline::new();
    timeline.add(0, MetricId::new(0), (NodeId::new(0), None), 1);
    timeline.add(u64::MAX, MetricId::new(0), (NodeId::new(0), None), 1);
    assert!(timeline.slots() <= Timeline::MOST_SLOTS);
    assert_eq!(timeline.costs.iter().map(|cost| cost.amount).sum::<u64>(), 2);
}

#[test]
fn timelines_that_refer_to_nothing_are_refused() {
    let break_it = |change: fn(&mut Timeline)| {
        let Course { mut profile, .. } = course();
        change(profile.timeline.as_mut().expect("a timeline"));
        profile.validate().is_err()
    };
    assert!(break_it(|timeline| timeline.slot_ns = 0));
    assert!(break_it(|timeline| timeline.length_ns = u64::MAX));
    assert!(break_it(|timeline| timeline.costs[0].slot = 10));
    assert!(break_it(|timeline| timeline.costs[0].node = NodeId::new(99)));
    assert!(break_it(|timeline| timeline.costs[0].amount = u64::MAX));
    assert!(break_it(|timeline| timeline.waits =
        Some(Waits { time: MetricId::new(9), count: MetricId::new(1), intervals: Vec::new() })));
    assert!(break_it(|timeline| timeline.waits.as_mut().unwrap().intervals[0].end_ns = 11 * MS));
}

/// The waits, times and wakers' functions of a profile.
fn ended(profile: &Profile) -> Vec<(String, u64, u64)> {
    let row = |row: &EndedWaits| {
        let function = profile.functions[profile.tree.function(row.waker.expect("a stack"))].name;
        (profile.strings[function].to_owned(), row.waits, row.time_ns)
    };
    profile.ended_waits.iter().map(row).collect()
}

#[test]
fn wakers_have_the_time_of_their_waits_that_is_in_a_part() {
    let Course { profile, waits, off_cpu, .. } = course();
    for (range, expected) in [
        (0..10 * MS, Some((1, 5 * MS))),
        (0..5 * MS, Some((1, 3 * MS / 2))),
        (5 * MS..10 * MS, Some((0, 7 * MS / 2))),
        (0..3 * MS, None),
    ] {
        let part = part(&profile, range.clone());
        let expected: Vec<_> =
            expected.iter().map(|&(waits, time)| ("work".to_owned(), waits, time)).collect();
        assert_eq!(ended(&part), expected, "{range:?}");
        assert_eq!(ended(&part).iter().map(|row| row.1).sum::<u64>(), part.run_cost(waits));
        assert_eq!(ended(&part).iter().map(|row| row.2).sum::<u64>(), part.run_cost(off_cpu));
    }
}

#[test]
fn wakers_go_with_their_waits_to_merged_and_collapsed_profiles() {
    let Course { profile, .. } = course();
    let one = ("work".to_owned(), 1, 5 * MS);
    assert_eq!(ended(&merge(&[&profile, &profile])), [one.clone(), one]);
    let both = merge(&[&profile, &profile]).collapse_threads(|_| Some(0));
    assert_eq!(both.validate(), Ok(()));
    assert_eq!(ended(&both), [("work".to_owned(), 2, 10 * MS)]);
    let of_helper = profile.collapse_threads(|thread| (thread.name == "helper").then_some(0));
    assert_eq!(
        of_helper.ended_waits.iter().map(|row| (row.waker, row.waits)).collect::<Vec<_>>(),
        [(None, 1)]
    );
    let waits = of_helper.timeline.expect("it has times").waits.expect("it has waits");
    assert_eq!(waits.intervals[0].waking.map(|waking| (waking.woken_ns, waking.waker)), Some((8 * MS, None)));
}
