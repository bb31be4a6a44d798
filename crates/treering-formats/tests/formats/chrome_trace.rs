//! Traces of trace events as they are written, and read again. `cpuprofile.rs` has those of other tools.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::{profile, step};
use proptest::prelude::*;
use serde_json::Value;
use treering_formats::{Format, Problem, chrome_trace, is_ours, read_any};
use treering_profile::{
    Frame, Function, LineId, Mark, MarkKind, Metric, MetricId, NodeId, Process, Profile, RecursionRule,
    ThreadId, Unit,
};

const MS: u64 = 1_000_000;

fn written(profile: &Profile, metric: u32) -> (Vec<u8>, Vec<String>) {
    let mut file = Vec::new();
    let dropped = chrome_trace::write(profile, MetricId::new(metric), &mut file).unwrap();
    assert_eq!(chrome_trace::size(profile, MetricId::new(metric)), file.len() as u64);
    (file, dropped.notes)
}

/// The calls of a trace: their times in microseconds, and `B` with a name or `E`.
fn calls(file: &[u8]) -> Vec<String> {
    let json: Value = serde_json::from_slice(file).unwrap();
    let events = json["traceEvents"].as_array().unwrap().iter();
    let calls = events.filter(|event| event["ph"] == "B" || event["ph"] == "E");
    calls
        .map(|event| {
            let name = event["name"].as_str().unwrap_or_default();
            format!("{} {}{name}", event["ts"], event["ph"].as_str().unwrap())
        })
        .collect()
}

/// A profile of one thread whose stacks `names` cost something at some times; all costs are `metric`'s.
fn timed(metric: Metric, costs: &[(u64, &str, u64)]) -> Profile {
    let mut profile = Profile::new(RecursionRule::Full);
    let metric = profile.add_metric(metric);
    let thread = profile.add_single_thread("main");
    add(&mut profile, thread, metric, costs);
    profile
}

fn add(profile: &mut Profile, thread: ThreadId, metric: MetricId, costs: &[(u64, &str, u64)]) {
    let mut timeline = profile.timeline.take().unwrap_or_default();
    for &(time_ns, names, cost) in costs {
        let mut node = profile.threads[thread.index()].root;
        for name in names.split(';') {
            let name = profile.strings.intern(name);
            let function = profile.functions.intern(Function::named(name));
            node = profile.step(node, &Frame::new(function)).0;
        }
        profile.tree.add_self_cost(metric, node, cost);
        timeline.add(time_ns, metric, (node, None::<LineId>), cost);
    }
    timeline.compact();
    profile.timeline = Some(timeline);
}

fn time() -> Metric {
    Metric::exact("cpu-clock", Unit::Nanoseconds)
}

#[test]
fn neighbouring_stacks_share_the_calls_that_both_have() {
    let costs = [(0, "main;a", MS), (MS, "main;a;b", MS), (2 * MS, "main;c", MS / 2), (9 * MS, "main;a", 7)];
    let (file, notes) = written(&timed(time(), &costs), 0);
    assert!(notes.is_empty(), "{notes:?}");
    let expected = [
        "0.0 Bmain",
        "0.0 Ba",
        "1000.0 Bb",
        "2000.0 Eb",
        "2000.0 Ea",
        "2000.0 Bc",
        "2500.0 Ec",
        "2500.0 Emain",
        "9000.0 Bmain",
        "9000.0 Ba",
        "9000.007 Ea",
        "9000.007 Emain",
    ];
    assert_eq!(calls(&file), expected);
}

#[test]
fn a_gap_that_is_shorter_than_a_sample_ends_no_call() {
    let mut profile = Profile::new(RecursionRule::Full);
    let samples = profile.add_metric(Metric::exact("samples", Unit::Count));
    let clock = profile.add_metric(Metric::sampled("cpu-clock", Unit::Nanoseconds, samples, None));
    let thread = profile.add_single_thread("main");
    // The third slot has no sample, the fourth has two, and the next one is far away.
    add(&mut profile, thread, samples, &[(0, "a", 1), (MS, "a", 1), (3 * MS, "a", 2), (8 * MS, "a", 1)]);
    let node = NodeId::from_usize(profile.tree.len() - 1);
    profile.tree.add_self_cost(clock, node, 5 * MS);
    let (file, _) = written(&profile, 1);
    assert_eq!(calls(&file), ["0.0 Ba", "4000.0 Ea", "8000.0 Ba", "9000.0 Ea"]);
}

#[test]
fn costs_that_are_more_than_their_slot_lasts_are_said_to_be_late() {
    let (file, notes) = written(&timed(time(), &[(0, "a", 3 * MS), (MS, "b", MS)]), 0);
    assert_eq!(calls(&file), ["0.0 Ba", "3000.0 Ea", "3000.0 Bb", "4000.0 Eb"]);
    assert!(notes.iter().any(|note| note.contains("up to 1.000 ms later than their slots")), "{notes:?}");
}

