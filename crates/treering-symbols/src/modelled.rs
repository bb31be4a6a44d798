//! Counts of a model of the processor, as costs of functions and lines.

use std::collections::HashMap;

use treering_profile::{
    LineCost, LineId, Metric, MetricId, ModelledCount, ModelledEvent, NodeId, Profile, Unit,
};

use crate::source_map::{Source, Sources};

/// Adds a metric for each event of the model, charged to functions as instructions are.
pub(crate) fn add_modelled(profile: &mut Profile, sources: &Sources) {
    let rows = std::mem::take(&mut profile.code.modelled);
    if rows.is_empty() {
        return;
    }
    let mut lines: HashMap<(NodeId, LineId, MetricId), u64> = HashMap::new();
    for event in modelled_events(&rows) {
        let metric = profile.add_metric(Metric::exact(event.as_str(), Unit::Count));
        for row in rows.iter().filter(|row| row.event == event) {
            let Source { function, line } = sources.at(row.at);
            let root = profile.threads[row.thread.index()].root;
            let node = function.map_or(root, |function| profile.tree.child(root, function, None));
            profile.tree.add_self_cost(metric, node, row.count);
            if let Some(line) = line {
                let cost = lines.entry((node, line, metric)).or_default();
                *cost = cost.saturating_add(row.count);
            }
        }
    }
    let costs = lines.into_iter().map(|((node, line, metric), cost)| LineCost { node, line, metric, cost });
    profile.line_costs.extend(costs);
    profile.compact_line_costs();
}

/// The events of the models that counted anything, also those that never happened.
fn modelled_events(rows: &[ModelledCount]) -> impl Iterator<Item = ModelledEvent> {
    let of_caches = rows.iter().any(|row| row.event.is_of_caches());
    let of_branches = rows.iter().any(|row| !row.event.is_of_caches());
    let has = move |event: &ModelledEvent| if event.is_of_caches() { of_caches } else { of_branches };
    ModelledEvent::ALL.into_iter().filter(has)
}
