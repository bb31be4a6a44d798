//! Time added by the call graph against the number of calls, with the straight line through it.

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
        let (width, height, margin) = (640.0, 400.0, 60.0);
        let most = self
            .points
            .iter()
            .fold((1.0_f64, 1e-6_f64), |most, point| (most.0.max(point.0), most.1.max(point.1)));
        let x = |calls: f64| margin + calls / most.0 * (width - 2.0 * margin);
        let y = |seconds: f64| height - margin - seconds / most.1 * (height - 2.0 * margin);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<path d=\"M{margin} {margin}V{}H{}\" fill=\"none\" stroke=\"black\"/>\n",
            height - margin,
            width - margin
        );
        for part in 0..=4 {
            let (calls, seconds) = (most.0 * f64::from(part) / 4.0, most.1 * f64::from(part) / 4.0);
            svg += &format!(
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{calls:.0}</text>\n",
                x(calls),
                height - margin + 18.0
            );
            svg += &format!(
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{:.2}</text>\n",
                margin - 6.0,
                y(seconds) + 4.0,
                seconds * 1e3
            );
        }
        let end = self.intercept + self.slope * most.0;
        svg += &format!(
            "<path d=\"M{:.1} {:.1}L{:.1} {:.1}\" stroke=\"#0072b2\" stroke-width=\"2\"/>\n",
            x(0.0),
            y(self.intercept),
            x(most.0),
            y(end)
        );
        for &(calls, seconds) in &self.points {
            svg += &format!(
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"#d55e00\"/>\n",
                x(calls),
                y(seconds)
            );
        }
        svg += &format!(
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">calls of a user function</text>\n<text x=\"{margin}\" y=\"{}\">added processor time, ms: {:.1} ns a call, r² = {:.4}</text>\n</svg>\n",
            width / 2.0,
            height - 14.0,
            margin - 20.0,
            self.slope * 1e9,
            self.fit
        );
        svg
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
