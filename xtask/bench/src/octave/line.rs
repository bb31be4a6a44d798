//! Time added by the call graph against the number of calls, with the straight line through it.

use treering_plot::{Panel, ParameterPlot, Point, Series, Unit, parameter_svg};

use super::slice::{Estimate, Slices};

/// A straight line, in seconds by calls.
pub(super) struct Line {
    /// Calls, and the median of the time added.
    pub(super) points: Vec<(f64, f64)>,
    /// Seconds for each call.
    pub(super) slope: f64,
    /// Seconds besides.
    pub(super) intercept: f64,
    /// The share of the variance that the line explains.
    pub(super) fit: f64,
    /// The slopes of single rounds.
    pub(super) of_rounds: Option<Estimate>,
}

/// Ordinary least squares: slope, intercept, and the share of the variance that they explain.
fn least_squares(points: &[(f64, f64)]) -> Option<(f64, f64, f64)> {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum =
        |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|point| of(point.0 - x, point.1 - y)).sum::<f64>();
    let (xx, xy, yy) = (sum(&|a, _| a * a), sum(&|a, b| a * b), sum(&|_, b| b * b));
    let slope = xy / xx;
    (points.len() > 2 && xx > 0.0 && yy > 0.0).then(|| (slope, y - slope * x, xy * xy / (xx * yy)))
}

impl Line {
    /// Through the medians of the workloads that are named `calls-N`, in one mode.
    pub(super) fn of(slices: &Slices, mode: usize) -> Option<Self> {
        let calls_of = |name: &str| name.strip_prefix("calls-")?.parse::<f64>().ok();
        let mut points = Vec::new();
        let mut rounds: std::collections::BTreeMap<usize, Vec<(f64, f64)>> = Default::default();
        for ((workload, of_mode), pairs) in slices.pairs() {
            let Some(calls) = calls_of(workload).filter(|_| *of_mode == mode) else { continue };
            points.push((calls, Estimate::of(pairs.iter().map(|pair| pair.added_s()))?.median));
            for pair in pairs {
                rounds.entry(pair.round).or_default().push((calls, pair.added_s()));
            }
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (slope, intercept, fit) = least_squares(&points)?;
        let of_rounds = Estimate::of(rounds.values().filter_map(|points| Some(least_squares(points)?.0)));
        Some(Self { points, slope, intercept, fit, of_rounds })
    }

    /// The points and the line as SVG.
    pub(super) fn plot(&self) -> String {
        // The axis is logarithmic: it has no place for times that are not above 0.
        let series = |name: &str, seconds: &dyn Fn(f64, f64) -> f64| {
            let points = self.points.iter().map(|&(x, y)| Point { x, y: seconds(x, y) * 1e9, bounds: None });
            Series { name: name.to_owned(), points: points.filter(|point| point.y > 0.0).collect() }
        };
        parameter_svg(&ParameterPlot {
            title: format!("{:.1} ns a call, r² = {:.4}", self.slope * 1e9, self.fit),
            subtitle: "Octave with graph profiling".to_owned(),
            parameter: "calls of a user function".to_owned(),
            panels: vec![Panel {
                name: "added processor time".to_owned(),
                unit: Unit::Nanoseconds,
                series: vec![
                    series("measured", &|_, y| y),
                    series("straight line", &|calls, _| self.intercept + self.slope * calls),
                ],
                changes: Vec::new(),
                floor: 0.0,
            }],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_that_of_the_points() {
        let points: Vec<(f64, f64)> =
            (1..=5).map(|part| (f64::from(1000 * part), 0.001 + 50e-6 * f64::from(part))).collect();
        let (slope, intercept, fit) = least_squares(&points).expect("five points");
        assert!((slope - 50e-9).abs() < 1e-12 && (intercept - 0.001).abs() < 1e-9 && fit > 0.999);
        let line = Line { points, slope, intercept, fit, of_rounds: None };
        assert!(line.plot().contains("50.0 ns a call"), "{}", line.plot());
        assert!(least_squares(&line.points[..2]).is_none());
    }
}
