//! Corrected costs are the true ones where the bias is known, and never less than nothing.
#![expect(clippy::unwrap_used, reason = "a test that fails here has shown what is wrong")]

use proptest::prelude::*;
use treering_analysis::{
    Basis, CallGraph, Corrected, Details, FunctionSet, Presentation, Selection, TotalSource, correct,
    function_name,
};
use treering_profile::{CallBias, Metric, MetricId, NodeId, Profile, RecursionRule, Timeline, Unit};
use treering_testing::timed_trace_with;

const TIME: MetricId = MetricId::new(0);

/// The cost of a call in these tests, in nanoseconds: before and after each reading of the clock.
const ENTER: [u64; 2] = [3, 1];
const LEAVE: [u64; 2] = [2, 4];

fn bias() -> CallBias {
    CallBias {
        inside_ns: (ENTER[1] + LEAVE[0]) as f64,
        outside_ns: (ENTER[0] + LEAVE[1]) as f64,
        empty_inside_ns: 9.0,
        empty_outside_ns: 8.0,
        spread_ns: 0.0,
    }
}

/// The entered function, or nothing for a leave; and how long after the event before.
type Event = (Option<u8>, u64);

/// Events that end with every function left.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = (prop_oneof![3 => (0..4_u8).prop_map(Some), 2 => Just(None)], 0..100_u64);
    prop::collection::vec(event, 0..80).prop_map(|mut events| {
        let mut depth = 0;
        events.retain(|(entered, _)| {
            let keep = entered.is_some() || depth > 0;
            depth = if entered.is_some() { depth + 1 } else { depth.max(1) - 1 };
            keep
        });
        events.extend(std::iter::repeat_n((None, 5), depth));
        events
    })
}

/// The trace of the events; with what reading the clock costs where `measured`.
fn trace(events: &[Event], measured: bool) -> String {
    let (mut text, mut now) = (String::new(), 0);
    for (entered, after) in events {
        let [before, behind] = match entered {
            _ if !measured => [0, 0],
            Some(_) => ENTER,
            None => LEAVE,
        };
        now += after + before;
        text += &match entered {
            Some(function) => format!("{now} enter f{function}\n"),
            None => format!("{now} leave\n"),
        };
        now += behind;
    }
    text
}

fn measured(rule: RecursionRule, events: &[Event]) -> Profile {
    let mut profile = timed_trace_with(rule, &trace(events, true));
    profile.metadata.call_bias = Some(bias());
    profile
}

/// Every node but the roots, whose time begins with the first event and ends with the last.
fn called(profile: &Profile) -> impl Iterator<Item = NodeId> + '_ {
    profile.tree.nodes().filter(|&node| profile.tree.parent(node).is_some())
}

