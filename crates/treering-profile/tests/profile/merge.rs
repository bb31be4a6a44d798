//! Merging is order-free, and collapsing threads keeps every cost.

use std::collections::BTreeMap;

use proptest::prelude::*;
use treering_profile::{
    AddressCost, Frame, Function, Line, LineId, Metric, MetricId, NodeId, Profile, RecursionRule,
    StatedAddress, Unit, merge,
};

/// A stack with the thread it was on, its functions and their lines, and its weight.
type Stack = (u8, Vec<(u8, u8)>, u64);

fn stacks() -> impl Strategy<Value = Vec<Stack>> {
    let stack = prop::collection::vec((0..5_u8, 0..3_u8), 0..8);
    prop::collection::vec((0..3_u8, stack, 1..1000_u64), 0..30)
}

/// A profile whose tables depend on the order in which functions occur.
fn profile(stacks: &[Stack], metric: &str) -> Profile {
    let mut profile = Profile::new(RecursionRule::Full);
    let metric = profile.add_metric(Metric::exact(metric, Unit::Count));
    let mut threads = BTreeMap::new();
    for (thread, stack, weight) in stacks {
        let thread =
            *threads.entry(thread).or_insert_with(|| profile.add_single_thread(&format!("thread {thread}")));
        let mut call_site: Option<LineId> = None;
        let mut frames = Vec::new();
        for (function, line) in stack {
            let name = profile.strings.intern(&format!("f{function}"));
            let file = profile.strings.intern(&format!("{function}.c"));
            let function = profile.functions.intern(Function { file, ..Function::named(name) });
            frames.push(Frame { function, call_site });
            call_site = (*line > 0).then(|| profile.lines.intern(Line { file, line: u32::from(*line) }));
        }
        profile.add_stack(thread, &frames, call_site, &[(metric, *weight)]);
        if let Some(at) = frames.last() {
            let (function, holder, line) = (at.function, frames[0].function, call_site);
            let address = StatedAddress(*weight % 7);
            let row = AddressCost { thread, function, holder, address, line, metric, cost: *weight };
            profile.address_costs.push(row);
        }
    }
    profile
}

/// The content of a profile, in a form that does not depend on the order of its tables: by thread
/// name, stack with call sites, and metric, the cost; and the same by line.
fn canonical(profile: &Profile, threads_apart: bool) -> BTreeMap<String, u64> {
    let mut costs = BTreeMap::new();
    let threads = profile.node_threads();
    let key = |node: NodeId, metric: MetricId| {
        let thread = &profile.threads[threads[node.index()].index()];
        let thread = if threads_apart { thread.name.as_str() } else { "any" };
        format!("{thread} {} {}", stack(profile, node), profile.metrics[metric.index()].name)
    };
    for (metric, _) in profile.metrics() {
        for node in profile.tree.nodes() {
            let cost = profile.tree.self_cost(metric, node);
            if cost > 0 {
                *costs.entry(key(node, metric)).or_default() += cost;
            }
        }
    }
    for cost in &profile.line_costs {
        let line = profile.lines[cost.line];
        let place = format!("{}:{}", &profile.strings[line.file], line.line);
        *costs.entry(format!("{} at {place}", key(cost.node, cost.metric))).or_default() += cost.cost;
    }
    for row in &profile.address_costs {
        let name = |function| &profile.strings[profile.functions[function].name];
        let thread = &profile.threads[row.thread.index()].name;
        let thread = if threads_apart { thread } else { "any" };
        let line = row.line.map_or(0, |line| profile.lines[line].line);
        let (function, holder) = (name(row.function), name(row.holder));
        let metric = &profile.metrics[row.metric.index()].name;
        let place = format!("{thread} {metric} {function} in {holder} at {:#x} line {line}", row.address.0);
        *costs.entry(place).or_default() += row.cost;
    }
    costs
}

fn stack(profile: &Profile, node: NodeId) -> String {
    let frame = |at: NodeId| {
        let function = profile.functions[profile.tree.function(at)];
        let site = profile.tree.call_site(at).map_or(0, |line| profile.lines[line].line);
        format!("{site}>{}", &profile.strings[function.name])
    };
    let mut frames: Vec<_> = profile.tree.path(node).map(frame).collect();
    frames.reverse();
    frames.join(";")
}

