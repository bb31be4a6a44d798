//! Profiles for formats that know costs and nothing beside them.

use std::borrow::Cow;

use treering_profile::{Arc, LineCost, MetricId, Profile, RecursionRule, Tree, Waits};

/// The profile without metrics that are levels, whose columns hold nothing but zeros, and without
/// those that hold the weights of samples, which are no costs.
pub(crate) fn costs_only(profile: &Profile) -> Cow<'_, Profile> {
    let kept: Vec<MetricId> = profile.cost_metrics().map(|(id, _)| id).collect();
    if kept.len() == profile.metrics.len() {
        return Cow::Borrowed(profile);
    }
    let place = |metric: MetricId| kept.binary_search(&metric).ok().map(MetricId::from_usize);
    let mut costs = profile.clone();
    costs.points.clear();
    costs.address_costs.clear();
    costs.activations = None;
    costs.metrics = kept.iter().map(|metric| profile.metrics[metric.index()].clone()).collect();
    for sampling in costs.metrics.iter_mut().filter_map(|metric| metric.sampling.as_mut()) {
        sampling.counted_by = place(MetricId::new(sampling.counted_by)).map_or(0, MetricId::raw);
        sampling.weights = None;
    }
    if let Some(timeline) = &mut costs.timeline {
        timeline.costs.retain_mut(|cost| {
            let kept = place(cost.metric);
            cost.metric = kept.unwrap_or(cost.metric);
            kept.is_some()
        });
        timeline.waits = timeline
            .waits
            .take()
            .and_then(|waits| Some(Waits { time: place(waits.time)?, count: place(waits.count)?, ..waits }));
    }
    let moved = |cost: &LineCost| Some(LineCost { metric: place(cost.metric)?, ..*cost });
    costs.line_costs = profile.line_costs.iter().filter_map(moved).collect();
    let arc = |arc: &Arc| Arc {
        total_costs: arc
            .total_costs
            .iter()
            .filter_map(|&(metric, cost)| Some((place(metric)?, cost)))
            .collect(),
        ..*arc
    };
    costs.arcs = profile.arcs.iter().map(arc).collect();
    costs.tree = tree_of(&profile.tree, &kept);
    Cow::Owned(costs)
}

/// Whether the totals of functions are unknown, as there are no stacks. In a format of stacks they would look like self costs,
/// so the writers state it for our readers.
pub(crate) fn is_flat(profile: &Profile) -> bool {
    profile.is_arcs_only() || profile.recursion == RecursionRule::Flat
}

/// The same tree with the costs of some metrics only.
fn tree_of(tree: &Tree, metrics: &[MetricId]) -> Tree {
    let columns = metrics.iter().map(|&metric| tree.self_costs(metric).to_vec()).collect();
    let tree = Tree::from_columns(
        tree.parent_column().to_vec(),
        tree.function_column().to_vec(),
        tree.call_site_column().to_vec(),
        tree.calls_column().to_vec(),
        tree.recursive_calls_column().to_vec(),
        columns,
    );
    tree.expect("columns of a tree make a tree")
}

#[cfg(all(test, feature = "all"))]
mod tests {
    use treering_profile::{Metric, Point, StringId, ThreadId, Unit};

    use super::*;
    use crate::{callgrind, pprof};

    fn with_points() -> Profile {
        let mut profile = treering_testing::trace("0 enter main\n 4 leave main");
        let resident = profile.add_metric(Metric::level("resident", Unit::Bytes));
        let later = profile.add_metric(Metric::exact("allocations", Unit::Count));
        let (thread, node, description) = (ThreadId::new(0), profile.threads[0].root, StringId::new(0));
        profile.tree.add_self_cost(later, node, 3);
        profile.points.push(Point { time_ns: 1, thread, node, description, values: vec![(resident, 9)] });
        profile
    }

    #[test]
    fn levels_are_left_out_and_later_metrics_keep_their_costs() {
        let profile = with_points();
        let costs = costs_only(&profile);
        assert_eq!(costs.validate(), Ok(()));
        let names: Vec<_> = costs.metrics.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(names, ["time", "allocations"]);
        assert_eq!([0, 1].map(|metric| costs.run_cost(MetricId::new(metric))), [4, 3]);
    }

    #[test]
    fn other_formats_say_that_they_drop_points() {
        let profile = with_points();
        let mut file = Vec::new();
        let dropped = callgrind::write(&profile, &mut file).unwrap();
        assert!(dropped.notes.iter().any(|note| note == "points over time"), "{dropped:?}");
        assert!(String::from_utf8(file).unwrap().contains("events: time allocations\n"));
        let mut file = Vec::new();
        let dropped = pprof::write(&profile, &mut file).unwrap();
        assert!(dropped.notes.iter().any(|note| note == "points over time"), "{dropped:?}");
        assert_eq!(pprof::read(&file).unwrap().0.metrics.len(), 2);
    }
}
