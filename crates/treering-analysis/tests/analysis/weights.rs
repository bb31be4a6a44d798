//! Intervals of confidence where samples weigh differently.

use treering_analysis::{Basis, Interval, Measure, wilson};
use treering_profile::{MetricId, Profile, Weights, merge};

const COST: MetricId = MetricId::new(0);

/// The weight of each sample of the profiles.
const PERIOD: u64 = 1_000_000;

/// 40 samples of `work` and 60 of `main`, all of one weight.
fn equal() -> Profile {
    treering_testing::stacks("main;work 40\nmain 60")
}

/// The same, with what is known of weights: each node's square is its cost times `weight`, and
/// `unseen` of each cost stands for what no sample can fall into.
fn weighted(weight: f64, unseen: f64, hidden: u64, of_known_cost: bool) -> Profile {
    let mut profile = equal();
    let part = |factor: f64| {
        let costs = profile.tree.self_costs(COST).iter();
        costs.map(|&cost| (cost as f64 * factor).round() as u64).collect::<Vec<_>>()
    };
    let (squares, not_seen) = (part(weight), part(unseen));
    let weights = Weights { squares: 0, unseen: 0, per: PERIOD, hidden, of_known_cost };
    profile.add_weights(COST, weights, squares, not_seen);
    profile
}

/// The interval of `work`.
fn interval(profile: &Profile) -> Interval {
    let basis = Basis::of(profile, COST);
    let of = |metric: MetricId| {
        let is_work = |node: &treering_profile::NodeId| {
            let function = profile.tree.function(*node);
            treering_analysis::function_name(profile, function) == "work"
        };
        profile.tree.nodes().filter(is_work).map(|node| profile.tree.self_cost(metric, node)).sum()
    };
    let weights = profile.metrics[0].weights();
    let measure = Measure {
        cost: of(COST),
        samples: 40,
        squares: weights.map_or(0, |weights| of(MetricId::new(weights.squares))),
        unseen: weights.map_or(0, |weights| of(MetricId::new(weights.unseen))),
    };
    basis.interval(measure).expect("it is sampled")
}

fn close(a: Interval, b: Interval) {
    assert!((a.low - b.low).abs() < 1e-6 && (a.high - b.high).abs() < 1e-6, "{a:?} is not {b:?}");
}

#[test]
fn equal_weights_give_the_interval_of_equal_samples() {
    let expected = interval(&equal());
    assert_eq!(Some(expected), wilson(0.4, 100.0));
    close(interval(&weighted(1.0, 0.0, 0, true)), expected);
    close(interval(&weighted(1.0, 0.0, 0, false)), expected);
}

#[test]
fn samples_that_count_as_fewer_give_the_interval_of_fewer() {
    // Four of them tell no more than one.
    close(interval(&weighted(4.0, 0.0, 0, false)), wilson(0.4, 25.0).expect("there are samples"));
}

#[test]
fn unseen_costs_widen_the_interval_to_both_sides() {
    let (seen, unseen) = (interval(&weighted(1.0, 0.0, 0, true)), interval(&weighted(1.0, 0.5, 0, true)));
    // Half of its own 40 % may be another's, half of the others' 60 % may be its own.
    close(unseen, Interval { low: seen.low - 0.2, high: seen.high + 0.3 });
}

#[test]
fn a_function_without_samples_may_cost_what_is_hidden() {
    let unlisted = |profile: &Profile| Basis::of(profile, COST).unlisted().expect("it is sampled");
    assert_eq!(unlisted(&equal()), wilson(0.0, 100.0).expect("there are samples").high);
    assert!((unlisted(&weighted(1.0, 0.5, 0, true)) - unlisted(&equal()) - 0.5).abs() < 1e-6);
    let hidden = unlisted(&weighted(1.0, 0.0, 20 * PERIOD, true));
    assert!((hidden - unlisted(&equal()).hypot(0.2)).abs() < 1e-6);
}

#[test]
fn weights_are_no_metrics_to_show() {
    let profile = weighted(2.0, 0.1, 0, true);
    assert_eq!(profile.validate(), Ok(()));
    let shown: Vec<_> = profile.cost_metrics().map(|(_, metric)| metric.name.as_str()).collect();
    assert_eq!(shown, ["cpu-clock", "samples"]);
}

#[test]
fn merged_with_equal_samples_weights_are_those_of_both() {
    let (one, other) = (weighted(4.0, 0.5, 30, true), equal());
    for merged in [merge(&[&one, &other]), merge(&[&other, &one])] {
        assert_eq!(merged.validate(), Ok(()));
        let weights = merged.metrics[0].weights().expect("they are known of one");
        assert_eq!((weights.per, weights.hidden, weights.of_known_cost), (PERIOD, 30, true));
        let cost = merged.run_cost(COST);
        // 100 periods of four times the square, and 100 of one.
        assert_eq!(merged.run_cost(MetricId::new(weights.squares)), cost / 2 * 5);
        assert_eq!(merged.run_cost(MetricId::new(weights.unseen)), cost / 4);
    }
    let twice = merge(&[&one, &one]);
    let hidden = twice.metrics[0].weights().expect("they are known of both").hidden;
    assert_eq!(hidden, (30.0 * 2_f64.sqrt()).round() as u64);
}
