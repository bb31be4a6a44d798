//! A plot of several lines, as SVG.

use plotters::prelude::*;

/// A line of a plot: its name and its points.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// Colours that colour-blind readers can tell apart (Okabe and Ito, "Color universal design", 2008); black comes first.
const COLORS: [RGBColor; 7] = [
    RGBColor(0, 0, 0),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(204, 121, 167),
];

/// Draws the lines over a logarithmic axis, with the names of both axes.
pub(super) fn draw(title: &str, axes: (&str, &str), lines: &[Line]) -> Result<String, String> {
    let mut svg = String::new();
    draw_into(&mut svg, title, axes, lines).map_err(|error| format!("cannot draw: {error}"))?;
    Ok(svg)
}

fn draw_into(
    svg: &mut String,
    title: &str,
    (x_name, y_name): (&str, &str),
    lines: &[Line],
) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(svg, (800, 500)).into_drawing_area();
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(620);
    let (x, y) = (range(lines, |point| point.0).ok_or("no points")?, range(lines, |point| point.1));
    let y = y.ok_or("no points")?;
    let mut chart = ChartBuilder::on(&left)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(x.0..x.1, (y.0 / 1.5..y.1 * 1.5).log_scale())?;
    chart.configure_mesh().x_desc(x_name).y_desc(y_name).light_line_style(WHITE).draw()?;
    // The names stand beside the plot, where they hide nothing.
    for ((line, color), at) in lines.iter().zip(COLORS.iter().cycle()).zip(0..) {
        let (style, height) = (color.stroke_width(2), 60 + 22 * at);
        chart.draw_series(LineSeries::new(line.points.iter().copied(), style).point_size(3))?;
        right.draw(&PathElement::new([(0, height), (20, height)], style))?;
        right.draw(&Text::new(line.name.as_str(), (28, height - 6), ("sans-serif", 14)))?;
    }
    root.present()?;
    Ok(())
}

/// The least and the greatest of a number of the points.
fn range(lines: &[Line], of: fn(&(f64, f64)) -> f64) -> Option<(f64, f64)> {
    let numbers = || lines.iter().flat_map(|line| line.points.iter().map(of));
    let range = (numbers().fold(f64::INFINITY, f64::min), numbers().fold(f64::NEG_INFINITY, f64::max));
    (range.0 <= range.1).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_in_the_plot() {
        let line = |name: &str, y| Line { name: name.to_owned(), points: vec![(1.0, y), (2.0, 10.0 * y)] };
        let svg = draw("Title", ("across", "up"), &[line("one", 0.1), line("a < b", 3.0)]).expect("a plot");
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for text in ["Title", "across", "up", "one", "a &lt; b"] {
            assert!(svg.contains(text), "{text}");
        }
        // Each as it is, and beside its name.
        let drawn = |color: &str| {
            let with_color = format!("stroke=\"{color}\" stroke-width=\"2\"");
            svg.lines().filter(|line| line.starts_with("<polyline") && line.contains(&with_color)).count()
        };
        assert_eq!([drawn("#000000"), drawn("#E69F00"), drawn("#56B4E9")], [2, 2, 0], "{svg}");
    }

    #[test]
    fn nothing_cannot_be_drawn() {
        assert!(draw("", ("", ""), &[]).is_err());
    }
}