/// The number of a thread made by [`profile`].
fn number(name: &str) -> u32 {
    name.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

proptest! {
    #[test]
    fn merging_is_order_free(a in stacks(), b in stacks(), c in stacks()) {
        let (a, b, c) = (profile(&a, "samples"), profile(&b, "samples"), profile(&c, "other"));
        let once = merge(&[&a, &b, &c]);
        prop_assert_eq!(once.validate(), Ok(()));
        let expected = canonical(&once, true);
        for order in [[&b, &a, &c], [&c, &b, &a], [&b, &c, &a]] {
            prop_assert_eq!(&canonical(&merge(&order), true), &expected);
        }
        let in_steps = merge(&[&a, &merge(&[&b, &c])]);
        prop_assert_eq!(&canonical(&in_steps, true), &expected);
    }

    #[test]
    fn merging_adds_up(a in stacks(), b in stacks()) {
        let (a, b) = (profile(&a, "samples"), profile(&b, "samples"));
        let mut sums = canonical(&a, true);
        for (key, cost) in canonical(&b, true) {
            *sums.entry(key).or_default() += cost;
        }
        prop_assert_eq!(canonical(&merge(&[&a, &b]), true), sums);
    }

    #[test]
    fn collapsing_threads_keeps_costs(stacks in stacks()) {
        let apart = profile(&stacks, "samples");
        let together = apart.collapse_threads(|_| Some(0));
        prop_assert_eq!(together.validate(), Ok(()));
        prop_assert!(together.threads.len() <= 1);
        prop_assert_eq!(canonical(&together, false), canonical(&apart, false));
        let same = apart.collapse_threads(|thread| Some(number(&thread.name)));
        prop_assert_eq!(canonical(&same, true), canonical(&apart, true));
        let none = apart.collapse_threads(|_| None);
        prop_assert_eq!(none.run_cost(MetricId::new(0)), 0);
    }
}

/// A profile of `samples` samples of a metric, which `counter` counts; without a counter, it is exact.
fn sampled(metric: &str, counter: Option<&str>, samples: u64) -> Profile {
    let mut profile = Profile::new(RecursionRule::Full);
    let counter = counter.map(|name| profile.add_metric(Metric::exact(name, Unit::Count)));
    let metric = profile.add_metric(match counter {
        Some(counter) => Metric::sampled(metric, Unit::Nanoseconds, counter, Some(10)),
        None => Metric::exact(metric, Unit::Nanoseconds),
    });
    let main = profile.strings.intern("main");
    let main = Frame { function: profile.functions.intern(Function::named(main)), call_site: None };
    let thread = profile.add_single_thread("main");
    let counts = counter.map(|counter| (counter, samples));
    let costs: Vec<_> = counts.into_iter().chain([(metric, samples * 10)]).collect();
    profile.add_stack(thread, &[main], None, &costs);
    profile
}

/// Each metric of a merged profile with its cost, and with the samples that it is said to be the sum of.
fn sums(profiles: &[&Profile]) -> Vec<(String, u64, Option<u64>)> {
    let merged = merge(profiles);
    assert_eq!(merged.validate(), Ok(()));
    let samples = |metric: &Metric| metric.counted_by().map(|counter| merged.run_cost(counter));
    let sum = |(id, metric): (MetricId, &Metric)| (metric.name.clone(), merged.run_cost(id), samples(metric));
    let mut sums: Vec<_> = merged.metrics().map(sum).collect();
    sums.sort();
    sums
}

#[test]
fn samples_of_different_metrics_are_not_added_up() {
    let (clock, faults) = (sampled("clock", Some("samples"), 5), sampled("faults", Some("samples"), 3));
    let apart = [
        ("clock".to_owned(), 50, Some(5)),
        ("clock samples".to_owned(), 5, None),
        ("faults".to_owned(), 30, Some(3)),
        ("faults samples".to_owned(), 3, None),
    ];
    assert_eq!(sums(&[&clock, &faults]), apart);
    assert_eq!(sums(&[&faults, &clock]), apart);
}

#[test]
fn samples_of_one_metric_are_added_up_whatever_they_are_called() {
    let several = sampled("clock", Some("clock samples"), 4);
    let alone = sampled("clock", Some("samples"), 5);
    let together = [("clock".to_owned(), 90, Some(9)), ("clock samples".to_owned(), 9, None)];
    assert_eq!(sums(&[&several, &alone]), together);
    let alike = [("clock".to_owned(), 100, Some(10)), ("samples".to_owned(), 10, None)];
    assert_eq!(sums(&[&alone, &alone]), alike);
}

#[test]
fn costs_without_samples_beside_sampled_ones_are_noted() {
    let (known, unknown) = (sampled("clock", Some("samples"), 5), sampled("clock", None, 7));
    let notes = |profiles: &[&Profile]| format!("{:?}", merge(profiles).metadata.notes);
    assert!(notes(&[&known, &unknown]).contains("1 of 2 profiles do not tell the samples of clock"));
    assert!(!notes(&[&known, &known]).contains("samples of clock"));
}
