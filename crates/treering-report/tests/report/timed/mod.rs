//! A small profile with everything that a collector of calls can tell.

use treering_profile::{
    Benchmark, CallBias, Metric, NodeId, NodeMemory, Point, Ports, Profile, RecursionRule, Run, SizeCost,
    Unit,
};

/// `main` calls `work` twice and `leaf` once; `work` calls `leaf` once each time. A call costs
/// 10 ns, of which 2.5 fall inside.
pub(crate) fn timed() -> Profile {
    let mut profile = treering_testing::timed_trace_with(
        RecursionRule::Full,
        "
            0 enter main
          200   enter work
          300     enter leaf
          320     leave
         3160   leave
         3300   enter work
        11000     enter leaf
        11030     leave
        11253   leave
        12000   enter leaf
        12010   leave
        16000 leave
        ",
    );
    profile.runs[0] = Run { command: vec!["./demo".to_owned()], duration_ns: 17_000, ..Run::default() };
    describe(&mut profile);
    add_details(&mut profile);
    assert_eq!(profile.validate(), Ok(()));
    profile
}

/// `main` calls `linear` and `square`, which both call `work`: the one so that it takes 10 ns for
/// each element of its argument, the other so that it takes 10 ns for each pair of elements.
pub(crate) fn growing() -> Profile {
    let mut profile = treering_testing::timed_trace_with(
        RecursionRule::Full,
        "
             0 enter main
             0   enter linear
             0     enter work
          5000     leave
          5000   leave
          5000   enter square
          5000     enter work
         95000     leave
         95000   leave
        100000 leave
        ",
    );
    let nodes: Vec<NodeId> = profile.tree.nodes().collect();
    let named = |node: &NodeId, name: &str| {
        let function = &profile.functions.entries()[profile.tree.function(*node).index()];
        &profile.strings[function.name] == name
    };
    let below = |name: &str| {
        let is_it = |node: &&NodeId| {
            named(node, "work") && profile.tree.parent(**node).is_some_and(|parent| named(&parent, name))
        };
        *nodes.iter().find(is_it).expect("it called work")
    };
    let (linear, square) = (below("linear"), below("square"));
    let sizes = &mut profile.activations.as_mut().expect("calls were timed").sizes;
    for bucket in 2..6_u8 {
        let size = 1_u64 << bucket;
        sizes.push(SizeCost { node: linear, bucket, calls: 1, total_cost: 10 * size });
        sizes.push(SizeCost { node: square, bucket, calls: 1, total_cost: 10 * size * size });
    }
    assert_eq!(profile.validate(), Ok(()));
    profile
}

fn describe(profile: &mut Profile) {
    profile.metadata.call_bias = Some(CallBias {
        inside_ns: 2.5,
        outside_ns: 7.5,
        empty_inside_ns: 9.0,
        empty_outside_ns: 8.25,
        spread_ns: 0.5,
    });
    profile.metadata.benchmark = Some(Benchmark {
        name: "sort".to_owned(),
        description: "sorts\nnumbers".to_owned(),
        parameters: vec![("n".to_owned(), "3".to_owned())],
        results: vec![("swaps".to_owned(), "2".to_owned()), ("ok".to_owned(), "yes".to_owned())],
    });
    profile.metadata.losses.unbalanced_leaves = 2;
    profile.metadata.losses.unwound_activations = 1;
}

fn add_details(profile: &mut Profile) {
    let [resident, in_all] = ["resident memory", "virtual memory"]
        .map(|name| profile.add_metric(Metric::level(name, Unit::Bytes)));
    let [main, work, leaf] = [1, 2, 3].map(NodeId::new);
    let thread = treering_profile::ThreadId::new(0);
    for (time_ns, node, text, pages) in
        [(100, main, "before", 1), (9000, work, "", 3), (5000, leaf, "in\tleaf", 2)]
    {
        let description = profile.strings.intern(text);
        let mut values = vec![(resident, 4096 * pages)];
        values.extend((pages != 2).then_some((in_all, 4096 * 100 * pages)));
        profile.points.push(Point { time_ns, thread, node, description, values });
    }
    *profile.ports.row(leaf) = Ports { exits: 3, redos: 1200, fails: 1, exceptions: 0, cuts: 0 };
    *profile.memory.row(leaf) = NodeMemory { live_bytes: 16, peak_bytes: 4096 };
    let sizes = &mut profile.activations.as_mut().expect("calls were timed").sizes;
    sizes.push(SizeCost { node: work, bucket: 3, calls: 1, total_cost: 2960 });
    sizes.push(SizeCost { node: work, bucket: 10, calls: 1, total_cost: 7953 });
}
