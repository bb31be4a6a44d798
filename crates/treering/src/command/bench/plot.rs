//! `treering bench plot`.

use std::path::PathBuf;
use std::process::ExitCode;

use treering_archive::{Manifest, Unit, median};
use treering_measure::{FLOOR, Outcome as Judgement};
use treering_plot::{Change, Panel, ParameterPlot, Point, Series as Line, parameter_gnuplot, parameter_svg};

use super::amount::{amount, title};
use super::drawing::write_plot;
use super::judged::{Judged, judge, metric_of};
use super::place::Place;
use super::series::{Chosen, Series};
use crate::failure::{Failure, Outcome};
use crate::output::{check_plot_target, write_whole};
use crate::terminal;

/// Draw a parameter against times, memory or results: an SVG picture, or data for gnuplot
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Of runs that were measured twice, the latest is drawn. Below two series is their change, with its interval.

Examples:
  treering bench plot solve -x n -y time,memory -o solve.svg
  treering bench plot solve -x n --by version -o versions.svg
  treering bench plot solve -x n --to gnuplot | gnuplot -p")]
pub struct Plot {
    #[command(flatten)]
    chosen: Chosen,
    /// The metrics to draw: time, wall, memory, instructions, or names of results
    #[arg(short, value_name = "LIST", value_delimiter = ',', default_value = "time")]
    y: Vec<String>,
    /// The kind of file
    #[arg(long, value_name = "FORMAT", default_value = "svg")]
    to: Format,
    /// The file to write, as PNG where it is called .png [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace FILE even if it is not a plot
    #[arg(long, requires = "output")]
    force: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A picture
    Svg,
    /// Data and the commands that draw it
    Gnuplot,
}

