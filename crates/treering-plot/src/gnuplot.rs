//! The data of a plot for gnuplot, with the commands that draw it.

use std::fmt::Write as _;

use crate::axis::Unit;
use crate::parameter::{Panel, ParameterPlot, is_logarithmic};

/// A script for gnuplot that holds the data: a block for each panel, a column for each series and for both bounds of its
/// values. Values that were not measured are NaN.
pub fn parameter_gnuplot(plot: &ParameterPlot) -> String {
    let mut text = format!("# {}\n# {}\n", one_line(&plot.title), one_line(&plot.subtitle));
    for (at, panel) in plot.panels.iter().enumerate() {
        data(&mut text, at, panel, &plot.parameter);
    }
    text += "\nset datafile missing \"NaN\"\nset key left top\n";
    let _ = writeln!(text, "set xlabel {}", label(&plot.parameter));
    if plot.panels.len() > 1 {
        let _ = writeln!(text, "set multiplot layout 1,{} title {}", plot.panels.len(), label(&plot.title));
    } else {
        let _ = writeln!(text, "set title {}", label(&plot.title));
    }
    for (at, panel) in plot.panels.iter().enumerate() {
        let sizes = panel.series.iter().flat_map(|of| of.points.iter().map(|point| point.x));
        for (axis, is_logarithmic) in [("x", is_logarithmic(sizes)), ("y", is_logarithmic(panel.values()))] {
            let _ = writeln!(text, "{} logscale {axis}", if is_logarithmic { "set" } else { "unset" });
        }
        let _ = writeln!(text, "set ylabel {}", label(&format!("{}, {}", panel.name, unit(panel.unit))));
        let curves = panel.series.iter().enumerate().map(|(series, of)| {
            let column = 2 + 3 * series;
            let (low, high) = (column + 1, column + 2);
            format!("$panel{at} using 1:{column}:{low}:{high} with yerrorlines title {}", label(&of.name))
        });
        let _ = writeln!(text, "plot {}", curves.collect::<Vec<_>>().join(", \\\n     "));
    }
    if plot.panels.len() > 1 {
        text += "unset multiplot\n";
    }
    text
}

fn data(text: &mut String, at: usize, panel: &Panel, parameter: &str) {
    let _ = writeln!(text, "\n# {}, {}\n$panel{at} << END", one_line(&panel.name), unit(panel.unit));
    let names = panel.series.iter().map(|of| {
        let name = quoted(&of.name);
        format!("{name} low high")
    });
    let _ = writeln!(text, "# {} {}", quoted(parameter), names.collect::<Vec<_>>().join(" "));
    let mut sizes: Vec<f64> =
        panel.series.iter().flat_map(|of| of.points.iter().map(|point| point.x)).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    for size in sizes {
        let _ = write!(text, "{}", rounded(size));
        for series in &panel.series {
            let point = series.points.iter().find(|point| point.x == size);
            let (low, high) = point
                .and_then(|point| point.bounds.or(Some((point.y, point.y))))
                .unwrap_or((f64::NAN, f64::NAN));
            let y = point.map_or(f64::NAN, |point| point.y);
            let _ = write!(text, " {} {} {}", rounded(y), rounded(low), rounded(high));
        }
        text.push('\n');
    }
    text.push_str("END\n");
}

/// Without the digits that only arithmetic made.
fn rounded(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value)
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
        Unit::Count => "count",
        Unit::Change => "part",
    }
}

/// A text that is drawn as it is: an underscore makes no subscript.
fn label(text: &str) -> String {
    format!("{} noenhanced", quoted(text))
}

/// A string as gnuplot reads it: nothing in it is a command.
fn quoted(text: &str) -> String {
    format!("'{}'", one_line(text).replace('\'', "''"))
}

fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}
