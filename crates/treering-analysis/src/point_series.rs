//! Series of points over time, with their peaks.

use treering_profile::{MetricId, Point, Profile, RunId};

/// The points of a profile in order, and what they say of each metric.
#[derive(Clone, Debug, PartialEq)]
pub struct PointSeries<'a> {
    /// All points, by run and time.
    pub points: Vec<&'a Point>,
    /// The metrics that they have values of, in the order of the profile.
    pub metrics: Vec<MetricId>,
    /// For each run and metric that there are values of, what they are like.
    pub series: Vec<Series<'a>>,
}

/// The values of one metric in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Series<'a> {
    /// The run.
    pub run: RunId,
    /// The metric.
    pub metric: MetricId,
    /// The value of its first point.
    pub first: u64,
    /// The greatest value.
    pub peak: u64,
    /// The first point that has it.
    pub peak_at: &'a Point,
}

impl Series<'_> {
    /// By how much the peak exceeds the first point: what the program needed beyond what was
    /// there when it began.
    pub fn relative_peak(&self) -> u64 {
        self.peak - self.first
    }
}

/// The value of a metric at a point, where it has one.
pub fn value_at(point: &Point, metric: MetricId) -> Option<u64> {
    point.values.iter().find(|(known, _)| *known == metric).map(|(_, value)| *value)
}

impl<'a> PointSeries<'a> {
    /// The points of a profile.
    pub fn of(profile: &'a Profile) -> Self {
        let mut points: Vec<&Point> = profile.points.iter().collect();
        points.sort_by_key(|point| (run_of(profile, point), point.time_ns));
        let has = |metric: &MetricId| points.iter().any(|point| value_at(point, *metric).is_some());
        let metrics: Vec<_> = profile.metrics().map(|(metric, _)| metric).filter(has).collect();
        let mut series: Vec<Series<'a>> = Vec::new();
        for &point in &points {
            for &metric in &metrics {
                if let Some(value) = value_at(point, metric) {
                    add(&mut series, run_of(profile, point), metric, value, point);
                }
            }
        }
        Self { points, metrics, series }
    }

    /// The run that a point belongs to.
    pub fn run(&self, profile: &Profile, point: &Point) -> RunId {
        run_of(profile, point)
    }
}

fn run_of(profile: &Profile, point: &Point) -> RunId {
    profile.processes[profile.threads[point.thread.index()].process.index()].run
}

fn add<'a>(series: &mut Vec<Series<'a>>, run: RunId, metric: MetricId, value: u64, point: &'a Point) {
    match series.iter_mut().find(|known| (known.run, known.metric) == (run, metric)) {
        None => series.push(Series { run, metric, first: value, peak: value, peak_at: point }),
        Some(known) if value > known.peak => (known.peak, known.peak_at) = (value, point),
        Some(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use treering_profile::{Metric, StringId, ThreadId, Unit};

    use super::*;

    #[test]
    fn peaks_are_relative_to_the_first_point_in_time() {
        let mut profile = treering_testing::trace("0 enter main\n 9 leave main");
        let resident = profile.add_metric(Metric::level("resident", Unit::Bytes));
        let node = profile.threads[0].root;
        for (time_ns, value) in [(5, 700), (1, 500), (3, 900), (4, 900), (2, 100)] {
            let (thread, description) = (ThreadId::new(0), StringId::new(0));
            profile.points.push(Point {
                time_ns,
                thread,
                node,
                description,
                values: vec![(resident, value)],
            });
        }
        let found = PointSeries::of(&profile);
        assert_eq!(found.points.iter().map(|point| point.time_ns).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert_eq!(found.metrics, [resident]);
        let series = &found.series[0];
        assert_eq!(
            (series.first, series.peak, series.peak_at.time_ns, series.relative_peak()),
            (500, 900, 3, 400)
        );
    }
}
