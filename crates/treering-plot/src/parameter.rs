//! A parameter against what was measured, for one program or several versions of it.

use crate::Series;
use crate::axis::{Axis, Unit};
use crate::canvas::{Anchor, Canvas, Look, picture};
use crate::colour::Colour;
use crate::place::apart;

/// A parameter against times, memory and results.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterPlot {
    /// The finding.
    pub title: String,
    /// The measurement, the number of rounds, and the meaning of the bars.
    pub subtitle: String,
    /// The name of the parameter.
    pub parameter: String,
    /// The metrics, one beside the other.
    pub panels: Vec<Panel>,
}

/// One of the things that were measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Its name.
    pub name: String,
    /// The unit of its values.
    pub unit: Unit,
    /// The series: programs, versions.
    pub series: Vec<Series>,
    /// The changes from the first series to the second, if they are to be drawn below.
    pub changes: Vec<Change>,
    /// Changes below this part count as none.
    pub floor: f64,
}

/// The change of a value from the first series to the second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The value of the parameter.
    pub x: f64,
    /// The change as a part of the first.
    pub change: f64,
    /// Between which bounds the true one lies.
    pub bounds: Option<(f64, f64)>,
    /// Whether it is beyond the floor and the error.
    pub is_certain: bool,
}

const WIDTH: f64 = 1030.0;
const LEFT: f64 = 70.0;
const GAP: f64 = 90.0;
const UPPER: (f64, f64) = (92.0, 356.0);
const LOWER: (f64, f64) = (386.0, 492.0);

/// A parameter against what was measured, as SVG.
pub fn parameter_svg(plot: &ParameterPlot) -> String {
    let has_changes = plot.panels.iter().any(|panel| !panel.changes.is_empty());
    let bottom = if has_changes { LOWER.1 } else { UPPER.1 };
    picture((WIDTH as u32, bottom as u32 + 48), &plot.title, |canvas| {
        canvas.title(&plot.title, &plot.subtitle);
        let number = plot.panels.len().max(1) as f64;
        let width = (WIDTH - LEFT - 24.0 - GAP * (number - 1.0)) / number;
        for (at, panel) in plot.panels.iter().enumerate() {
            let left = LEFT + at as f64 * (width + GAP);
            panel.draw(canvas, (left, left + width), &plot.parameter, bottom);
        }
    })
}

impl Panel {
    fn draw(&self, canvas: &Canvas<'_>, pixels: (f64, f64), parameter: &str, bottom: f64) {
        let sizes = self.sizes();
        // Names stand to the right of the last points.
        let room =
            self.series.iter().map(|series| series.name.chars().count()).max().unwrap_or(0) as f64 * 8.0;
        let room = if self.series.len() > 1 { room + 14.0 } else { 10.0 };
        let x = x_axis(&sizes, (pixels.0 + 8.0, pixels.1 - room));
        canvas.text((pixels.0, UPPER.0 - 16.0), &self.name, Look::HEADING);
        let y = match is_logarithmic(self.values()) {
            true => Axis::logarithmic(self.values(), (UPPER.1, UPPER.0)),
            false => Axis::linear(self.values(), (UPPER.1, UPPER.0)),
        };
        grid(canvas, &x, &sizes, UPPER);
        for tick in y.ticks(5) {
            horizontal(canvas, pixels, y.at(tick), &self.unit.text(tick));
        }
        frame(canvas, pixels, UPPER);
        for (at, series) in self.series.iter().enumerate() {
            draw_series(canvas, series, at, &x, &y);
        }
        if self.series.len() > 1 {
            self.draw_names(canvas, &x, &y);
        }
        if !self.changes.is_empty() {
            self.draw_changes(canvas, &x, &sizes, pixels);
        }
        for size in labelled(&sizes, &x) {
            canvas.text((x.at(size), bottom + 14.0), &Unit::Count.text(size), Look::NOTE.centre());
        }
        canvas.text(((pixels.0 + pixels.1 - room) / 2.0, bottom + 34.0), parameter, Look::NOTE.centre());
    }

    fn sizes(&self) -> Vec<f64> {
        let mut sizes: Vec<f64> =
            self.series.iter().flat_map(|series| series.points.iter().map(|point| point.x)).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        sizes
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = f64> + '_ {
        let points = self.series.iter().flat_map(|series| &series.points);
        points.flat_map(|point| {
            let (low, high) = point.bounds.unwrap_or((point.y, point.y));
            [low, point.y, high]
        })
    }

