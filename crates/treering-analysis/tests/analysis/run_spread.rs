//! Several runs: intervals from the spread between them, and the warning that a program is in
//! step with the timer.

use treering_analysis::{Basis, CallGraph, Interval, Presentation, RunSpread, Selection, wilson};
use treering_profile::{FunctionId, MetricId, Profile, merge};

/// Merged runs, in each of which `work` has the given number of `of` samples.
fn runs(samples_of_work: &[u64], of: u64) -> Profile {
    let run = |&work: &u64| treering_testing::stacks(&format!("main;work {work}\nmain {}", of - work));
    let runs: Vec<Profile> = samples_of_work.iter().map(run).collect();
    merge(&runs.iter().collect::<Vec<_>>())
}

fn graph(profile: &Profile) -> CallGraph {
    CallGraph::of(profile, &Basis::of(profile, MetricId::new(0)), Presentation::Contexts)
}

fn work(profile: &Profile) -> FunctionId {
    let is_work = |id: &FunctionId| treering_analysis::function_name(profile, *id) == "work";
    profile.functions.iter().map(|(id, _)| id).find(is_work).expect("every run has work")
}

fn self_interval(profile: &Profile) -> Interval {
    let graph = graph(profile);
    graph.function(work(profile)).and_then(|cost| cost.self_interval).expect("it was sampled")
}

/// Draws of 1000 samples with a chance of 1 in 4, by a small generator with a fixed seed.
fn independent(runs: usize) -> Vec<u64> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut hit = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.is_multiple_of(4)
    };
    (0..runs).map(|_| (0..1000).filter(|_| hit()).count() as u64).collect()
}

#[test]
fn independent_samples_vary_as_chance_has_it() {
    for count in [3, 10, 40] {
        let profile = runs(&independent(count), 1000);
        let spread = RunSpread::of(&graph(&profile)).expect("there are enough runs");
        let ratio = spread.ratio.expect("both functions are important");
        assert!(!spread.is_suspicious(), "{count} runs: {ratio}");
        assert!(count < 10 || (0.6..1.5).contains(&ratio), "{count} runs: {ratio}");
    }
}

/// The shares that `perf -F 100` gave for a program in step with its timer, in four phases.
#[test]
fn a_program_in_step_with_the_timer_is_noticed() {
    let profile = runs(&[988, 0, 66, 0], 1000);
    let spread = RunSpread::of(&graph(&profile)).expect("there are enough runs");
    assert!(spread.is_suspicious());
    let found = spread.functions.iter().find(|found| found.function == work(&profile)).expect("seen");
    assert!((found.mean_share - 0.2635).abs() < 1e-9);
    assert!((found.sd - 0.4842).abs() < 1e-3, "{}", found.sd);
    assert!((found.binomial_sd - 0.01393).abs() < 1e-4, "{}", found.binomial_sd);
}

#[test]
fn the_interval_tells_how_much_runs_differ() {
    let differing = self_interval(&runs(&[200, 250, 300], 1000));
    assert!((differing.low - (0.25 - 0.1242)).abs() < 1e-3, "{differing:?}");
    assert!((differing.high - (0.25 + 0.1242)).abs() < 1e-3, "{differing:?}");
}

#[test]
fn runs_that_agree_by_chance_are_no_surer_than_their_samples() {
    let agreeing = self_interval(&runs(&[250, 250, 250], 1000));
    assert_eq!(Some(agreeing), wilson(0.25, 3000.0));
}

#[test]
fn two_runs_are_too_few_to_tell() {
    let profile = runs(&[100, 900], 1000);
    assert_eq!(RunSpread::of(&graph(&profile)), None);
    assert_eq!(Some(self_interval(&profile)), wilson(0.5, 2000.0));
}

/// The others were taken for runs that cost nothing, and the shares were said not to be trusted.
#[test]
fn one_run_by_itself_has_no_spread() {
    let profile = runs(&[250, 250, 250], 1000);
    let of_runs = |numbers: std::ops::Range<usize>| {
        let mut selection = Selection::default();
        selection.keep_threads(&profile, |thread| {
            numbers.contains(&profile.processes[thread.process.index()].run.index())
        });
        let basis = Basis::of(&profile, MetricId::new(0)).of_part(&profile, &selection);
        let part = selection.apply(&profile).expect("it has stacks");
        let graph = CallGraph::of(&part, &basis, Presentation::Contexts);
        let interval = graph.function(work(&profile)).and_then(|cost| cost.self_interval);
        (RunSpread::of(&graph).is_some(), interval)
    };
    assert_eq!(of_runs(1..2), (false, wilson(250.0 / 3000.0, 3000.0)));
    assert_eq!(of_runs(0..3), (true, wilson(0.25, 3000.0)));
}
