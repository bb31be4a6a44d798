//! The metric that a user names.

use treering_profile::{MetricId, Profile};

use crate::failure::Failure;

/// The metric called `name`; nothing if there is none.
pub fn named(profile: &Profile, name: &str) -> Result<Option<MetricId>, Failure> {
    match profile.cost_metrics_called(name).as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(*one)),
        called => {
            let labels: Vec<_> = called.iter().map(|&id| profile.metric_label(id)).collect();
            let failure = Failure::new(format_args!("{} metrics are called {name:?}", called.len()));
            Err(failure
                .hint(format_args!("choose one with its unit: --metric {}", labels.join(" or --metric "))))
        }
    }
}

/// The names of all metrics, with commas between them.
pub fn names(profile: &Profile) -> String {
    let labels: Vec<_> = profile.cost_metrics().map(|(id, _)| profile.metric_label(id)).collect();
    labels.join(", ")
}