proptest! {
    #[test]
    fn a_known_bias_is_removed_to_the_last_nanosecond(events in events()) {
        for rule in [RecursionRule::Full, RecursionRule::Direct] {
            let (truth, measured) = (timed_trace_with(rule, &trace(&events, false)), measured(rule, &events));
            let corrected = correct(&measured);
            for node in called(&truth) {
                prop_assert_eq!(corrected.profile.tree.self_cost(TIME, node), truth.tree.self_cost(TIME, node));
            }
        }
    }

    #[test]
    fn means_are_those_of_the_undisturbed_program(events in events()) {
        let truth = timed_trace_with(RecursionRule::Full, &trace(&events, false));
        let measured = measured(RecursionRule::Full, &events);
        let corrected = correct(&measured);
        let of = |profile: &Profile, node| profile.activations.as_ref().unwrap().nodes.get(node);
        for node in called(&truth) {
            let (is, should, raw) = (of(&corrected.profile, node), of(&truth, node), of(&measured, node));
            prop_assert!((is.mean - should.mean).abs() < 1e-6, "{is:?} {should:?}");
            prop_assert_eq!(is.total, should.total);
            prop_assert_eq!((is.least, is.greatest, is.squares), (raw.least, raw.greatest, raw.squares));
        }
    }

    #[test]
    fn corrected_costs_add_up_and_the_truth_is_within_the_uncertainty(
        events in events(),
        inside in -100.0..200.0_f64,
        outside in 0.0..200.0_f64,
        empty in 0.0..200.0_f64,
    ) {
        for rule in [RecursionRule::Full, RecursionRule::Direct, RecursionRule::SwiClassic, RecursionRule::Flat] {
            let mut raw = measured(rule, &events);
            let outside_ns = outside.max(-inside);
            let said = CallBias { inside_ns: inside, outside_ns, empty_inside_ns: empty, ..bias() };
            raw.metadata.call_bias = Some(said);
            let corrected = correct(&raw);
            let profile = &corrected.profile;
            prop_assert_eq!(profile.validate(), Ok(()));
            prop_assert_eq!(profile.run_cost(TIME) + corrected.removed, raw.run_cost(TIME));
            for node in raw.tree.nodes() {
                let (cost, before) = (profile.tree.self_cost(TIME, node), raw.tree.self_cost(TIME, node));
                prop_assert!(cost.abs_diff(before) <= corrected.uncertainty[node.index()]);
                prop_assert!(cost <= before || inside < 0.0 && rule != RecursionRule::Flat);
            }
            let basis = corrected.basis(TIME);
            let graph = CallGraph::of(profile, &basis, Presentation::Contexts).with_reliability(&corrected);
            for cost in &graph.functions {
                prop_assert!(cost.self_cost <= cost.total_cost && cost.total_cost.cost <= basis.run.cost);
            }
            let told: u64 = graph.functions.iter().filter_map(|cost| cost.reliability.uncertainty).sum();
            let outside: u64 = raw.threads.iter().map(|thread| corrected.uncertainty[thread.root.index()]).sum();
            let all: u64 = corrected.uncertainty.iter().sum();
            prop_assert!(told == all || told == all - outside, "{told} {all} {outside}");
        }
    }

    #[test]
    fn a_selected_part_keeps_the_uncertainty_of_its_costs(events in events(), hidden in 0..4_u8) {
        let profile = measured(RecursionRule::Full, &events);
        let corrected = correct(&profile);
        let name = format!("f{hidden}");
        let hide = Some(FunctionSet::matching(&profile, |text| text == name));
        let part = corrected.part(&Selection { hide, ..Selection::default() }).unwrap();
        prop_assert_eq!(part.uncertainty.iter().sum::<u64>(), corrected.uncertainty.iter().sum::<u64>());
        prop_assert_eq!(part.profile.run_cost(TIME), corrected.profile.run_cost(TIME));
        prop_assert_eq!(part.uncertainty.len(), part.profile.tree.len());
    }
}

/// `main` calls `leaf` four times, for 10 ns, and `work` once, for 1000.
fn leaves() -> Profile {
    let mut events = vec![(Some(0), 0)];
    events.extend([(Some(1), 50), (None, 10)].repeat(4));
    events.extend([(Some(2), 50), (None, 1000), (None, 50)]);
    measured(RecursionRule::Full, &events)
}

/// The costs of `main`, which works 50 ns before each of four calls and 50 in the end, and `leaf`, which
/// works for so long, take in themselves: measured as where the first 5 ns of a call are begun
/// before the clock was read, and a call costs 2 ns more in its caller.
fn begun_early(leaf_ns: u64) -> Profile {
    let mut text = "0 enter main\n".to_owned();
    let mut now = 0;
    for _ in 0..4 {
        text += &format!("{} enter leaf\n", now + 50 + 5);
        text += &format!("{} leave\n", now + 50 + leaf_ns);
        now += 50 + leaf_ns + 2;
    }
    text += &format!("{} leave\n", now + 50);
    let mut profile = timed_trace_with(RecursionRule::Full, &text);
    profile.metadata.call_bias = Some(CallBias { inside_ns: -5.0, outside_ns: 7.0, ..bias() });
    profile
}

fn self_costs_of(profile: &Profile) -> [u64; 2] {
    [1, 2].map(|node| profile.tree.self_cost(TIME, NodeId::new(node)))
}

#[test]
fn a_calls_cost_in_its_caller_is_moved_to_it() {
    let measured = begun_early(100);
    assert_eq!(self_costs_of(&measured), [5 * 50 + 4 * 7, 4 * 95]);
    let corrected = correct(&measured);
    // The one call of `main` has no caller that holds anything.
    assert_eq!(self_costs_of(&corrected.profile), [5 * 50, 4 * 100]);
    assert_eq!(corrected.removed, 4 * 2);
    let leaf = corrected.profile.activations.as_ref().unwrap().nodes.get(NodeId::new(2));
    assert_eq!((leaf.mean, leaf.total), (100.0, 400));
    let main = corrected.profile.activations.as_ref().unwrap().nodes.get(NodeId::new(1));
    assert_eq!((main.mean, main.total), (650.0, 650));
}

