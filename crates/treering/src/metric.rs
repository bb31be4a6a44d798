//! The metric that a user names.

use treering_profile::{MetricId, Profile};

use crate::failure::Failure;

/// The metric called `name`; nothing if there is none.
pub fn named(profile: &Profile, name: &str) -> Result<Option<MetricId>, Failure> {
    let called: Vec<MetricId> =
        profile.cost_metrics().filter(|(_, metric)| metric.name == name).map(|(id, _)| id).collect();
    match called.as_slice() {
        [_, _, ..] => {
            let labels: Vec<_> = called.iter().map(|&id| profile.metric_label(id)).collect();
            let failure = Failure::new(format_args!("{} metrics are called {name:?}", called.len()));
            Err(failure
                .hint(format_args!("choose one with its unit: --metric {}", labels.join(" or --metric "))))
        }
        _ => {
            let is_cost = |metric: &MetricId| profile.cost_metrics().any(|(known, _)| known == *metric);
            Ok(profile.find_metric(name).filter(is_cost))
        }
    }
}

/// The names of all metrics, with commas between them.
pub fn names(profile: &Profile) -> String {
    let labels: Vec<_> = profile.cost_metrics().map(|(id, _)| profile.metric_label(id)).collect();
    labels.join(", ")
}