impl Plot {
    /// Does it.
    pub fn run(self) -> Outcome {
        if let Some(output) = &self.output {
            check_plot_target(output, &[], self.force)?;
        }
        let mut archive = self.place.open_existing()?;
        let series = self.chosen.series(&mut archive)?;
        let plot = self.plot(&series)?;
        match (self.to, &self.output) {
            (Format::Svg, Some(output)) => write_plot(output, &parameter_svg(&plot))?,
            (Format::Svg, None) => terminal::print(&parameter_svg(&plot))?,
            (Format::Gnuplot, Some(output)) => {
                write_whole(output, |to| to.write_all(parameter_gnuplot(&plot).as_bytes()))?;
            }
            (Format::Gnuplot, None) => terminal::print(&parameter_gnuplot(&plot))?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn plot(&self, series: &[Series]) -> Result<ParameterPlot, Failure> {
        let runs: Vec<&Manifest> =
            series.iter().flat_map(|of| of.runs.iter().map(|(_, run, _)| run)).collect();
        let metrics: Vec<&str> = self.y.iter().map(|name| metric_of(name, &runs)).collect();
        let panels =
            metrics.iter().map(|metric| self.panel(series, metric)).collect::<Result<Vec<_>, _>>()?;
        let findings: Vec<_> = panels
            .iter()
            .zip(&metrics)
            .map(|(panel, metric)| finding(panel, metric, self.chosen.x()))
            .collect();
        let program = runs.first().map_or("", |run| run.program.as_str());
        let who = match series {
            [base, head] => format!("{} against {}: ", head.name, base.name),
            [only] if only.name.is_empty() => format!("{program}: "),
            _ => String::new(),
        };
        let rounds =
            |of: fn(usize, usize) -> usize| runs.iter().map(|run| run.rounds()).reduce(of).unwrap_or(0);
        let rounds = match (rounds(usize::min), rounds(usize::max)) {
            (1, 1) => "one round".to_owned(),
            (least, most) if least == most => {
                format!("median of {least} rounds, bars: {}", bars(least, most))
            }
            (least, most) => format!("median of {least} to {most} rounds, bars: {}", bars(least, most)),
        };
        Ok(ParameterPlot {
            title: format!("{who}{}", sentence(&findings)),
            subtitle: format!("{program} · {rounds}"),
            parameter: self.chosen.x().to_owned(),
            panels,
        })
    }

    fn panel(&self, series: &[Series], metric: &str) -> Result<Panel, Failure> {
        let mut lines = Vec::new();
        let mut unit = Unit::Count;
        for of in series {
            let mut points = Vec::new();
            for (x, run, _) in &of.runs {
                let Some(measured) = run.samples.get(metric) else { continue };
                let Some(y) = median(&measured.values) else { continue };
                let value: Option<f64> = x.parse().ok().filter(|x: &f64| x.is_finite());
                let Some(x) = value else {
                    let message =
                        format!("{} = {x} is no number, so it has no place on an axis", self.chosen.x());
                    return Err(Failure::new(message).hint("treering bench table shows words as well"));
                };
                unit = measured.unit;
                points.push(Point { x, y, bounds: bounds(&measured.values) });
            }
            lines.push(Line { name: of.name.clone(), points });
        }
        if lines.iter().all(|line| line.points.is_empty()) {
            let known =
                series.iter().flat_map(|of| of.runs.iter().flat_map(|(_, run, _)| run.samples.keys()));
            let mut known: Vec<&str> = known.map(String::as_str).collect();
            known.sort_unstable();
            known.dedup();
            return Err(Failure::new(format_args!(
                "none of these runs has {metric}; there are: {}",
                known.join(", ")
            )));
        }
        let unit = match unit {
            Unit::Ns => treering_plot::Unit::Nanoseconds,
            Unit::Bytes => treering_plot::Unit::Bytes,
            Unit::Count => treering_plot::Unit::Count,
        };
        Ok(Panel {
            name: title(metric).to_owned(),
            unit,
            series: lines,
            changes: changes(series, metric),
            floor: FLOOR,
        })
    }
}

/// The changes from the first of two series to the second.
fn changes(series: &[Series], metric: &str) -> Vec<Change> {
    let [base, head] = series else { return Vec::new() };
    let both = base.runs.iter().filter_map(|(x, run, _)| {
        let (_, other, _) = head.runs.iter().find(|(of_head, ..)| of_head == x)?;
        let judged: Judged = judge(metric, run, other, FLOOR)?;
        Some(Change {
            x: x.parse().ok()?,
            change: judged.change?,
            bounds: judged.interval,
            is_certain: matches!(judged.outcome, Judgement::More | Judgement::Less),
        })
    });
    both.collect()
}

/// A change in percent with two digits and without its unit.
fn short(change: f64) -> String {
    let percent = change * 100.0;
    let digits = if percent.abs() < 9.95 { 1 } else { 0 };
    format!("{percent:+.digits$}").replace('-', "−")
}

/// The finding of a panel, in a few words, and its place.
fn finding(panel: &Panel, metric: &str, parameter: &str) -> (String, String) {
    let name = title(metric);
    let size = |x: f64| treering_plot::Unit::Count.text(x);
    let certain: Vec<&Change> = panel.changes.iter().filter(|change| change.is_certain).collect();
    if let (Some(first), Some(last)) = (certain.first(), certain.last()) {
        let least = certain.iter().map(|of| of.change).fold(f64::INFINITY, f64::min);
        let most = certain.iter().map(|of| of.change).fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = (short(least), short(most));
        let much = if low == high { low } else { format!("{low} to {high}") };
        let place = match certain.len() {
            1 => size(first.x),
            _ => format!("{} to {}", size(first.x), size(last.x)),
        };
        return (format!("{name} {much} %"), format!(" at {parameter} = {place}"));
    }
    if !panel.changes.is_empty() {
        let ends = |of: &Change| of.bounds.unwrap_or((of.change, of.change));
        let is_within = |of: &Change| ends(of).0 >= -panel.floor && ends(of).1 <= panel.floor;
        return match panel.changes.iter().all(is_within) {
            true => (format!("same {name} within {} %", panel.floor * 100.0), String::new()),
            false => (format!("no certain change of {name}"), String::new()),
        };
    }
    let unit = match panel.unit {
        treering_plot::Unit::Nanoseconds => Unit::Ns,
        treering_plot::Unit::Bytes => Unit::Bytes,
        _ => Unit::Count,
    };
    let ends: Vec<_> = panel
        .series
        .iter()
        .filter_map(|of| Some((&of.name, of.points.first()?, of.points.last()?)))
        .collect();
    let text = match ends[..] {
        [(_, first, last)] => format!(
            "{name} {} at {parameter} = {}, {} at {}",
            amount(first.y, unit),
            size(first.x),
            amount(last.y, unit),
            size(last.x)
        ),
        _ => {
            let least = ends.iter().min_by(|a, b| a.2.y.total_cmp(&b.2.y));
            least.map_or_else(String::new, |(series, _, last)| {
                format!("least {name} at {parameter} = {}: {series}, {}", size(last.x), amount(last.y, unit))
            })
        }
    };
    (text, String::new())
}

/// Findings in one sentence; a place that several have in a row is said once.
fn sentence(findings: &[(String, String)]) -> String {
    let mut text = String::new();
    for (at, (finding, place)) in findings.iter().enumerate() {
        let is_repeated = findings.get(at + 1).is_some_and(|(_, next)| next == place);
        let place = if is_repeated { "" } else { place };
        let join = if at > 0 { "; " } else { "" };
        text += &format!("{join}{finding}{place}");
    }
    text
}

/// With fewer rounds, no two of them bound the median with 95 % confidence.
const ENOUGH: usize = 6;

/// The bars of points with these numbers of rounds, the least and the most.
fn bars(least: usize, most: usize) -> String {
    match (least < ENOUGH, most < ENOUGH) {
        (true, true) => "least and greatest".to_owned(),
        (false, _) => "95 %".to_owned(),
        (true, false) => format!("95 %; of fewer than {ENOUGH} rounds least and greatest"),
    }
}

/// Between which values the true median lies with 95 % confidence, whatever the distribution (W. J. Conover, "Practical
/// nonparametric statistics", 1971); of few values the least and the greatest. Nothing of one value, or of equal ones.
fn bounds(values: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let number = sorted.len();
    let out = if number < ENOUGH { 0 } else { left_out(number) };
    let (low, high) = (*sorted.get(out)?, *sorted.get(number.checked_sub(out + 1)?)?);
    (low < high).then_some((low, high))
}

/// How many values are left out at each end, so that the median of all lies between the others with 95 % confidence: each
/// value is above it with the chance of a coin.
fn left_out(number: usize) -> usize {
    const BEYOND: f64 = 0.025;
    let (mut ways, mut beyond) = (0.5_f64.powi(number as i32), 0.0);
    for fewer in 0..number {
        beyond += ways;
        if beyond > BEYOND {
            return fewer.saturating_sub(1);
        }
        ways *= (number - fewer) as f64 / (fewer + 1) as f64;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranks in the table of the binomial distribution: 95 % or more lies between them.
    #[test]
    fn bounds_of_a_median_are_those_of_the_binomial_distribution() {
        let first = |number: u32| bounds(&(1..=number).map(f64::from).collect::<Vec<_>>());
        assert_eq!(first(6), Some((1.0, 6.0)));
        assert_eq!(first(8), Some((1.0, 8.0)));
        assert_eq!(first(12), Some((3.0, 10.0)));
        assert_eq!(first(15), Some((4.0, 12.0)));
        assert_eq!(first(30), Some((10.0, 21.0)));
        assert_eq!((first(1), first(3), bounds(&[])), (None, Some((1.0, 3.0)), None));
        assert_eq!(bounds(&[5.0; 20]), None);
    }

    #[test]
    fn bars_of_few_and_of_many_rounds_are_told_apart() {
        assert_eq!((bars(2, 5).as_str(), bars(6, 15).as_str()), ("least and greatest", "95 %"));
        assert_eq!(bars(4, 15), "95 %; of fewer than 6 rounds least and greatest");
    }
}