/// Parts of a run that follow each other were not those of the corrected whole.
#[test]
fn costs_in_slots_of_time_add_up_to_the_corrected_ones() {
    let mut profile = begun_early(100);
    let mut timeline = Timeline::new();
    let slots = [(0, 1, 37), (0, 2, 1), (1, 2, 79), (2, 1, 200), (2, 2, 300), (7, 1, 41)];
    for (slot, node, amount) in slots {
        timeline.add(slot * timeline.slot_ns, TIME, (NodeId::new(node), None), amount);
    }
    timeline.compact();
    profile.timeline = Some(timeline);
    let corrected = correct(&profile).profile.into_owned();
    let of_slots = |node: u32| -> Vec<u64> {
        let costs = corrected.timeline.iter().flat_map(|timeline| &timeline.costs);
        costs.filter(|cost| cost.node == NodeId::new(node)).map(|cost| cost.amount).collect()
    };
    assert_eq!(self_costs_of(&corrected), [250, 400]);
    // The first 37 of 278 have 250 * 37 / 278, rounded down, and so on.
    assert_eq!((of_slots(1), of_slots(2)), (vec![33, 180, 37], vec![1, 83, 316]));
    let ms = 1_000_000;
    let parts = [0..ms, ms..3 * ms, 3 * ms..9 * ms];
    let parts = parts.map(|range| corrected.part(&[range]).unwrap().run_cost(TIME));
    assert_eq!((parts, parts.iter().sum()), ([34, 579, 37], corrected.run_cost(TIME)));
}

#[test]
fn a_call_as_short_as_one_that_does_nothing_has_nothing_with_its_caller() {
    // It is 9 ns long around nothing: of calls that were measured as so long nothing is known,
    // and of those that took 11 ns that 2 are work.
    for (work, moved) in [(5, 0), (14, 0), (16, 2), (19, 5), (60, 5)] {
        let measured = begun_early(work);
        let [_, before] = self_costs_of(&measured);
        let [_, after] = self_costs_of(&correct(&measured).profile);
        assert_eq!(after - before, 4 * moved, "{work}");
    }
}

#[test]
fn nothing_is_moved_that_the_caller_does_not_have() {
    let mut measured = begun_early(100);
    measured.tree.set_self_costs(TIME, vec![0, 4 * 2 + 6, 4 * 95]);
    assert_eq!(self_costs_of(&correct(&measured).profile), [0, 4 * 95 + 6]);
    measured.tree.set_self_costs(TIME, vec![0, 3, 4 * 95]);
    assert_eq!(self_costs_of(&correct(&measured).profile), [0, 4 * 95]);
}

fn names_where(
    profile: &Profile,
    graph: &CallGraph,
    holds: impl Fn(&treering_analysis::Reliability) -> bool,
) -> Vec<String> {
    let functions = graph.functions.iter().filter(|cost| holds(&cost.reliability));
    functions.map(|cost| function_name(profile, cost.function).into_owned()).collect()
}

#[test]
fn functions_too_short_to_be_timed_are_told() {
    let profile = leaves();
    let corrected = correct(&profile);
    let graph = CallGraph::of(&corrected.profile, &corrected.basis(TIME), Presentation::Contexts);
    let graph = graph.with_reliability(&corrected);
    assert_eq!(names_where(&profile, &graph, |known| known.unresolved), ["f1"]);
    let unresolved: Vec<_> = profile.tree.nodes().filter(|&node| corrected.is_unresolved(node)).collect();
    assert_eq!(unresolved, [NodeId::new(2)]);
    let correction = graph.basis.correction.unwrap();
    assert_eq!(correction.raw_cost, profile.run_cost(TIME));
    assert_eq!(correction.removed, 6 * 3 + 5 * 7);
}

#[test]
fn costs_of_which_one_in_n_was_timed_are_estimates() {
    let mut profile = leaves();
    profile.tree.add_calls(NodeId::new(2), 60, 0);
    let estimated = |profile: &Profile| {
        let raw = Corrected::raw(profile);
        let graph = CallGraph::of(profile, &raw.basis(TIME), Presentation::Contexts).with_reliability(&raw);
        names_where(profile, &graph, |known| known.estimated)
    };
    assert_eq!(estimated(&profile), ["f1"]);
    assert!(estimated(&leaves()).is_empty());
    // Of 64 calls 4 were timed: only these have cost the caller anything.
    let corrected = correct(&profile);
    assert_eq!(
        profile.tree.self_cost(TIME, NodeId::new(1)) - corrected.profile.tree.self_cost(TIME, NodeId::new(1)),
        3 + 5 * 7
    );
}

