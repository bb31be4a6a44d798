//! Points of a series over time, as text.

use treering_analysis::{Basis, PointSeries, Series};
use treering_profile::{MetricId, Point, Profile};

use crate::function::Labels;
use crate::header::header_lines;
use crate::number::{duration, whole_cost};
use crate::printable::printable;
use crate::printable::printable_profile;
use crate::style::Style;
use crate::table::Table;

/// The points of each run in the order of time, with their levels; below them the peak of each metric, and by how
/// much it exceeds the first point.
///
/// `profile` is the one that `series` was made of; `basis` is for the notes on the run.
pub fn points_text(profile: &Profile, series: &PointSeries, basis: &Basis, style: &Style) -> String {
    let profile = &*printable_profile(profile);
    let mut text = header_lines(profile, basis, style);
    if series.points.is_empty() {
        return text;
    }
    let listing = Listing::of(profile, series);
    text.push('\n');
    text += &listing.table().render(style);
    text.push('\n');
    text += &listing.peaks();
    text
}

struct Listing<'a> {
    profile: &'a Profile,
    series: &'a PointSeries<'a>,
    labels: Labels<'a>,
    several_runs: bool,
    several_threads: bool,
    /// The widest name of a function.
    width: usize,
}

impl<'a> Listing<'a> {
    fn of(profile: &'a Profile, series: &'a PointSeries<'a>) -> Self {
        let labels = Labels::of(profile);
        let name = |point: &&Point| labels.name(profile.tree.function(point.node)).chars().count();
        let first = series.points.first().map(|point| (series.run(profile, point), point.thread));
        let differ = |differs: &dyn Fn(&Point) -> bool| series.points.iter().any(|point| differs(point));
        let several_runs = differ(&|point| Some(series.run(profile, point)) != first.map(|first| first.0));
        let several_threads = differ(&|point| Some(point.thread) != first.map(|first| first.1));
        let width = series.points.iter().map(name).max().unwrap_or(0).max("task".len());
        Self { profile, series, labels, several_runs, several_threads, width }
    }

    fn table(&self) -> Table {
        let heading = format!("{:<width$}  description", "task", width = self.width);
        let mut table = Table::new(self.headings(), heading);
        for point in &self.series.points {
            table.row(self.cells(point), self.name(point), 0.0);
        }
        table
    }

    fn headings(&self) -> Vec<String> {
        let mut headings = Vec::new();
        if self.several_runs {
            headings.push("run".to_owned());
        }
        headings.push("time".to_owned());
        headings.extend(self.series.metrics.iter().map(|metric| self.metric(*metric).name.clone()));
        if self.several_threads {
            headings.push("thread".to_owned());
        }
        headings
    }

    fn metric(&self, metric: MetricId) -> &treering_profile::Metric {
        &self.profile.metrics[metric.index()]
    }

    fn cells(&self, point: &Point) -> Vec<String> {
        let mut cells = Vec::new();
        if self.several_runs {
            cells.push((self.series.run(self.profile, point).index() + 1).to_string());
        }
        cells.push(duration(point.time_ns as f64));
        let value = |metric: &MetricId| {
            let value = treering_analysis::value_at(point, *metric);
            value.map_or(String::new(), |value| whole_cost(self.metric(*metric).unit, value))
        };
        cells.extend(self.series.metrics.iter().map(value));
        if self.several_threads {
            cells.push(printable(&self.profile.threads[point.thread.index()].name).into_owned());
        }
        cells
    }

    fn name(&self, point: &Point) -> String {
        let task = self.task(point);
        let description = printable(&self.profile.strings[point.description]);
        format!("{task:<width$}  {description}", width = self.width).trim_end().to_owned()
    }

    fn task(&self, point: &Point) -> String {
        self.labels.name(self.profile.tree.function(point.node)).into_owned()
    }

    /// `resident memory: at most 1,052,672 B, at 700 ns in solve; 4,096 B more than at the start`.
    fn peaks(&self) -> String {
        self.series.series.iter().map(|series| self.peak(series)).collect()
    }

    fn peak(&self, series: &Series<'_>) -> String {
        let metric = self.metric(series.metric);
        let amount = |value: u64| whole_cost(metric.unit, value);
        let of_run =
            if self.several_runs { format!("run {}, ", series.run.index() + 1) } else { String::new() };
        let (peak, more) = (amount(series.peak), amount(series.relative_peak()));
        let (when, task) = (duration(series.peak_at.time_ns as f64), self.task(series.peak_at));
        format!(
            "{of_run}{}: at most {peak}, at {when} in {task}; {more} more than at the first point\n",
            metric.name
        )
    }
}
