//! How functions grow: a small picture of each, all on the same axes.

use crate::axis::{Axis, Unit};
use crate::canvas::{Canvas, Look, picture};
use crate::colour::Colour;
use crate::parameter::{frame, horizontal};

/// How functions grow.
#[derive(Clone, Debug, PartialEq)]
pub struct GrowthPlot {
    /// The finding.
    pub title: String,
    /// The program, and the measurement.
    pub subtitle: String,
    /// The cost of the whole run by size, behind each function.
    pub run: Vec<(f64, f64)>,
    /// The unit of costs.
    pub unit: Unit,
    /// The size up to which costs are foretold.
    pub foretold: f64,
    /// The functions.
    pub panels: Vec<GrowthPanel>,
}

/// How one function grows.
#[derive(Clone, Debug, PartialEq)]
pub struct GrowthPanel {
    /// Its name.
    pub name: String,
    /// Whether its cost is its own, or with what it calls, and whether the form is settled.
    pub note: String,
    /// The form of its growth.
    pub form: String,
    /// The slope of the last step.
    pub slope: Option<f64>,
    /// Its part of the run, now and then.
    pub shares: (f64, f64),
    /// Its cost by size.
    pub points: Vec<(f64, f64)>,
    /// The cost that is foretold, from the largest size on.
    pub foretold: Vec<(f64, f64)>,
    /// Whether the run grows because of it.
    pub is_culprit: bool,
}

const COLUMNS: usize = 3;
const WIDTH: f64 = 1030.0;
const HEIGHT: f64 = 202.0;
const LEFT: f64 = 62.0;
const GAP: f64 = 62.0;
const TOP: f64 = 98.0;

/// How functions grow, as SVG.
pub fn growth_svg(plot: &GrowthPlot) -> String {
    let rows = plot.panels.len().div_ceil(COLUMNS).max(1);
    picture((WIDTH as u32, (TOP + rows as f64 * HEIGHT) as u32 - 36), &plot.title, |canvas| {
        canvas.title(&plot.title, &plot.subtitle);
        let width = (WIDTH - LEFT - 20.0 - GAP * (COLUMNS as f64 - 1.0)) / COLUMNS as f64;
        for (at, panel) in plot.panels.iter().enumerate() {
            let left = LEFT + (at % COLUMNS) as f64 * (width + GAP);
            let top = TOP + (at / COLUMNS) as f64 * HEIGHT;
            panel.draw(canvas, plot, (left, left + width), (top, top + 118.0));
        }
    })
}

impl GrowthPanel {
    fn draw(&self, canvas: &Canvas<'_>, plot: &GrowthPlot, pixels: (f64, f64), heights: (f64, f64)) {
        let colour = if self.is_culprit { Colour::Culprit } else { Colour::Series(1) };
        canvas.text((pixels.0, heights.0 - 27.0), &shortened(&self.name, 24), Look::HEADING);
        canvas.text((pixels.0, heights.0 - 10.0), &self.note, Look::NOTE);
        let form = if self.is_culprit { Look::HEADING.in_colour(colour) } else { Look::HEADING };
        canvas.text((pixels.1, heights.0 - 27.0), &self.form, form.right());
        if let Some(slope) = self.slope {
            canvas.text((pixels.1, heights.0 - 10.0), &format!("slope {slope:.2}"), Look::NOTE.right());
        }
        let (x, y) = axes(plot, pixels, heights);
        for tick in y.ticks(3) {
            horizontal(canvas, pixels, y.at(tick), &plot.unit.text(tick));
        }
        let sizes = [plot.run.first(), plot.run.last()].into_iter().flatten().map(|(size, _)| *size);
        for size in sizes.chain([plot.foretold]) {
            canvas.line((x.at(size), heights.0), (x.at(size), heights.1), Colour::Grid, 1);
            canvas.text((x.at(size), heights.1 + 13.0), &Unit::Count.text(size), Look::NOTE.centre());
        }
        frame(canvas, pixels, heights);
        let place = |&(size, cost): &(f64, f64)| (x.at(size), y.at(cost));
        let run: Vec<_> = plot.run.iter().map(place).collect();
        canvas.path(&run, Colour::Run, 5);
        let points: Vec<_> = self.points.iter().map(place).collect();
        canvas.path(&points, colour, 2);
        canvas.dotted(&self.foretold.iter().map(place).collect::<Vec<_>>(), colour, 3.0);
        points.iter().for_each(|point| canvas.square(*point, colour));
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let (now, then) = self.shares;
        let shares = format!("{} → {} at {}", percent(now), percent(then), Unit::Count.text(plot.foretold));
        canvas.text((pixels.0 + 6.0, heights.0 + 9.0), &shares, Look::NOTE);
    }
}

/// The same for all functions.
fn axes(plot: &GrowthPlot, pixels: (f64, f64), (top, bottom): (f64, f64)) -> (Axis, Axis) {
    let sizes = plot.run.iter().map(|(size, _)| *size).chain([plot.foretold]);
    let shown = plot.panels.iter().flat_map(|panel| panel.points.iter().chain(&panel.foretold));
    let costs = plot.run.iter().chain(shown).map(|(_, cost)| *cost);
    let largest = costs.clone().fold(1.0, f64::max);
    // Costs near 0 do not decide the axis.
    const DEEPEST: f64 = 1e-12;
    let y = Axis::logarithmic(costs.filter(|cost| *cost >= largest * DEEPEST), (bottom, top));
    (Axis::logarithmic(sizes, (pixels.0 + 2.0, pixels.1)), y)
}

/// A name with its middle left out if it is longer.
pub(crate) fn shortened(name: &str, most: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= most {
        return name.to_owned();
    }
    let (before, behind) = (most / 2, most - most / 2 - 1);
    let text = |letters: &[char]| letters.iter().collect::<String>();
    format!("{}…{}", text(&letters[..before]), text(&letters[letters.len() - behind..]))
}