#[test]
fn profiles_without_times_follow_the_order_of_the_tree() {
    let mut profile = timed(time(), &[(0, "main;a", 5000), (0, "other", 1000), (0, "main;b", 2000)]);
    profile.timeline = None;
    let (file, notes) = written(&profile, 0);
    let expected =
        ["0.0 Bmain", "0.0 Ba", "5.0 Ea", "5.0 Bb", "7.0 Eb", "7.0 Emain", "7.0 Bother", "8.0 Eother"];
    assert_eq!(calls(&file), expected);
    assert!(notes.iter().any(|note| note.starts_with("the order of time")), "{notes:?}");
}

/// The times of all costs were lost where a thread had no sample, and nothing told that.
#[test]
fn a_cost_without_a_time_is_at_the_end_and_told() {
    let mut profile = timed(time(), &[(2 * MS, "main;a", MS), (6 * MS, "main;b", MS)]);
    let process = profile.threads[0].process;
    let short = profile.add_thread(process, 17, "short".to_owned());
    let root = profile.threads[short.index()].root;
    profile.tree.add_self_cost(MetricId::new(0), root, 5000);
    let (file, notes) = written(&profile, 0);
    let expected = [
        "2000.0 Bmain",
        "2000.0 Ba",
        "3000.0 Ea",
        "3000.0 Emain",
        "6000.0 Bmain",
        "6000.0 Bb",
        "7000.0 Eb",
        "7000.0 Emain",
    ];
    let calls = calls(&file);
    assert_eq!(calls[..8], expected);
    assert!(calls[8].starts_with("6000.0 B") && calls[9].starts_with("6005.0 E"), "{calls:?}");
    let note =
        "when 0.005 ms of cpu-clock arose, which is not known where there is no sample: it is at the end";
    assert!(notes.iter().any(|known| known == note), "{notes:?}");
}

/// Samples that were put together looked like counted calls.
#[test]
fn files_of_ours_have_their_metric_again_and_no_calls() {
    let profile = timed(time(), &[(0, "main;a", MS), (4 * MS, "main;b", 3)]);
    let (file, _) = written(&profile, 0);
    assert!(is_ours(&file, Format::ChromeTrace) && !is_ours(&file, Format::Firefox));
    let (format, read, report) = read_any(&file).unwrap();
    assert_eq!((format, report.is_complete()), (Format::ChromeTrace, true), "{report:?}");
    assert_eq!((read.metrics.len(), read.metrics[0].name.as_str()), (1, "cpu-clock"));
    assert!(!read.tree.has_calls());
    assert_eq!(common::totals(&read), common::totals(&profile));
    let from_2 = |profile: &Profile| {
        let range = 2 * MS..9 * MS;
        profile.part(std::slice::from_ref(&range)).unwrap().run_cost(MetricId::new(0))
    };
    assert_eq!((from_2(&profile), from_2(&read)), (3, 3));
}

/// The marks of a profile: when, of which thread, of which kind, and their names.
fn marks(profile: &Profile) -> Vec<(u64, u32, MarkKind, &str)> {
    let mark = |mark: &Mark| {
        (mark.time_ns, profile.threads[mark.thread.index()].tid, mark.kind, &profile.strings[mark.name])
    };
    profile.timeline.as_ref().unwrap().marks.iter().map(mark).collect()
}

#[test]
fn marks_are_read_as_they_were_written() {
    let mut profile = timed(time(), &[(2 * MS, "main;work", 4 * MS)]);
    let process = profile.threads[0].process;
    let other = profile.add_thread(process, 17, "worker".to_owned());
    add(&mut profile, other, MetricId::new(0), &[(3 * MS, "step", MS)]);
    let main = ThreadId::new(0);
    let long = "long ".repeat(40);
    let rows = [
        (0, main, MarkKind::Exec, "program"),
        (2_500_001, main, MarkKind::Mark, "load"),
        (2_500_001, other, MarkKind::Mark, ""),
        (3 * MS, main, MarkKind::Mark, "two\nlines \"quoted\""),
        // Later than any cost.
        (9 * MS + 7, other, MarkKind::Mark, &long),
    ];
    for (time_ns, thread, kind, name) in rows {
        let name = profile.strings.intern(name);
        let timeline = profile.timeline.as_mut().unwrap();
        timeline.extend_to(time_ns + 1);
        timeline.marks.push(Mark { time_ns, end_ns: None, thread, kind, name });
    }
    let (file, _) = written(&profile, 0);
    let (again, report) = read_any(&file).map(|(_, profile, report)| (profile, report)).unwrap();
    again.validate().unwrap();
    assert_eq!(marks(&again), marks(&profile));
    assert!(report.notes.iter().all(|note| !note.contains("not read")), "{report:?}");
}

