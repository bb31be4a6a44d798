//! The builder from call events equals the textbook rule: note the clock on enter; on leave, the
//! difference less the children's totals is the self cost.
//!
//! The reference below is written from that sentence alone and knows nothing of nodes: it works
//! with chains of function numbers.
#![expect(clippy::unwrap_used, reason = "a test that fails here has shown what is wrong")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use treering_profile::{
    CallRecorder, EventError, Frame, Function, FunctionId, Metric, MetricId, NodeId, Profile, RecursionRule,
    Unit,
};

/// A call event: what is entered, or nothing for a leave; and how long after the one before.
type Event = (Option<u8>, u64);

/// By chain of functions from the outermost: calls and self cost.
type Chains = BTreeMap<Vec<u8>, (u64, u64)>;

/// By chain: the total of every activation, and whether it was the outermost of its chain.
type Totals = BTreeMap<Vec<u8>, Vec<(u64, bool)>>;

const RULES: [RecursionRule; 4] =
    [RecursionRule::Full, RecursionRule::Direct, RecursionRule::SwiClassic, RecursionRule::Flat];

/// Random events; few functions, so that recursion and cycles are common.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![3 => (0..4_u8).prop_map(Some), 2 => Just(None)];
    prop::collection::vec((event, 0..1000_u64), 0..120)
}

struct Open {
    chain: Vec<u8>,
    entered: u64,
    children: u64,
}

/// The cost of every chain, by the textbook. All activations end with the last event.
fn reference(rule: RecursionRule, events: &[Event]) -> (Chains, Totals) {
    let mut chains = (Chains::new(), Totals::new());
    let mut stack: Vec<Open> = Vec::new();
    let mut now = 0;
    for &(entered, after) in events {
        now += after;
        match entered {
            Some(function) => {
                let chain = stack.last().map_or(Vec::new(), |open| open.chain.clone());
                let chain = chain_after(rule, chain, function);
                chains.0.entry(chain.clone()).or_default().0 += 1;
                stack.push(Open { chain, entered: now, children: 0 });
            }
            None => leave(&mut stack, &mut chains, now),
        }
    }
    while !stack.is_empty() {
        leave(&mut stack, &mut chains, now);
    }
    chains
}

fn leave(stack: &mut Vec<Open>, (chains, totals): &mut (Chains, Totals), now: u64) {
    let Some(open) = stack.pop() else { return };
    let total = now - open.entered;
    let outermost = stack.iter().all(|other| other.chain != open.chain);
    totals.entry(open.chain.clone()).or_default().push((total, outermost));
    chains.entry(open.chain).or_default().1 += total - open.children;
    if let Some(caller) = stack.last_mut() {
        caller.children += total;
    }
}

/// The chain that a call from the end of `chain` leads to.
fn chain_after(rule: RecursionRule, mut chain: Vec<u8>, function: u8) -> Vec<u8> {
    let caller = chain.last().copied();
    if rule == RecursionRule::Flat {
        return vec![function];
    }
    if rule != RecursionRule::Full && caller == Some(function) {
        return chain;
    }
    if rule == RecursionRule::SwiClassic {
        let is_arc = |at: &usize| {
            let before = at.checked_sub(1).map(|before| chain[before]);
            chain[*at] == function && before == caller
        };
        if let Some(at) = (0..chain.len()).rev().find(is_arc) {
            chain.truncate(at + 1);
            return chain;
        }
    }
    chain.push(function);
    chain
}

/// The builder's profile of the same events.
fn built(rule: RecursionRule, events: &[Event]) -> Profile {
    let mut profile = Profile::new(rule);
    let clock = profile.add_metric(Metric::exact("time", Unit::Nanoseconds));
    let thread = profile.add_single_thread("main");
    let functions = functions(&mut profile);
    let mut recorder = CallRecorder::new(profile, vec![clock]).with_statistics(clock);
    let (mut now, mut open) = (0, Vec::new());
    for &(entered, after) in events {
        now += after;
        match entered {
            Some(function) => {
                let function = functions[usize::from(function)];
                recorder.enter(thread, &Frame::new(function), &[now]).unwrap();
                open.push(function);
            }
            None => match open.pop() {
                Some(function) => recorder.leave(thread, function, &[now]).unwrap(),
                None => {
                    let unbalanced = recorder.leave(thread, functions[0], &[now]);
                    assert!(matches!(unbalanced, Err(EventError::Unbalanced { expected: None, .. })));
                }
            },
        }
    }
    while let Some(function) = open.pop() {
        recorder.leave(thread, function, &[now]).unwrap();
    }
    recorder.finish()
}

fn functions(profile: &mut Profile) -> Vec<FunctionId> {
    let intern = |at: u8| {
        let name = profile.strings.intern(&at.to_string());
        profile.functions.intern(Function::named(name))
    };
    (0..4).map(intern).collect()
}

/// The chain of every node that is not a root.
fn node_chains(profile: &Profile) -> Vec<(NodeId, Vec<u8>)> {
    let tree = &profile.tree;
    let number = |node: NodeId| profile.strings[profile.functions[tree.function(node)].name].parse().ok();
    let chain = |node: NodeId| {
        let mut chain: Vec<u8> = tree.path(node).filter_map(number).collect();
        chain.reverse();
        chain
    };
    let called = tree.nodes().filter(|&node| tree.parent(node).is_some());
    called.map(|node| (node, chain(node))).collect()
}

fn chains(profile: &Profile) -> Chains {
    let tree = &profile.tree;
    let cost = |node: NodeId| (tree.calls(node), tree.self_cost(MetricId::new(0), node));
    node_chains(profile).into_iter().map(|(node, chain)| (chain, cost(node))).collect()
}

