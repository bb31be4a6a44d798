//! Details beside the tree survive merging and collapsing.
#![expect(clippy::unwrap_used, reason = "a test that fails here has shown what is wrong")]

use proptest::prelude::*;
use treering_profile::{
    ActivationStatistics, Activations, Benchmark, CallBias, Frame, Function, Metric, MetricId, NodeId,
    NodeMemory, Point, Ports, Profile, RecursionRule, SizeCost, Unit, merge,
};

fn of(costs: &[u64]) -> ActivationStatistics {
    let mut statistics = ActivationStatistics::default();
    for &cost in costs {
        statistics.add(cost);
        statistics.total += cost;
    }
    statistics
}

fn costs() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(prop_oneof![0..1000_u64, 0..1_000_000_000_u64], 0..40)
}

/// Equal but for the rounding of the floats, and for calmness: that depends on the least so far.
fn assert_agree(a: &ActivationStatistics, b: &ActivationStatistics) -> Result<(), TestCaseError> {
    let whole = |s: &ActivationStatistics| (s.timed, s.total, s.least, s.greatest);
    prop_assert_eq!(whole(a), whole(b));
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0);
    prop_assert!(close(a.mean, b.mean) && close(a.squares, b.squares), "{a:?} {b:?}");
    Ok(())
}

proptest! {
    #[test]
    fn merging_statistics_equals_taking_in_all_at_once(a in costs(), b in costs(), c in costs()) {
        let [x, y, z] = [&a, &b, &c].map(|costs| of(costs));
        let joined = |parts: &[ActivationStatistics]| {
            let mut all = ActivationStatistics::default();
            parts.iter().for_each(|part| all.merge(part));
            all
        };
        let all = of(&[a, b, c].concat());
        // Only what is calm where the least lies between the lowest powers of two is calm for all.
        let timed = || [x, y, z].into_iter().filter(|part| part.timed > 0);
        let lowest = timed().map(|part| part.least.leading_zeros()).max();
        let calmest = || timed().filter(|part| Some(part.least.leading_zeros()) == lowest);
        let calm = (calmest().map(|part| part.calm).sum(), calmest().map(|part| part.calm_total).sum());
        for order in [[x, y, z], [z, x, y], [y, z, x], [joined(&[x, y]), z, of(&[])], [x, joined(&[y, z]), of(&[])]] {
            let merged = joined(&order);
            assert_agree(&merged, &all)?;
            prop_assert_eq!((merged.calm, merged.calm_total), calm);
            prop_assert!(merged.calm_mean().is_none_or(|calm| calm <= merged.mean), "{merged:?}");
            prop_assert!(merged.is_consistent());
        }
    }

    #[test]
    fn merging_biases_is_order_free(numbers in prop::collection::vec(0.0..50.0_f64, 15), shift in prop::array::uniform3(0.0..60.0_f64)) {
        let bias = |at: usize| CallBias {
            inside_ns: numbers[at] - shift[at / 5],
            outside_ns: numbers[at + 1] + shift[at / 5],
            empty_inside_ns: numbers[at + 2],
            empty_outside_ns: numbers[at + 3],
            spread_ns: numbers[at + 4],
        };
        let [a, b, c] = [0, 5, 10].map(bias);
        let near = |x: f64, y: f64| (x - y).abs() < 1e-9;
        let same = |x: CallBias, y: CallBias| {
            near(x.pair_ns(), y.pair_ns()) && near(x.inside_ns, y.inside_ns) && near(x.spread_ns, y.spread_ns)
        };
        prop_assert!(same(a.join(&b).join(&c), c.join(&b).join(&a)) && same(a.join(&b.join(&c)), a.join(&b).join(&c)));
        let joined = a.join(&b);
        prop_assert!(joined.is_sound() && joined.pair_ns() <= a.pair_ns().min(b.pair_ns()) + 1e-9);
        prop_assert!(joined.inside_ns.abs() <= a.inside_ns.abs().min(b.inside_ns.abs()));
    }
}

/// A profile of `main` calling `work`, with something in every table.
fn profile(weight: u64) -> (Profile, NodeId) {
    let mut profile = Profile::new(RecursionRule::Full);
    let time = profile.add_metric(Metric::exact("time", Unit::Nanoseconds));
    let resident = profile.add_metric(Metric::level("resident memory", Unit::Bytes));
    let thread = profile.add_single_thread("main");
    let frames = ["main", "work"].map(|name| {
        let name = profile.strings.intern(name);
        Frame::new(profile.functions.intern(Function::named(name)))
    });
    let node = profile.add_stack(thread, &frames, None, &[(time, weight)]);
    let mut activations = Activations::new(time);
    *activations.nodes.row(node) = of(&[weight, 2 * weight]);
    activations.sizes.push(SizeCost { node, bucket: 4, calls: 2, total_cost: 3 * weight });
    profile.activations = Some(activations);
    *profile.ports.row(node) = Ports { exits: 1, redos: weight, fails: 0, exceptions: 0, cuts: 2 };
    *profile.memory.row(node) = NodeMemory { live_bytes: weight, peak_bytes: 3 * weight };
    let description = profile.strings.intern(&format!("after {weight}"));
    profile.points.push(Point {
        time_ns: weight,
        thread,
        node,
        description,
        values: vec![(resident, 4096 * weight)],
    });
    assert_eq!(profile.validate(), Ok(()));
    (profile, node)
}

