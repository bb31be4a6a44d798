//! The finished profile keeps when time passed: of each node, exactly its self cost.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use treering_formats::trg;
use treering_profile::{MetricId, NodeId, Profile};
use treering_runtime::{Function, Options, finish, mark, set_profiler};

fn function(name: &str) -> Function {
    Function::new(name.as_bytes(), b"", 1)
}

fn work(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {}
}

/// Calls at random, down to some depth; some are refused.
fn calls(random: &mut fastrand::Rng, functions: &[Function], depth: u32) {
    for _ in 0..random.usize(1..6) {
        let call = functions[random.usize(..functions.len())].enter();
        if depth > 0 && random.bool() {
            calls(random, functions, depth - 1);
        }
        if random.u32(..40) == 0 {
            work(Duration::from_micros(random.u64(..3000)));
        }
        if random.u32(..10) == 0 { call.withdraw() } else { call.leave() }
    }
}

fn in_slots(profile: &Profile, metric: MetricId) -> BTreeMap<NodeId, u64> {
    let mut sums = BTreeMap::new();
    for cost in &profile.timeline.as_ref().expect("time is kept").costs {
        assert_eq!(cost.metric, metric);
        *sums.entry(cost.node).or_insert(0) += cost.amount;
    }
    sums
}

fn name(profile: &Profile, node: NodeId) -> &str {
    &profile.strings[profile.functions[profile.tree.function(node)].name]
}

/// The next profile of the process begins anew, and has as many marks as there is room for.
fn many_marks() {
    let output = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("marks.trg");
    set_profiler(Options { output: Some(output.clone()), keeps_time: true, ..Options::default() });
    let call = function("many").enter();
    work(Duration::from_millis(2));
    (0..20_000).for_each(|number| mark(&format!("mark {number}")));
    call.leave();
    assert!(finish());
    let (profile, _) = trg::read(&std::fs::read(&output).expect("a profile")).expect("a sound profile");
    profile.validate().expect("a sound profile");
    let dropped = "3616 marks were dropped: there is room for 16384";
    assert!(profile.metadata.notes.iter().any(|note| note.0 == dropped), "{:?}", profile.metadata.notes);
    let timeline = profile.timeline.as_ref().expect("time is kept");
    let names = timeline.marks.iter().map(|mark| &profile.strings[mark.name]);
    assert!(names.eq((0..16_384).map(|number| format!("mark {number}"))));
    let mut nodes = timeline.costs.iter().map(|cost| name(&profile, cost.node));
    assert!(nodes.all(|name| name == "many"), "costs of the profile before");
}

#[test]
fn costs_in_slots_add_up_to_those_of_each_node_and_marks_are_where_they_were_set() {
    let output = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("course.trg");
    set_profiler(Options { output: Some(output.clone()), keeps_time: true, ..Options::default() });
    let functions: Vec<Function> = (0..300).map(|number| function(&format!("f{number}"))).collect();
    let mut random = fastrand::Rng::with_seed(44);
    mark("at random");
    let outermost = function("outermost").enter();
    (0..200).for_each(|_| calls(&mut random, &functions, 6));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            mark("in a thread");
            let call = function("thread").enter();
            work(Duration::from_millis(5));
            call.leave();
        });
    });
    outermost.leave();
    std::thread::sleep(Duration::from_millis(10));
    mark(&"long ".repeat(100));
    mark("two\nlines");
    let first = function("first").enter();
    work(Duration::from_millis(4));
    mark("");
    first.leave();
    // One that is open when the profile is finished.
    let last = function("last").enter();
    work(Duration::from_millis(4));
    assert!(finish());
    last.leave();

    let bytes = std::fs::read(&output).expect("a profile");
    let (profile, report) = trg::read(&bytes).expect("a sound profile");
    profile.validate().expect("a sound profile");
    assert!(!report.unfinished && report.notes.is_empty(), "{report:?}");
    let time = profile.metrics().next().expect("there is time").0;
    let sums = in_slots(&profile, time);
    for node in profile.tree.nodes() {
        let (cost, sum) = (profile.tree.self_cost(time, node), sums.get(&node).copied().unwrap_or(0));
        assert_eq!(sum, cost, "{}", name(&profile, node));
    }

    let timeline = profile.timeline.as_ref().expect("time is kept");
    let times = |function: &str| {
        let of = timeline.costs.iter().filter(|cost| name(&profile, cost.node) == function);
        let slots: Vec<u64> = of.map(|cost| u64::from(cost.slot) * timeline.slot_ns).collect();
        slots.first().copied().zip(slots.last().copied()).unwrap_or_else(|| panic!("{function}"))
    };
    let (first, last) = (times("first"), times("last"));
    assert!(first.1 <= last.0 && last.1 < timeline.length_ns, "{first:?} {last:?} {timeline:?}");
    let slept = first.0 - times("outermost").1;
    assert!(
        slept + 2 * timeline.slot_ns >= 10_000_000,
        "the time outside of all functions is no cost: {slept}"
    );

    let marks: Vec<_> =
        timeline.marks.iter().map(|mark| (&profile.strings[mark.name], mark.thread)).collect();
    let (main, thread) = (marks[0].1, marks[1].1);
    assert_ne!(main, thread);
    let long = "long ".repeat(21);
    let expected = [
        ("at random", main),
        ("in a thread", thread),
        (&long[..104], main),
        ("two\nlines", main),
        ("", main),
    ];
    assert_eq!(marks, expected);
    let part = profile.part(&profile.phase("two\nlines")).expect("a phase");
    assert!(part.tree.nodes().any(|node| name(&part, node) == "first"));
    assert_eq!(timeline.lives.len(), 2);
    assert!(timeline.lives.iter().all(|life| life.start_ns.is_some()));
    assert_eq!(timeline.lives.iter().filter(|life| life.end_ns.is_some()).count(), 1);

    many_marks();
}