#[test]
fn instants_of_other_tools_are_marks_and_few_enough() {
    let instant = |at: u32, rest: &str| format!(r#",{{"ts":{at},"pid":1,{rest}}}"#);
    let read = |instants: &str| {
        let call = r#"{"ph":"X","name":"run","ts":1000,"dur":500,"pid":1,"tid":1}"#;
        let (profile, report) = chrome_trace::read(format!("[{call}{instants}]").as_bytes()).unwrap();
        profile.validate().unwrap();
        (profile, report.notes)
    };
    let (profile, notes) = read(
        &[
            instant(1200, r#""ph":"I","name":"old","tid":1"#),
            instant(1100, r#""ph":"i","name":"process","tid":2,"s":"p""#),
            instant(1000, r#""ph":"R","name":"navigationStart","tid":1,"cat":"exec""#),
            instant(1300, r#""ph":"i","tid":1,"s":"g""#),
            instant(999, r#""ph":"i","name":"before","tid":1"#),
            instant(1501, r#""ph":"i","name":"after","tid":1"#),
            r#",{"ph":"i","name":"never","pid":1,"tid":1}"#.to_owned(),
            instant(1100, r#""ph":"C","name":"counter","tid":1"#),
        ]
        .concat(),
    );
    let kind = MarkKind::Mark;
    let expected = [
        (0, 1, kind, "navigationStart"),
        (100_000, 2, kind, "process"),
        (200_000, 1, kind, "old"),
        (300_000, 1, kind, "(no name)"),
    ];
    assert_eq!(marks(&profile), expected);
    assert_eq!(profile.timeline.as_ref().unwrap().length_ns, 500_000);
    assert_eq!(
        notes,
        [
            "events that are no calls, such as counters, flows and asynchronous ones, are not read: 1",
            "instants before the first call or after the last one are left out: 3",
            "instants of the whole trace are marks of the process that wrote them: 1",
        ]
    );
    let many = instant(1100, r#""ph":"i","name":"again","tid":1"#).repeat(16_389);
    let (profile, notes) = read(&many);
    assert_eq!(
        (marks(&profile).len(), notes),
        (16_384, vec!["instants beyond the first 16384 are left out: 5".to_owned()])
    );
}

#[test]
fn threads_of_one_number_have_tracks_of_their_own() {
    let mut profile = Profile::new(RecursionRule::Full);
    let clock = profile.add_metric(time());
    for name in ["before", "after"] {
        let run = treering_profile::RunId::new(0);
        let process = profile.add_process(Process { run, pid: 7, name: name.to_owned() });
        let thread = profile.add_thread(process, 9, name);
        add(&mut profile, thread, clock, &[(0, name, 10)]);
    }
    let (file, _) = written(&profile, 0);
    let (read, _) = chrome_trace::read(&file).unwrap();
    let threads: Vec<_> = read.threads.iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!((threads, read.processes.len()), (vec!["before", "after"], 2));
    assert_eq!(common::totals(&read), common::totals(&profile));
}

/// The costs of each thread.
fn of_threads(profile: &Profile) -> Vec<u64> {
    let threads = profile.node_threads();
    let mut costs = vec![0; profile.threads.len()];
    for node in profile.tree.nodes() {
        costs[threads[node.index()].index()] += profile.tree.self_cost(MetricId::new(0), node);
    }
    costs.retain(|&cost| cost > 0);
    costs.sort_unstable();
    costs
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn costs_of_any_profile_survive(steps in prop::collection::vec(step(), 0..30)) {
        let profile = profile(&steps);
        let cost = profile.run_cost(MetricId::new(0));
        match chrome_trace::read(&written(&profile, 0).0) {
            Ok((read, _)) => prop_assert_eq!(of_threads(&read), of_threads(&profile)),
            Err(error) => prop_assert_eq!(
                (error, cost),
                (Problem::Empty("calls (B, E, X) and no samples").into(), 0)
            ),
        }
    }

    #[test]
    fn costs_at_any_times_survive(
        costs in prop::collection::vec((0..50 * MS, 0..4_usize, 1..3 * MS), 1..40),
    ) {
        const STACKS: [&str; 4] = ["main", "main;a", "main;a;b", "other;a"];
        let costs: Vec<_> = costs.iter().map(|&(at, stack, cost)| (at, STACKS[stack], cost)).collect();
        let profile = timed(time(), &costs);
        let (read, _) = chrome_trace::read(&written(&profile, 0).0).unwrap();
        prop_assert_eq!(common::totals(&read), common::totals(&profile));
    }
}

#[test]
fn a_number_that_cannot_be_read_is_told_with_its_reason() {
    let error = |text: &str| chrome_trace::read(text.as_bytes()).unwrap_err().to_string();
    let below = r#"{"traceEvents":[{"ph":"X","name":"f","pid":1,"tid":1,"ts":10,"dur":-5}]}"#;
    assert_eq!(error(below), "event 0: its duration is below 0");
    let samples: Vec<_> = (0..140)
        .map(|at| format!(r#"{{"name":"e{at}","cpu":0,"tid":1,"ts":{at},"sf":"1","weight":1}}"#))
        .collect();
    let many = format!(
        r#"{{"traceEvents":[],"samples":[{}],"stackFrames":{{"1":{{"name":"main"}}}}}}"#,
        samples.join(",")
    );
    assert_eq!(error(&many), "there are more events than the 128 that can be read");
}