#[test]
fn threads_added_up_keep_what_is_known_of_nodes() {
    let (a, b) = (profile(10).0, profile(30).0);
    let both = merge(&[&a, &b]);
    assert_eq!(both.validate(), Ok(()));
    let together = both.collapse_threads(|_| Some(0));
    assert_eq!(together.validate(), Ok(()));
    let (node, statistics) = together.activations.as_ref().unwrap().nodes.filled().next().unwrap();
    assert_eq!((statistics.timed, statistics.total, statistics.least, statistics.greatest), (4, 120, 10, 60));
    let sizes = &together.activations.as_ref().unwrap().sizes;
    assert_eq!(sizes[..], [SizeCost { node, bucket: 4, calls: 4, total_cost: 120 }]);
    assert_eq!(together.ports.get(node).counts(), [2, 40, 0, 0, 4]);
    assert_eq!(together.memory.get(node), NodeMemory { live_bytes: 40, peak_bytes: 90 });
    let points: Vec<_> =
        together.points.iter().map(|point| (point.time_ns, point.node, point.values.clone())).collect();
    let resident = together.find_metric("resident memory").unwrap();
    assert_eq!(points, [(10, node, vec![(resident, 40960)]), (30, node, vec![(resident, 122_880)])]);
    let left_out = both.collapse_threads(|_| None);
    assert!(left_out.points.is_empty() && left_out.ports.is_empty() && left_out.memory.is_empty());
}

#[test]
fn points_of_merged_profiles_keep_their_threads_and_texts() {
    let (a, b) = (profile(1).0, profile(2).0);
    let merged = merge(&[&a, &b]);
    let said: Vec<_> =
        merged.points.iter().map(|point| (point.thread.raw(), &merged.strings[point.description])).collect();
    assert_eq!(said, [(0, "after 1"), (1, "after 2")]);
    let owners = merged.node_threads();
    assert!(merged.points.iter().all(|point| owners[point.node.index()] == point.thread));
}

#[test]
fn statistics_in_different_metrics_are_not_mixed() {
    let (mut a, b) = (profile(1).0, profile(2).0);
    a.metrics[0].name = "instructions".to_owned();
    for order in [[&a, &b], [&b, &a]] {
        let merged = merge(&order);
        assert_eq!(merged.validate(), Ok(()));
        let activations = merged.activations.as_ref().unwrap();
        assert_eq!(merged.metrics[activations.metric.index()].name, "instructions");
        assert_eq!(activations.nodes.filled().count(), 1);
        assert_eq!(merged.metadata.notes.len(), 1);
    }
}

#[test]
fn a_bias_holds_for_merged_profiles_as_far_as_all_know_theirs() {
    let (mut a, mut b) = (profile(1), profile(2));
    let bias = CallBias { inside_ns: 2.0, outside_ns: 3.0, spread_ns: 0.5, ..CallBias::default() };
    a.0.metadata.call_bias = Some(bias);
    assert_eq!(merge(&[&a.0, &b.0]).metadata.call_bias, None, "nothing was called");
    a.0.tree.add_calls(a.1, 1, 0);
    assert_eq!(merge(&[&a.0, &b.0]).metadata.call_bias, Some(bias), "stacks have no bias");
    b.0.tree.add_calls(b.1, 1, 0);
    let careful = merge(&[&a.0, &b.0]).metadata.call_bias.unwrap();
    assert_eq!((careful.pair_ns(), careful.spread_ns), (0.0, 5.5));
}

#[test]
fn benchmarks_of_merged_profiles_list_what_differs() {
    let benchmark = |n: &str| Benchmark {
        name: "sort".to_owned(),
        description: "numbers".to_owned(),
        parameters: vec![("n".to_owned(), n.to_owned()), ("seed".to_owned(), "7".to_owned())],
        results: Vec::new(),
    };
    let (mut a, mut b) = (profile(1).0, profile(2).0);
    (a.metadata.benchmark, b.metadata.benchmark) = (Some(benchmark("20")), Some(benchmark("10")));
    let merged = merge(&[&a, &b, &profile(3).0]).metadata.benchmark.unwrap();
    assert_eq!(
        (merged.name.as_str(), &merged.parameters[0].1, &merged.parameters[1].1),
        ("sort", &"10 | 20".to_owned(), &"7".to_owned())
    );
}

/// Each case breaks one thing that `validate` must notice.
#[test]
fn references_to_what_is_missing_are_noticed() {
    let breaks: [fn(&mut Profile); 8] = [
        |profile| profile.points[0].node = NodeId::new(99),
        |profile| profile.points[0].values.push((MetricId::new(9), 0)),
        |profile| *profile.ports.row(NodeId::new(99)) = Ports { exits: 1, ..Ports::default() },
        |profile| profile.memory.row(NodeId::new(99)).live_bytes = 1,
        |profile| profile.activations.as_mut().unwrap().sizes[0].bucket = 64,
        |profile| profile.activations.as_mut().unwrap().nodes.row(NodeId::new(2)).squares = f64::INFINITY,
        |profile| profile.tree.add_self_cost(MetricId::new(1), NodeId::new(0), 1),
        |profile| profile.metadata.call_bias = Some(CallBias { spread_ns: -1.0, ..CallBias::default() }),
    ];
    for (at, break_it) in breaks.iter().enumerate() {
        let mut broken = profile(1).0;
        break_it(&mut broken);
        assert!(broken.validate().is_err(), "case {at}");
    }
}
