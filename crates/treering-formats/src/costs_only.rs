//! Profiles for formats that know costs and nothing beside them.

use std::borrow::Cow;

use treering_profile::{Arc, LineCost, MetricId, Profile, RecursionRule, Tree, pluralize};

use crate::Dropped;

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

impl Dropped {
    /// Notes what only a collector that sees every call knows, and other formats have no place
    /// for.
    pub(crate) fn note_details(&mut self, profile: &Profile) {
        self.note_if(
            profile.has_counts_apart(),
            "how often functions were called, which was counted apart from the stacks",
        );
        self.note_all_but_counts(profile);
    }

    /// For a format whose arcs hold calls that were counted apart from the stacks: what it cannot say of them.
    pub(crate) fn note_counts_of_functions(&mut self, profile: &Profile) {
        self.note_if(true, "from which lines functions were called: calls stand at the line that cost most");
        self.note_if(
            true,
            "which calls were not counted: they are written as 1, since 0 means no call; counted calls are exact",
        );
        let unknown = profile.arcs.iter().filter(|arc| arc.caller == Profile::ROOT);
        let calls = unknown.fold(0, |sum: u64, arc| sum.saturating_add(arc.calls));
        let text = format!("{} by functions that are not known", pluralize(calls, "call", "calls"));
        self.note_if(calls > 0, &text);
    }

    /// The same, for formats that have a place for calls.
    pub(crate) fn note_all_but_counts(&mut self, profile: &Profile) {
        self.note_if(profile.activations.is_some(), "statistics of single activations");
        self.note_if(!profile.ports.is_empty(), "ports of logic programs");
        self.note_if(!profile.memory.is_empty(), "memory that functions hold");
        self.note_if(!profile.points.is_empty(), "points over time");
        let weighted = profile.metrics.iter().any(|metric| metric.weights().is_some());
        self.note_if(weighted, "what intervals of confidence follow from where samples weigh differently");
        for (_, metric) in profile.cost_metrics().filter(|&(id, _)| profile.has_no_stacks_of(id)) {
            let name = &metric.name;
            self.note(format!(
                "that totals of {name} are not known: it was counted by function, and looks like self costs"
            ));
        }
        let flat = profile.recursion == RecursionRule::Flat;
        self.note_if(flat, "totals: the profile is flat, so there are no callers to derive them from");
        let biased = profile.metadata.call_bias.is_some();
        self.note_if(biased, "what measuring a call costs: the costs written are not corrected for it");
    }
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
