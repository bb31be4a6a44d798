use treering_profile::{Metric, MetricId, Process, Profile, RecursionRule, Run, RunId, Sampling, Unit};

use super::*;
use crate::process::Processes;
use crate::session::OwnCounts;

const MEAN: u64 = 1_000_000;

/// A profile of a timer, and a thread of it.
fn profile() -> (Profile, RunId) {
    let mut profile = Profile::new(RecursionRule::Full);
    let run = profile.add_run(Run::default());
    let time = profile.add_metric(Metric::exact("cpu-clock", Unit::Nanoseconds));
    let samples = profile.add_metric(Metric::exact("samples", Unit::Count));
    profile.metrics[time.index()].sampling =
        Some(Sampling { counted_by: samples.raw(), period: Some(MEAN), jittered: Some(true), weights: None });
    (profile, run)
}

fn thread(profile: &mut Profile, run: RunId, pid: u32) -> ThreadId {
    let process = profile.add_process(Process { run, pid, name: "made".to_owned() });
    profile.add_thread(process, pid, "made")
}

const TIME: MetricId = MetricId::new(0);

/// The use of the first thread.
fn first(count: u64) -> OwnCounts {
    OwnCounts { by_thread: HashMap::from([(1, count)]), with_inherited: false }
}

#[test]
fn costs_of_each_thread_with_its_own_event_are_scaled_to_its_use() {
    let (mut profile, run) = profile();
    let mut threads =
        ThreadSampling::new(IntervalDistribution::LengthBiased, MEAN, true, true, &[(1, 1), (1, 2), (1, 3)]);
    let nodes = [1, 2].map(|tid| {
        let thread = thread(&mut profile, run, tid);
        for _ in 0..30 {
            threads.own_sample(tid, None, thread);
        }
        profile.threads[thread.index()].root
    });
    nodes.iter().for_each(|&node| profile.tree.add_self_cost(TIME, node, 30 * MEAN));
    let by_thread = HashMap::from([(1, 29_000_001), (2, 31_000_000), (3, 0)]);
    let own = OwnCounts { by_thread, with_inherited: false };
    let unsampled = threads.finish(&mut profile, run, TIME, &Processes::default(), Some(&own), 1.0);
    assert_eq!(nodes.map(|node| profile.tree.self_cost(TIME, node)), [29_000_001, 31_000_000]);
    assert_eq!((unsampled.tasks, unsampled.used), (0, Some(60_000_001)));
    assert!(profile.metrics[0].weights().is_none(), "all samples are worth the same");
}

/// Where samples were lost at 10 kHz, one interval of seven did not hold the truth.
#[test]
fn losses_widen_the_intervals_of_confidence() {
    for own in [Some(first(100 * MEAN)), None] {
        let (mut profile, run) = profile();
        let mut threads =
            ThreadSampling::new(IntervalDistribution::LengthBiased, MEAN, true, true, &[(1, 1)]);
        let thread = thread(&mut profile, run, 1);
        let node = profile.threads[thread.index()].root;
        for _ in 0..100 {
            let weight = threads.own_sample(1, None, thread);
            threads.weighed(node, weight);
            profile.tree.add_self_cost(TIME, node, weight);
        }
        threads.finish(&mut profile, run, TIME, &Processes::default(), own.as_ref(), 3.0);
        assert_eq!(profile.run_cost(TIME), 100 * MEAN);
        let weights = profile.metrics[0].weights().expect("they are known").clone();
        assert_eq!((profile.run_cost(MetricId::new(weights.squares)), weights.per), (300 * MEAN, MEAN));
        assert_eq!((weights.hidden, weights.of_known_cost), (0, false));
    }
}

#[test]
fn samples_of_a_thread_with_its_own_event_cost_the_interval_that_they_end() {
    let (mut profile, run) = profile();
    let mut threads =
        ThreadSampling::new(IntervalDistribution::LengthBiased, MEAN, true, true, &[(1, 1), (1, 2)]);
    let thread = thread(&mut profile, run, 1);
    assert_eq!([Some(700_000), None].map(|drawn| threads.own_sample(1, drawn, thread)), [700_000, MEAN]);
    let node = profile.threads[thread.index()].root;
    profile.tree.add_self_cost(TIME, node, 700_000 + MEAN);
    let by_thread = HashMap::from([(1, 3_400_000), (2, 0)]);
    let own = OwnCounts { by_thread, with_inherited: false };
    threads.finish(&mut profile, run, TIME, &Processes::default(), Some(&own), 1.0);
    assert_eq!(profile.run_cost(TIME), 3_400_000, "it is scaled from the sum of these");
}