    fn draw_names(&self, canvas: &Canvas<'_>, x: &Axis, y: &Axis) {
        let ends: Vec<_> =
            self.series.iter().enumerate().filter_map(|(at, of)| Some((at, *of.points.last()?))).collect();
        let heights: Vec<f64> = ends.iter().map(|(_, point)| y.at(point.y)).collect();
        for ((at, point), height) in ends.iter().zip(apart(&heights, 16.0)) {
            let look = Look { bold: true, ..Look::NOTE.in_colour(Colour::Series(*at)) };
            canvas.text((x.at(point.x) + 12.0, height), &self.series[*at].name, look);
        }
    }

    /// The changes, with their bounds and the floor.
    fn draw_changes(&self, canvas: &Canvas<'_>, x: &Axis, sizes: &[f64], pixels: (f64, f64)) {
        let values = self.changes.iter().flat_map(|change| {
            let (low, high) = change.bounds.unwrap_or((change.change, change.change));
            [low, change.change, high, self.floor, -self.floor]
        });
        let y = Axis::linear(values.chain([0.0]), (LOWER.1, LOWER.0));
        canvas.rectangle((pixels.0, y.at(self.floor)), (pixels.1, y.at(-self.floor)), Colour::Floor);
        grid(canvas, x, sizes, LOWER);
        for tick in y.ticks(4) {
            horizontal(canvas, pixels, y.at(tick), &Unit::Change.text(tick));
        }
        canvas.line((pixels.0, y.at(0.0)), (pixels.1, y.at(0.0)), Colour::Axis, 2);
        frame(canvas, pixels, LOWER);
        for change in &self.changes {
            let colour = match (change.is_certain, change.change > 0.0) {
                (false, _) => Colour::Undecided,
                (true, true) => Colour::More,
                (true, false) => Colour::Less,
            };
            if let Some((low, high)) = change.bounds {
                canvas.bounds(x.at(change.x), y.at(low), y.at(high), colour);
            }
            canvas.square((x.at(change.x), y.at(change.change)), colour);
        }
        let note = format!("change; grey: undecided or within {} %", self.floor * 100.0);
        canvas.text((pixels.1, LOWER.0 - 10.0), &note, Look::NOTE.right());
    }
}

/// Whether values have a place on a logarithmic axis: 0 and what is below it have none.
pub(crate) fn is_logarithmic(mut values: impl Iterator<Item = f64>) -> bool {
    values.all(|value| value > 0.0)
}

/// Sizes that differ by factors stand on a logarithmic axis, others evenly.
fn x_axis(sizes: &[f64], pixels: (f64, f64)) -> Axis {
    match (sizes.first(), sizes.last()) {
        (Some(&first), Some(&last)) if first > 0.0 && last / first >= 4.0 => {
            Axis::logarithmic(sizes.iter().copied(), pixels)
        }
        _ => Axis::linear(sizes.iter().copied(), pixels),
    }
}

/// The sizes that there is room for.
fn labelled(sizes: &[f64], x: &Axis) -> Vec<f64> {
    const PER_LETTER: f64 = 8.0;
    let mut last = f64::NEG_INFINITY;
    let mut shown: Vec<f64> = Vec::new();
    // From the right: the largest is shown in any case.
    for &size in sizes.iter().rev() {
        let half = Unit::Count.text(size).chars().count() as f64 * PER_LETTER / 2.0;
        let at = x.at(size);
        if last == f64::NEG_INFINITY || at + half < last {
            shown.push(size);
            last = at - half;
        }
    }
    shown
}

fn grid(canvas: &Canvas<'_>, x: &Axis, sizes: &[f64], (top, bottom): (f64, f64)) {
    for size in labelled(sizes, x) {
        canvas.line((x.at(size), top), (x.at(size), bottom), Colour::Grid, 1);
    }
}

pub(crate) fn horizontal(canvas: &Canvas<'_>, (left, right): (f64, f64), y: f64, text: &str) {
    canvas.line((left, y), (right, y), Colour::Grid, 1);
    canvas.text((left - 8.0, y), text, Look { anchor: Anchor::Right, ..Look::NOTE });
}

pub(crate) fn frame(canvas: &Canvas<'_>, (left, right): (f64, f64), (top, bottom): (f64, f64)) {
    canvas.line((left, top), (left, bottom), Colour::Axis, 1);
    canvas.line((left, bottom), (right, bottom), Colour::Axis, 1);
}

fn draw_series(canvas: &Canvas<'_>, series: &Series, at: usize, x: &Axis, y: &Axis) {
    let points: Vec<_> = series.points.iter().map(|point| (x.at(point.x), y.at(point.y))).collect();
    canvas.path(&points, Colour::Series(at), 2);
    for point in &series.points {
        if let Some((low, high)) = point.bounds {
            canvas.bounds(x.at(point.x), y.at(low), y.at(high), Colour::Series(at));
        }
    }
    for pixel in points {
        canvas.mark(pixel, at);
    }
}
