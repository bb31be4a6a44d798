//! The memory of runs over time.

use crate::axis::{Axis, Unit};
use crate::canvas::{Look, picture};
use crate::colour::Colour;
use crate::parameter::{frame, horizontal};
use crate::place::{apart, stacked};

/// The memory of runs over time.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryPlot {
    /// The finding.
    pub title: String,
    /// The program, and the measurement.
    pub subtitle: String,
    /// The runs.
    pub series: Vec<MemorySeries>,
}

/// The memory of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct MemorySeries {
    /// The name that stands at its end.
    pub name: String,
    /// Times in nanoseconds from the start of the run, and the bytes from then on.
    pub steps: Vec<(f64, f64)>,
}

impl MemorySeries {
    /// When it was largest for the first time, and how large.
    fn peak(&self) -> Option<(f64, f64)> {
        self.steps.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.total_cmp(&a.0)))
    }
}

/// How much room the text at a peak needs, in pixels.
const PEAK_WIDTH: f64 = 180.0;

/// The memory of runs over time, as SVG. Each step is one; the peak of each run has a ring.
pub fn memory_svg(plot: &MemoryPlot) -> String {
    const PIXELS: (f64, f64) = (78.0, 880.0);
    const HEIGHTS: (f64, f64) = (88.0, 326.0);
    picture((1030, 372), &plot.title, |canvas| {
        canvas.title(&plot.title, &plot.subtitle);
        let all = || plot.series.iter().flat_map(|series| &series.steps);
        let most = |of: fn(&(f64, f64)) -> f64| all().map(of).fold(0.0, f64::max);
        let x = Axis::exact(0.0, most(|step| step.0), PIXELS);
        let y = Axis::exact(0.0, most(|step| step.1) * 1.15, (HEIGHTS.1, HEIGHTS.0));
        for tick in y.ticks(5) {
            horizontal(canvas, PIXELS, y.at(tick), &Unit::Bytes.text(tick));
        }
        for tick in x.ticks(6) {
            canvas.line((x.at(tick), HEIGHTS.0), (x.at(tick), HEIGHTS.1), Colour::Grid, 1);
            canvas.text((x.at(tick), HEIGHTS.1 + 15.0), &Unit::Nanoseconds.text(tick), Look::NOTE.centre());
        }
        frame(canvas, PIXELS, HEIGHTS);
        let ends =
            plot.series.iter().map(|series| series.steps.last().map_or(HEIGHTS.1, |step| y.at(step.1)));
        let heights = apart(&ends.collect::<Vec<_>>(), 16.0);
        let bold = Look { bold: true, ..Look::NOTE };
        for (at, (series, height)) in plot.series.iter().zip(heights).enumerate() {
            let colour = Colour::Series(at);
            canvas.path(&stairs(&series.steps, &x, &y), colour, 2);
            if let Some(&(time, bytes)) = series.steps.last() {
                canvas.mark((x.at(time), y.at(bytes)), at);
                canvas.text((x.at(time) + 12.0, height), &series.name, bold.in_colour(colour));
            }
        }
        let peaks: Vec<(usize, (f64, f64))> =
            plot.series.iter().enumerate().filter_map(|(at, series)| Some((at, series.peak()?))).collect();
        let is_left = |time: f64| x.at(time) + PEAK_WIDTH > PIXELS.1;
        let corner = |&(_, (time, bytes)): &(usize, (f64, f64))| {
            (x.at(time) - if is_left(time) { PEAK_WIDTH } else { 0.0 }, y.at(bytes) - 16.0)
        };
        let corners = stacked(&peaks.iter().map(corner).collect::<Vec<_>>(), PEAK_WIDTH, 16.0);
        for (&(at, (time, bytes)), (_, height)) in peaks.iter().zip(corners) {
            let colour = Colour::Series(at);
            canvas.ring((x.at(time), y.at(bytes)), 7, colour);
            let text = format!("peak {} at {}", Unit::Bytes.text(bytes), Unit::Nanoseconds.text(time));
            let look = bold.in_colour(colour);
            match is_left(time) {
                true => canvas.text((x.at(time) - 4.0, height), &text, look.right()),
                false => canvas.text((x.at(time) + 4.0, height), &text, look),
            }
        }
    })
}

fn stairs(steps: &[(f64, f64)], x: &Axis, y: &Axis) -> Vec<(f64, f64)> {
    let mut corners: Vec<(f64, f64)> = Vec::new();
    for &(time, bytes) in steps {
        if let Some(&(_, before)) = corners.last() {
            corners.push((x.at(time), before));
        }
        corners.push((x.at(time), y.at(bytes)));
    }
    corners
}