#[test]
fn activations_that_had_not_ended_are_no_sign_of_estimates() {
    let profile = timed_trace_with(RecursionRule::Full, "0 enter a\n 5 leave a\n 6 enter a");
    let raw = Corrected::raw(&profile);
    let graph = CallGraph::of(&profile, &raw.basis(TIME), Presentation::Contexts).with_reliability(&raw);
    assert!(names_where(&profile, &graph, |known| known.estimated).is_empty());
}

#[test]
fn other_metrics_and_profiles_without_a_bias_stay_as_they_are() {
    let mut profile = leaves();
    let bytes = profile.add_metric(Metric::exact("allocated", Unit::Bytes));
    profile.tree.add_self_cost(bytes, NodeId::new(1), 77);
    let corrected = correct(&profile);
    assert_eq!(corrected.profile.run_cost(bytes), 77);
    assert_eq!(corrected.basis(bytes).correction, None);
    profile.metadata.call_bias = None;
    let untouched = correct(&profile);
    assert_eq!((untouched.removed, untouched.metric), (0, None));
    assert!(untouched.uncertainty.is_empty());
}

#[test]
fn totals_of_a_flat_profile_are_the_measured_ones() {
    let text = "
        0 enter a
        5   enter b
        9     enter a
        20    leave
        22  leave
        30 leave
        30 @other enter b
        34 @other leave
    ";
    let profile = timed_trace_with(RecursionRule::Flat, text);
    let graph = CallGraph::of(&profile, &Basis::of(&profile, TIME), Presentation::Contexts);
    assert_eq!(graph.totals, TotalSource::Measured);
    let costs: Vec<_> = graph
        .functions
        .iter()
        .map(|cost| {
            (function_name(&profile, cost.function).into_owned(), cost.self_cost.cost, cost.total_cost.cost)
        })
        .collect();
    assert_eq!(costs, [("a".to_owned(), 24, 30), ("b".to_owned(), 10, 21)]);
    let arc = graph.callers(graph.functions[0].function).next().unwrap();
    assert_eq!((arc.caller, arc.calls, arc.from_caller.total.cost), (None, 2, 30));
    let mut without = profile.clone();
    without.activations = None;
    let graph = CallGraph::of(&without, &Basis::of(&without, TIME), Presentation::Contexts);
    assert_eq!(graph.totals, TotalSource::Missing);
}

#[test]
fn details_of_functions_and_arcs_are_those_of_their_nodes() {
    let mut profile = timed_trace_with(
        RecursionRule::Full,
        "0 enter a\n 1 enter w\n 11 leave\n 12 enter b\n 13 enter w\n 43 leave\n 44 leave\n 45 enter w\n 65 leave\n 66 leave",
    );
    let [a, w] = [1, 2].map(NodeId::new);
    profile.ports.row(w).redos = 4;
    profile.memory.row(a).live_bytes = 8;
    let sizes = &mut profile.activations.as_mut().unwrap().sizes;
    for (bucket, total_cost) in [(4, 10), (0, 20)] {
        sizes.push(treering_profile::SizeCost { node: w, bucket, calls: 1, total_cost });
    }
    let details = Details::of(&profile, TIME);
    assert!(details.has_statistics && details.has_sizes && details.has_ports && details.has_memory);
    let graph = CallGraph::of(&profile, &Basis::of(&profile, TIME), Presentation::Contexts);
    let function = details.function(profile.tree.function(w)).unwrap();
    assert_eq!((function.statistics.timed, function.statistics.mean), (3, 20.0));
    assert_eq!(function.statistics.variance(), Some(100.0));
    assert_eq!(
        function.sizes.iter().map(|size| (size.sizes(), size.mean())).collect::<Vec<_>>(),
        [((0, 1), 20.0), ((16, 31), 10.0)]
    );
    let arcs: Vec<_> = graph
        .callers(profile.tree.function(w))
        .map(|arc| {
            let statistics = details.arc(arc).unwrap().statistics;
            (arc.calls, statistics.least, statistics.greatest, statistics.mean)
        })
        .collect();
    assert_eq!(arcs, [(2, 10, 20, 15.0), (1, 30, 30, 30.0)]);
    let other = Details::of(&profile, MetricId::new(7));
    assert!(!other.has_statistics && other.has_ports);
}
