//! Details beside costs, as JSON.

use serde::Serialize;
use treering_analysis::{Detail, Details, Growth, SizeBucket};
use treering_profile::{ActivationStatistics, Ports};

/// Details of a function or an arc beside its costs; those that the profile does not have are
/// `null`.
#[derive(Default, Serialize)]
pub(super) struct DetailObject {
    statistics: Option<StatisticsObject>,
    ports: Option<PortsObject>,
    live_bytes: Option<u64>,
    peak_bytes: Option<u64>,
}

impl DetailObject {
    pub(super) fn of(details: &Details, detail: Option<&Detail>) -> Self {
        let Some(detail) = detail else { return Self::default() };
        let memory = Some(detail.memory).filter(|_| details.has_memory);
        Self {
            statistics: Some(&detail.statistics).filter(|of| of.timed > 0).map(StatisticsObject::of),
            ports: Some(&detail.ports).filter(|_| details.has_ports).map(PortsObject::of),
            live_bytes: memory.map(|memory| memory.live_bytes),
            peak_bytes: memory.map(|memory| memory.peak_bytes),
        }
    }
}

#[derive(Serialize)]
struct StatisticsObject {
    timed: u64,
    mean: f64,
    calm: u64,
    calm_mean: Option<f64>,
    least: u64,
    greatest: u64,
    deviation: Option<f64>,
}

impl StatisticsObject {
    fn of(statistics: &ActivationStatistics) -> Self {
        Self {
            timed: statistics.timed,
            mean: statistics.mean,
            calm: statistics.calm,
            calm_mean: statistics.calm_mean(),
            least: statistics.least,
            greatest: statistics.greatest,
            deviation: statistics.variance().map(f64::sqrt),
        }
    }
}

#[derive(Serialize)]
struct PortsObject {
    exits: u64,
    redos: u64,
    fails: u64,
    exceptions: u64,
    cuts: u64,
}

impl PortsObject {
    fn of(ports: &Ports) -> Self {
        let Ports { exits, redos, fails, exceptions, cuts } = *ports;
        Self { exits, redos, fails, exceptions, cuts }
    }
}

/// Activations with arguments of about the same size.
#[derive(Serialize)]
pub(super) struct SizeObject {
    least_size: u64,
    greatest_size: u64,
    calls: u64,
    total_cost: u64,
}

pub(super) fn size_objects(detail: Option<&Detail>) -> Vec<SizeObject> {
    let object = |size: &SizeBucket| {
        let (least_size, greatest_size) = size.sizes();
        SizeObject { least_size, greatest_size, calls: size.calls, total_cost: size.total_cost }
    };
    detail.map_or_else(Vec::new, |detail| detail.sizes.iter().map(object).collect())
}

/// How costs grow with the size of the argument, with the bounds of 95 % confidence.
#[derive(Serialize)]
pub(super) struct GrowthObject {
    exponent: f64,
    exponent_low: f64,
    exponent_high: f64,
}

pub(super) fn growth_object(detail: Option<&Detail>) -> Option<GrowthObject> {
    let Growth { exponent, low, high } = Growth::of(&detail?.sizes)?;
    Some(GrowthObject { exponent, exponent_low: low, exponent_high: high })
}
