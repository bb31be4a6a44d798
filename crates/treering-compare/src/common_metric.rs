//! The metric in which two profiles are compared.

use treering_analysis::default_metric;
use treering_profile::{Metric, MetricId, Profile, Unit};

use crate::difference::NotComparable;
use crate::sides::Sides;

/// The metrics that are processor time, as other tools and the kernel's events call it.
const PROCESSOR_TIME: [&str; 4] = ["cpu-clock", "task-clock", "cpu-time", "cpu"];

/// The metric that is compared, in both: `wanted`, or else the first of head that base has as well, then base's. Processor
/// time of another name is one metric. Numbers of samples come last, since they depend on how often samples were taken.
pub(crate) fn common_metric(
    profiles: Sides<&Profile>,
    wanted: Option<&str>,
) -> Result<Sides<MetricId>, NotComparable> {
    let chosen = match wanted {
        Some(name) => {
            let has = profiles.map(|profile| !profile.cost_metrics_called(name).is_empty());
            match in_both(profiles, name).as_slice() {
                [] => return Err(NotComparable::NotMeasured(has, name.to_owned())),
                [chosen] => *chosen,
                many => {
                    let label = |pair: &Sides<MetricId>| profiles.head.metric_label(pair.head).into_owned();
                    return Err(NotComparable::Ambiguous(many.iter().map(label).collect()));
                }
            }
        }
        None => first_common(profiles).ok_or_else(|| NotComparable::NoMetric(profiles.map(names)))?,
    };
    let of = |profile: &Profile, id: MetricId| profile.metrics[id.index()].clone();
    let (base, head) = (of(profiles.base, chosen.base), of(profiles.head, chosen.head));
    if base.unit != head.unit {
        return Err(NotComparable::OtherUnit(head.name));
    }
    match periods(profiles, chosen) {
        Sides { base: Some(in_base), head: Some(in_head) } if in_base != in_head => {
            Err(NotComparable::OtherSampling(head.name))
        }
        _ => Ok(chosen),
    }
}

/// Whether the metric counts samples, and one profile alone tells how often they were taken.
pub(crate) fn is_period_known_of_one(profiles: Sides<&Profile>, metrics: Sides<MetricId>) -> bool {
    let known = periods(profiles, metrics);
    known.base.is_some() != known.head.is_some()
}

fn first_common(profiles: Sides<&Profile>) -> Option<Sides<MetricId>> {
    let named = |id: Option<MetricId>, profile: &Profile| id.map(|id| profile.metric_label(id).into_owned());
    let defaults = [profiles.head, profiles.base].map(|profile| named(default_metric(profile), profile));
    let all = names(profiles.head);
    let candidates = defaults.into_iter().flatten().chain(all);
    let (samples, costs): (Vec<_>, Vec<_>) = candidates
        .filter_map(|name| in_both(profiles, &name).first().copied())
        .partition(|&metrics| periods(profiles, metrics).counts_samples());
    costs.first().copied().or_else(|| processor_time(profiles)).or_else(|| samples.first().copied())
}

/// Processor time in both, whatever it is called.
fn processor_time(profiles: Sides<&Profile>) -> Option<Sides<MetricId>> {
    let time = |profile: &Profile| {
        let mut found = PROCESSOR_TIME.iter().flat_map(|name| profile.cost_metrics_called(name));
        found.find(|id| profile.metrics[id.index()].unit == Unit::Nanoseconds)
    };
    Some(Sides { base: time(profiles.base)?, head: time(profiles.head)? })
}

fn names(profile: &Profile) -> Vec<String> {
    profile.cost_metrics().map(|(id, _)| profile.metric_label(id).into_owned()).collect()
}

/// The metrics that a name means in both, with one unit, or else with any.
fn in_both(profiles: Sides<&Profile>, name: &str) -> Vec<Sides<MetricId>> {
    let (in_base, in_head) =
        (profiles.base.cost_metrics_called(name), profiles.head.cost_metrics_called(name));
    let pairs = in_head.iter().flat_map(|&head| in_base.iter().map(move |&base| Sides { base, head }));
    let (alike, others): (Vec<_>, Vec<_>) = pairs.partition(|pair| {
        profiles.base.metrics[pair.base.index()].unit == profiles.head.metrics[pair.head.index()].unit
    });
    if alike.is_empty() { others } else { alike }
}

/// A sample's event, unless it is time, and the amount that it stands for.
type Period = (Option<String>, Option<u64>);

/// For each profile in which a metric counts the samples of another one: the period of that.
fn periods(profiles: Sides<&Profile>, metrics: Sides<MetricId>) -> Sides<Option<Period>> {
    let of = |profile: &Profile, id: MetricId| {
        let counted = profile.metrics.iter().find(|other: &&Metric| other.counted_by() == Some(id))?;
        let event = (counted.unit != Unit::Nanoseconds).then(|| counted.name.clone());
        Some((event, counted.sampling.as_ref().and_then(|sampling| sampling.period)))
    };
    Sides { base: of(profiles.base, metrics.base), head: of(profiles.head, metrics.head) }
}

impl Sides<Option<Period>> {
    fn counts_samples(self) -> bool {
        self.base.is_some() || self.head.is_some()
    }
}
