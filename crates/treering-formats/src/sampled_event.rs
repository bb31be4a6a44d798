//! Events that were sampled, and the two metrics of each: what its samples stand for, and their number.

use treering_profile::{FunctionKind, Metric, MetricId, Profile, Unit};

use crate::Problem;
use crate::label::text_of;

/// How many events there may be; every one is two columns of costs.
pub(crate) const MOST_EVENTS: usize = 128;

/// There are more events than that.
pub(crate) fn too_many_events() -> Problem {
    Problem::unsupported(format!("there are more events than the {MOST_EVENTS} that can be read"))
}

/// An event and the columns of its costs.
pub(crate) struct SampledEvent {
    pub(crate) name: Vec<u8>,
    pub(crate) samples: MetricId,
    pub(crate) cost: Option<MetricId>,
    /// The period, as long as all samples have the same.
    pub(crate) period: Option<u64>,
    /// How many samples have no period.
    pub(crate) without_period: u64,
}

impl SampledEvent {
    /// An event whose first sample has this period.
    pub(crate) fn new(profile: &mut Profile, name: &[u8], period: Option<u64>) -> Self {
        let cost = period.map(|_| profile.add_metric(cost_metric(name)));
        let samples = profile.add_metric(Metric::exact("", Unit::Count));
        Self { name: name.to_vec(), samples, cost, period, without_period: 0 }
    }

    /// The costs of a sample.
    pub(crate) fn weights(&mut self, profile: &mut Profile, period: Option<u64>) -> Vec<(MetricId, u64)> {
        let mut weights = vec![(self.samples, 1)];
        match period {
            Some(period) => {
                let cost = *self.cost.get_or_insert_with(|| profile.add_metric(cost_metric(&self.name)));
                self.period = self.period.filter(|&known| known == period);
                weights.push((cost, period));
            }
            None => self.without_period += 1,
        }
        weights
    }
}

/// Names the metrics of all events, when all samples were read; gives what there is to note.
pub(crate) fn name_metrics(profile: &mut Profile, events: &[SampledEvent]) -> Vec<String> {
    let alone = events.len() == 1;
    for event in events {
        let name = text_of(&event.name).into_owned();
        let short = alone && name != "samples" || name.is_empty();
        let count = if short { "samples".to_owned() } else { format!("{name} samples") };
        profile.metrics[event.samples.index()].name = count;
        let Some(cost) = event.cost else { continue };
        let period = event.period.filter(|_| event.without_period == 0);
        let unit = profile.metrics[cost.index()].unit;
        let name = if name.is_empty() { "period".to_owned() } else { name };
        profile.metrics[cost.index()] = Metric::sampled(name, unit, event.samples, period);
    }
    let lacking = events.iter().filter(|event| event.cost.is_some() && event.without_period > 0);
    let note = |event: &SampledEvent| {
        let (name, count) = (text_of(&event.name), event.without_period);
        format!("samples of {name} have no period, so they cost nothing there: {count}")
    };
    lacking.map(note).collect()
}

/// Notes in a profile that no sample has a caller. Inlined functions are found in the innermost one.
pub(crate) fn note_missing_callers(profile: &mut Profile) {
    let tree = &profile.tree;
    let called = |node| profile.functions[tree.function(node)].kind != FunctionKind::Inlined;
    let has_caller =
        |node| tree.parent(node).and_then(|caller| tree.parent(caller)).is_some() && called(node);
    if tree.nodes().any(|node| tree.parent(node).is_some()) && !tree.nodes().any(has_caller) {
        let sampled = profile.metrics.iter().filter(|metric| metric.sampling.is_some());
        let names: Vec<&str> = sampled.map(|metric| metric.name.as_str()).collect();
        let of = if names.is_empty() { String::new() } else { format!(" of {}", names.join(", ")) };
        profile.metadata.note(format!(
            "no sample{of} has a caller, so total costs are those of single functions; perf record --call-graph records callers"
        ));
    }
}

/// The metric of what an event's samples stand for.
fn cost_metric(event: &[u8]) -> Metric {
    let base = event.split(|byte| matches!(byte, b':' | b'/')).next().unwrap_or_default();
    let unit = match base {
        b"cpu-clock" | b"task-clock" => Unit::Nanoseconds,
        _ => Unit::Count,
    };
    Metric::exact(text_of(event), unit)
}
