//! The metrics that count samples, where profiles are joined.

use std::borrow::Cow;

use crate::{Metric, MetricId, Profile, Unit};

/// Gives metrics that count samples a name of their own where the profiles do not agree on it: `samples` of `cpu` and
/// `samples` of `page-faults` become `cpu samples` and `page-faults samples`, so that they are not added up, and
/// `samples` of `cpu` becomes the `cpu samples` that another profile has.
pub(crate) fn named_apart<'a>(profiles: &[&'a Profile]) -> Vec<Cow<'a, Profile>> {
    let counters: Vec<Vec<Counter<'_>>> = profiles.iter().map(|profile| counters(profile)).collect();
    let known: Vec<&Counter<'_>> = counters.iter().flatten().collect();
    let renamed = |counter: &&Counter<'_>| !counter.of.is_empty() && known.iter().any(|k| k.differs(counter));
    let rename = |(profile, counters): (&&'a Profile, &Vec<Counter<'_>>)| {
        let mut named = Cow::Borrowed(*profile);
        for counter in counters.iter().filter(renamed) {
            let of: Vec<&str> = counter.of.iter().map(|(name, _)| *name).collect();
            named.to_mut().metrics[counter.metric.index()].name = format!("{} samples", of.join(", "));
        }
        named
    };
    profiles.iter().zip(&counters).map(rename).collect()
}

/// A metric, and the metrics whose samples it counts, in order; none of one that counts something else.
struct Counter<'a> {
    metric: MetricId,
    name: &'a str,
    of: Vec<(&'a str, Unit)>,
}

impl Counter<'_> {
    /// Whether one name stands for two things here, or two names for one.
    fn differs(&self, other: &Counter<'_>) -> bool {
        (self.name == other.name) != (self.of == other.of)
    }
}

/// The metrics of a profile that count, with what they count.
fn counters<'a>(profile: &'a Profile) -> Vec<Counter<'a>> {
    let counted = profile.cost_metrics().filter(|(_, metric)| metric.unit == Unit::Count);
    let counter = |(id, metric): (MetricId, &'a Metric)| {
        let of = profile.metrics.iter().filter(|sampled| sampled.counted_by() == Some(id));
        let mut of: Vec<_> = of.map(|sampled| (sampled.name.as_str(), sampled.unit)).collect();
        of.sort_unstable_by_key(|(name, unit)| (*name, unit.as_str()));
        Counter { metric: id, name: &metric.name, of }
    };
    counted.map(counter).collect()
}