#[test]
fn the_use_of_threads_that_inherit_is_subtracted_from_that_of_the_thread_that_made_them() {
    let (mut profile, run) = profile();
    let mut threads = ThreadSampling::new(IntervalDistribution::Fixed, MEAN, true, true, &[(1, 1), (1, 5)]);
    threads.fork(2, 2, 1);
    threads.fork(3, 3, 2);
    let (first, made) = (thread(&mut profile, run, 1), thread(&mut profile, run, 3));
    threads.own_sample(1, None, first);
    threads.sample((3, 3), 9, MEAN, made);
    let nodes = [first, made].map(|thread| profile.threads[thread.index()].root);
    nodes.iter().for_each(|&node| profile.tree.add_self_cost(TIME, node, MEAN));
    threads.exit(2, "made");
    threads.exit(3, "made");
    threads.count(2, 500_000);
    threads.count(3, 1_200_000);
    let own = OwnCounts { by_thread: HashMap::from([(1, 2_600_000), (5, 0)]), with_inherited: true };
    let unsampled = threads.finish(&mut profile, run, TIME, &Processes::default(), Some(&own), 1.0);
    // The first thread, and the process of 500,000 with the one that was sampled.
    assert_eq!(nodes.map(|node| profile.tree.self_cost(TIME, node)), [900_000, 1_700_000]);
    assert_eq!((unsampled.tasks, unsampled.used), (1, Some(2_600_000)));
}

#[test]
fn costs_are_scaled_to_counts_and_unsampled_threads_are_shown() {
    let (mut profile, run) = profile();
    let mut threads = ThreadSampling::new(IntervalDistribution::Template, MEAN, true, true, &[(1, 1)]);
    // The first thread waits; of two like threads one is sampled, and none of another kind.
    for pid in [2, 3, 4] {
        threads.fork(pid, pid, 1);
    }
    let sampled = thread(&mut profile, run, 2);
    let node = profile.threads[sampled.index()].root;
    let weight = threads.sample((2, 2), 77, 900_000, sampled);
    threads.weighed(node, weight);
    profile.tree.add_self_cost(TIME, node, weight);
    for (pid, name, count) in [(2, "made", 1_000_000), (3, "made", 700_000), (4, "other", 400_000)] {
        threads.exit(pid, name);
        threads.count(pid, count);
    }
    threads.exit(1, "first");
    // The first thread's copy of the template is not a thread that inherited it.
    threads.count(1, 5_000_000);
    let unsampled = threads.finish(&mut profile, run, TIME, &Processes::default(), Some(&first(50_000)), 1.0);
    assert_eq!((unsampled.tasks, unsampled.cost), (3, 1_150_000));
    assert_eq!((unsampled.without_group, unsampled.unknown), (450_000, 0));
    assert_eq!(unsampled.used, Some(2_150_000));
    assert_eq!(profile.run_cost(TIME), 2_150_000);
    assert_eq!(profile.tree.self_cost(TIME, node), 1_700_000);
    assert_eq!(profile.validate(), Ok(()));
    let of = |pid: u32| {
        let at = profile.processes.iter().position(|process| process.pid == pid).expect("it is listed");
        (profile.processes[at].name.as_str(), at)
    };
    assert_eq!((of(4).0, of(1).0), ("other", "first"));
    // All of the unsampled use may belong to any function.
    let weights = profile.metrics[0].weights().expect("they are known").clone();
    assert!(weights.of_known_cost);
    let unseen = profile.run_cost(MetricId::new(weights.unseen));
    assert!((450_000 + 900_000..=2_150_000).contains(&unseen), "{unseen}");
}

#[test]
fn equal_intervals_in_equal_threads_tell_no_more_than_one() {
    let (mut profile, run) = profile();
    let mut threads = ThreadSampling::new(IntervalDistribution::Template, MEAN, true, true, &[(1, 1)]);
    let mut counted = 0;
    for pid in 2..12 {
        threads.fork(pid, pid, 1);
        let sampled = thread(&mut profile, run, pid);
        let node = profile.threads[sampled.index()].root;
        let weight = threads.sample((pid, pid), u64::from(pid), 800_000, sampled);
        threads.weighed(node, weight);
        profile.tree.add_self_cost(TIME, node, weight);
        threads.exit(pid, "made");
        threads.count(pid, weight);
        counted += weight;
    }
    threads.finish(&mut profile, run, TIME, &Processes::default(), Some(&first(0)), 1.0);
    assert_eq!(profile.run_cost(TIME), counted);
    let weights = profile.metrics[0].weights().expect("they are known").clone();
    let squares = profile.run_cost(MetricId::new(weights.squares)) as f64 * weights.per as f64;
    let in_effect = (counted as f64).powi(2) / squares;
    assert!((in_effect - 1.0).abs() < 0.01, "{in_effect} samples in effect");
}

/// Its count was taken for that of the first thread, and costs were not scaled.
#[test]
fn a_thread_that_executes_a_program_keeps_its_use_when_it_takes_the_number_of_the_first() {
    let (mut profile, run) = profile();
    let mut threads = ThreadSampling::new(IntervalDistribution::Fixed, MEAN, true, true, &[(1, 1)]);
    threads.fork(1, 2, 1);
    threads.exit(1, "made");
    threads.exec(1);
    let thread = thread(&mut profile, run, 1);
    for _ in 0..40 {
        threads.sample((1, 1), 9, MEAN, thread);
    }
    threads.count(1, 50_000_000);
    threads.exit(1, "made");
    let node = profile.threads[thread.index()].root;
    profile.tree.add_self_cost(TIME, node, 40 * MEAN);
    let unsampled = threads.finish(&mut profile, run, TIME, &Processes::default(), Some(&first(1000)), 1.0);
    assert_eq!(profile.tree.self_cost(TIME, node), 50_000_000);
    assert_eq!((unsampled.unknown, unsampled.used), (0, Some(50_001_000)));
}