/// Compares the statistics of every node with those of its list of totals.
fn check_statistics(profile: &Profile, totals: &Totals) -> Result<(), TestCaseError> {
    let activations = profile.activations.as_ref().unwrap();
    for (node, chain) in node_chains(profile) {
        let (found, listed) = (activations.nodes.get(node), &totals[&chain]);
        let each: Vec<u64> = listed.iter().map(|(total, _)| *total).collect();
        let sum = |all: &mut dyn Iterator<Item = f64>| all.sum::<f64>();
        let mean = sum(&mut each.iter().map(|&total| total as f64)) / each.len() as f64;
        let squares = sum(&mut each.iter().map(|&total| (total as f64 - mean).powi(2)));
        let outermost: u64 = listed.iter().filter(|(_, outermost)| *outermost).map(|(total, _)| total).sum();
        prop_assert_eq!((found.timed, found.total), (each.len() as u64, outermost));
        prop_assert_eq!(
            Some((found.least, found.greatest)),
            each.iter().min().copied().zip(each.iter().max().copied())
        );
        prop_assert!((found.mean - mean).abs() <= 1e-9 * mean.max(1.0), "{found:?} {mean}");
        prop_assert!((found.squares - squares).abs() <= 1e-9 * squares.max(1.0), "{found:?} {squares}");
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_builder_equals_the_textbook(events in events()) {
        for rule in RULES {
            let profile = built(rule, &events);
            prop_assert_eq!(profile.validate(), Ok(()));
            let (expected, totals) = reference(rule, &events);
            prop_assert_eq!(chains(&profile), expected, "under {:?}", rule);
            check_statistics(&profile, &totals)?;
        }
    }

    #[test]
    fn self_costs_add_up_to_the_time_between_the_first_and_the_last_event(events in events()) {
        // Leaves before the first enter have no effect, so time starts at the first enter.
        let from_first = events.iter().skip_while(|(entered, _)| entered.is_none());
        let elapsed: u64 = from_first.skip(1).map(|&(_, after)| after).sum();
        for rule in RULES {
            let profile = built(rule, &events);
            let charged = profile.run_cost(MetricId::new(0));
            // Unbalanced leaves at the end, when nothing is open, have no effect either.
            prop_assert!(charged <= elapsed);
            let depth_at_end = events.iter().fold(0_u32, |depth, (entered, _)| match entered {
                Some(_) => depth + 1,
                None => depth.saturating_sub(1),
            });
            if depth_at_end > 0 {
                prop_assert_eq!(charged, elapsed, "under {:?}", rule);
            }
        }
    }
}

#[test]
fn a_clock_that_steps_back_is_refused_and_changes_nothing() {
    let mut profile = Profile::new(RecursionRule::Full);
    let clock = profile.add_metric(Metric::exact("time", Unit::Nanoseconds));
    let thread = profile.add_single_thread("main");
    let main = functions(&mut profile)[0];
    let mut recorder = CallRecorder::new(profile, vec![clock]);
    recorder.enter(thread, &Frame::new(main), &[10]).unwrap();
    let stepped = EventError::ClockStepsBack { metric: clock, from: 10, to: 4 };
    assert_eq!(recorder.leave(thread, main, &[4]), Err(stepped));
    recorder.leave(thread, main, &[12]).unwrap();
    assert_eq!(recorder.finish().run_cost(clock), 2);
}

#[test]
fn direct_recursion_of_100_000_depths_is_built_and_freed() {
    let depth = 100_000;
    let enters = std::iter::repeat_n((Some(1), 1), depth);
    let events: Vec<Event> = enters.chain(std::iter::repeat_n((None, 1), depth)).collect();
    let nodes = |rule| built(rule, &events).tree.len();
    assert_eq!(nodes(RecursionRule::Full), depth + 1);
    assert_eq!(nodes(RecursionRule::Direct), 2);
    assert_eq!(nodes(RecursionRule::SwiClassic), 2);
    assert_eq!(nodes(RecursionRule::Flat), 2);
}

#[test]
fn a_flat_profile_has_a_node_for_each_function_and_counts_recursion_once() {
    let events =
        [(Some(1), 0), (Some(2), 5), (Some(2), 2), (Some(1), 3), (None, 10), (None, 1), (None, 1), (None, 1)];
    let profile = built(RecursionRule::Flat, &events);
    let activations = profile.activations.as_ref().unwrap();
    let nodes: Vec<_> = node_chains(&profile);
    let said = |at: usize| {
        let (node, statistics) = (nodes[at].0, activations.nodes.get(nodes[at].0));
        let tree = &profile.tree;
        (
            tree.calls(node),
            tree.recursive_calls(node),
            tree.self_cost(MetricId::new(0), node),
            statistics.total,
        )
    };
    assert_eq!(nodes.len(), 2);
    assert_eq!(said(0), (2, 0, 5 + 10 + 1, 23));
    assert_eq!(said(1), (2, 1, 2 + 3 + 1 + 1, 17));
}

#[test]
fn activations_that_are_still_open_count_in_totals_only() {
    let mut profile = Profile::new(RecursionRule::Direct);
    let clock = profile.add_metric(Metric::exact("time", Unit::Nanoseconds));
    let thread = profile.add_single_thread("main");
    let function = functions(&mut profile)[0];
    let mut recorder = CallRecorder::new(profile, vec![clock]).with_statistics(clock);
    for now in [10, 15, 22] {
        recorder.enter(thread, &Frame::new(function), &[now]).unwrap();
    }
    recorder.leave(thread, function, &[30]).unwrap();
    let profile = recorder.finish();
    let found = profile.activations.unwrap().nodes.get(NodeId::new(1));
    assert_eq!((found.timed, found.total, found.greatest), (1, 20, 8));
    assert_eq!(profile.metadata.losses.open_activations, 2);
}
