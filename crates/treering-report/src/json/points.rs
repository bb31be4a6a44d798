//! Points over time as JSON.

use serde::Serialize;
use treering_analysis::{Basis, PointSeries, Series};
use treering_profile::{Point, Profile, Unit};

use super::{Place, RunObject, place, run, text};

/// Points over time as JSON: `run`, `points` by run and time, and `series` with their peaks.
///
/// `profile` is the one that `series` was made of; `basis` is for the notes on the run.
pub fn points_json(profile: &Profile, series: &PointSeries<'_>, basis: &Basis) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        view: &'static str,
        run: RunObject<'a>,
        points: Vec<PointObject<'a>>,
        series: Vec<SeriesObject<'a>>,
    }
    let points = series.points.iter().map(|point| point_object(profile, series, point));
    text(&Document {
        view: "points",
        run: run(profile, basis),
        points: points.collect(),
        series: series.series.iter().map(|series| series_object(profile, series)).collect(),
    })
}

#[derive(Serialize)]
struct PointObject<'a> {
    run_number: usize,
    time_ns: u64,
    thread: &'a str,
    #[serde(flatten)]
    place: Place<'a>,
    description: &'a str,
    values: Vec<ValueObject<'a>>,
}

#[derive(Serialize)]
struct ValueObject<'a> {
    metric: &'a str,
    value: u64,
}

fn point_object<'a>(profile: &'a Profile, series: &PointSeries<'_>, point: &Point) -> PointObject<'a> {
    let metric = |metric: treering_profile::MetricId| profile.metrics[metric.index()].name.as_str();
    PointObject {
        run_number: series.run(profile, point).index() + 1,
        time_ns: point.time_ns,
        thread: &profile.threads[point.thread.index()].name,
        place: place(profile, profile.tree.function(point.node)),
        description: &profile.strings[point.description],
        values: point.values.iter().map(|&(of, value)| ValueObject { metric: metric(of), value }).collect(),
    }
}

#[derive(Serialize)]
struct SeriesObject<'a> {
    run_number: usize,
    metric: &'a str,
    unit: Unit,
    first: u64,
    peak: u64,
    relative_peak: u64,
    peak_time_ns: u64,
}

fn series_object<'a>(profile: &'a Profile, series: &Series<'_>) -> SeriesObject<'a> {
    let metric = &profile.metrics[series.metric.index()];
    SeriesObject {
        run_number: series.run.index() + 1,
        metric: &metric.name,
        unit: metric.unit,
        first: series.first,
        peak: series.peak,
        relative_peak: series.relative_peak(),
        peak_time_ns: series.peak_at.time_ns,
    }
}
