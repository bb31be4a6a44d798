//! A metric over the commits of a program.

use crate::axis::{Axis, Unit};
use crate::canvas::{Anchor, Canvas, Look, picture};
use crate::colour::Colour;
use crate::parameter::{frame, horizontal};

/// A metric over the commits of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryPlot {
    /// The finding.
    pub title: String,
    /// The program, and the measurement.
    pub subtitle: String,
    /// The unit of the metric.
    pub unit: Unit,
    /// The commits, from the first.
    pub commits: Vec<Commit>,
    /// The levels between steps.
    pub levels: Vec<Level>,
    /// The steps.
    pub steps: Vec<Step>,
}

/// A commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    /// Its date, or what else stands below it.
    pub label: String,
    /// The value; nothing if it could not be measured.
    pub value: Option<f64>,
}

/// A level: commits from one to another, with both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// The first of them.
    pub from: usize,
    /// The last of them.
    pub to: usize,
    /// Their median.
    pub value: f64,
}

/// A step between two levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The first commit of the new level.
    pub at: usize,
    /// The change as a part of the level before.
    pub change: f64,
    /// The notes on it, a line each.
    pub lines: Vec<String>,
}

const PIXELS: (f64, f64) = (82.0, 1006.0);
const HEIGHTS: (f64, f64) = (90.0, 366.0);

/// A metric over commits, as SVG.
pub fn history_svg(plot: &HistoryPlot) -> String {
    picture((1030, 402), &plot.title, |canvas| {
        canvas.title(&plot.title, &plot.subtitle);
        let values = || plot.commits.iter().filter_map(|commit| commit.value);
        let last = plot.commits.len().saturating_sub(1).max(1) as f64;
        let x = Axis::exact(0.0, last, (PIXELS.0 + 18.0, PIXELS.1 - 14.0));
        let y = Axis::linear(values(), (HEIGHTS.1 - 16.0, HEIGHTS.0 + 8.0));
        for tick in y.ticks(7) {
            horizontal(canvas, PIXELS, y.at(tick), &plot.unit.text(tick));
        }
        draw_dates(canvas, plot, &x);
        frame(canvas, PIXELS, HEIGHTS);
        for level in &plot.levels {
            let (from, to) = (x.at(level.from as f64) - 8.0, x.at(level.to as f64) + 8.0);
            canvas.rectangle((from, y.at(level.value) - 4.0), (to, y.at(level.value) + 4.0), Colour::Level);
        }
        let built: Vec<_> = plot
            .commits
            .iter()
            .enumerate()
            .filter_map(|(at, of)| Some((x.at(at as f64), y.at(of.value?))))
            .collect();
        canvas.path(&stairs(&built), Colour::Run, 1);
        built.iter().for_each(|point| canvas.disc(*point, 4, Colour::Series(1)));
        for (at, _) in plot.commits.iter().enumerate().filter(|(_, commit)| commit.value.is_none()) {
            canvas.text((x.at(at as f64), HEIGHTS.1 - 10.0), "×", Look { size: 15.0, ..Look::NOTE.centre() });
        }
        for step in &plot.steps {
            draw_step(canvas, step, &x);
        }
        canvas.text(
            (PIXELS.0 + 4.0, HEIGHTS.0 - 10.0),
            &format!("axis from {}, not from 0", plot.unit.text(y.from())),
            Look::NOTE,
        );
    })
}

/// From each commit to the next, the change halfway.
fn stairs(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut corners = Vec::new();
    for pair in points.windows(2) {
        let middle = (pair[0].0 + pair[1].0) / 2.0;
        corners.extend([pair[0], (middle, pair[0].1), (middle, pair[1].1), pair[1]]);
    }
    corners
}

fn draw_dates(canvas: &Canvas<'_>, plot: &HistoryPlot, x: &Axis) {
    let every = plot.commits.len().div_ceil(10).max(1);
    for (at, commit) in plot.commits.iter().enumerate().filter(|(at, _)| at.is_multiple_of(every)) {
        let at = x.at(at as f64);
        canvas.line((at, HEIGHTS.0), (at, HEIGHTS.1), Colour::Grid, 1);
        canvas.text((at, HEIGHTS.1 + 15.0), &commit.label, Look::NOTE.centre());
    }
}

fn draw_step(canvas: &Canvas<'_>, step: &Step, x: &Axis) {
    let is_more = step.change > 0.0;
    let colour = if is_more { Colour::More } else { Colour::Less };
    let at = x.at(step.at as f64 - 0.5);
    canvas.dotted(&[(at, HEIGHTS.0), (at, HEIGHTS.1)], colour, 4.0);
    // To the side where there is more room.
    let middle = f64::midpoint(PIXELS.0, PIXELS.1);
    let (offset, anchor) = if at > middle { (-7.0, Anchor::Right) } else { (7.0, Anchor::Left) };
    let mark = if is_more { "▲" } else { "▼" };
    let first = format!("{mark} {}", Unit::Change.text(step.change));
    let lines = std::iter::once(&first).chain(&step.lines);
    for (line, text) in lines.enumerate() {
        let look = Look { anchor, ..Look::NOTE.in_colour(colour) };
        canvas.text((at + offset, HEIGHTS.0 + 22.0 + 18.0 * line as f64), text, look);
    }
}
