//! A picture that is drawn on.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::colour::{Colour, style};

/// A place in pixels, from the upper left corner.
pub(crate) type Pixel = (f64, f64);

/// The side of its place that a text begins at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Left,
    Centre,
    Right,
}

/// A picture that is drawn on.
pub(crate) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

/// The beginning of every picture.
const START: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- A plot made by Treering. -->\n";

/// Whether a file with this beginning is a plot that Treering drew.
pub fn is_plot(start: &[u8]) -> bool {
    start.starts_with(START.as_bytes())
}

/// The picture that `draw` makes, with its title for those who do not see it.
pub(crate) fn picture(size: (u32, u32), title: &str, draw: impl FnOnce(&Canvas<'_>)) -> String {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let canvas = Canvas { area };
        let all = ((0.0, 0.0), (f64::from(size.0), f64::from(size.1)));
        canvas.rectangle(all.0, all.1, Colour::Page);
        draw(&canvas);
        // Text in memory can always be written.
        let _ = canvas.area.present();
    }
    let Some(at) = svg.find('>') else { return svg };
    let title = format!(" role=\"img\">\n<title>{}</title>\n{}", escaped(title), style());
    svg.replace_range(at..=at, &title);
    format!("{START}{svg}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn whole((x, y): Pixel) -> (i32, i32) {
    (x.round() as i32, y.round() as i32)
}

impl Canvas<'_> {
    /// Text whose middle line is at a height.
    pub(crate) fn text(&self, at: Pixel, text: &str, look: Look) {
        // The backend divides sizes by this.
        const POINTS: f64 = 1.24;
        let weight = if look.bold { FontStyle::Bold } else { FontStyle::Normal };
        let horizontal = match look.anchor {
            Anchor::Left => HPos::Left,
            Anchor::Centre => HPos::Center,
            Anchor::Right => HPos::Right,
        };
        let font = ("sans-serif", look.size * POINTS, weight).into_font().color(&look.colour.rgb());
        let style = font.pos(Pos::new(horizontal, VPos::Center));
        let _ = self.area.draw_text(text, &style, whole(at));
    }

    /// The title and what is below it. A long title is smaller, so that it fits.
    pub(crate) fn title(&self, title: &str, subtitle: &str) {
        const FITS: f64 = 100.0;
        let length = title.chars().count() as f64;
        let size = Look::TITLE.size * (FITS / length).clamp(0.6, 1.0);
        self.text((12.0, 17.0), title, Look { size, ..Look::TITLE });
        self.text((12.0, 42.0), subtitle, Look::NOTE);
    }

    pub(crate) fn line(&self, from: Pixel, to: Pixel, colour: Colour, width: u32) {
        self.path(&[from, to], colour, width);
    }

    pub(crate) fn path(&self, points: &[Pixel], colour: Colour, width: u32) {
        let points: Vec<(i32, i32)> = points.iter().copied().map(whole).collect();
        let _ = self.area.draw(&PathElement::new(points, colour.rgb().stroke_width(width)));
    }

    /// A line of strokes of some pixels, with gaps as long.
    pub(crate) fn dotted(&self, points: &[Pixel], colour: Colour, stroke: f64) {
        let (mut gone, mut next) = (0.0, 0.0);
        for pair in points.windows(2) {
            let ((x, y), (to_x, to_y)) = (pair[0], pair[1]);
            let length = (to_x - x).hypot(to_y - y);
            let place = |along: f64| (x + (to_x - x) * along / length, y + (to_y - y) * along / length);
            while next < gone + length {
                let from = (next - gone).max(0.0);
                self.line(place(from), place((from + stroke).min(length)), colour, 2);
                next += 2.0 * stroke;
            }
            gone += length;
        }
    }

    pub(crate) fn rectangle(&self, from: Pixel, to: Pixel, colour: Colour) {
        let _ = self.area.draw(&Rectangle::new([whole(from), whole(to)], colour.rgb().filled()));
    }

    pub(crate) fn ring(&self, at: Pixel, radius: i32, colour: Colour) {
        let _ = self.area.draw(&Circle::new(whole(at), radius, colour.rgb().stroke_width(2)));
    }

    pub(crate) fn disc(&self, at: Pixel, radius: i32, colour: Colour) {
        let _ = self.area.draw(&Circle::new(whole(at), radius, colour.rgb().filled()));
    }

    /// The mark of a series: a ring, a square, a triangle, and these filled otherwise.
    pub(crate) fn mark(&self, (x, y): Pixel, series: usize) {
        const RADIUS: f64 = 5.0;
        let colour = Colour::Series(series);
        match series % 3 {
            0 => {
                self.disc((x, y), RADIUS as i32, Colour::Page);
                self.ring((x, y), RADIUS as i32, colour);
            }
            1 => self.square((x, y), colour),
            _ => {
                let corners =
                    [(x, y - RADIUS - 1.0), (x - RADIUS, y + RADIUS - 1.0), (x + RADIUS, y + RADIUS - 1.0)];
                let _ = self.area.draw(&Polygon::new(corners.map(whole), colour.rgb().filled()));
            }
        }
    }

    pub(crate) fn square(&self, (x, y): Pixel, colour: Colour) {
        const HALF: f64 = 4.0;
        self.rectangle((x - HALF, y - HALF), (x + HALF, y + HALF), colour);
    }

    /// A bar with ends, for bounds.
    pub(crate) fn bounds(&self, x: f64, low: f64, high: f64, colour: Colour) {
        const END: f64 = 4.0;
        self.line((x, low), (x, high), colour, 2);
        for y in [low, high] {
            self.line((x - END, y), (x + END, y), colour, 2);
        }
    }
}

/// The look of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) size: f64,
    pub(crate) colour: Colour,
    pub(crate) bold: bool,
    pub(crate) anchor: Anchor,
}

impl Look {
    pub(crate) const TITLE: Self = Self { size: 17.0, colour: Colour::Ink, bold: true, anchor: Anchor::Left };
    pub(crate) const HEADING: Self =
        Self { size: 14.0, colour: Colour::Ink, bold: true, anchor: Anchor::Left };
    pub(crate) const NOTE: Self =
        Self { size: 12.0, colour: Colour::Note, bold: false, anchor: Anchor::Left };

    pub(crate) fn centre(self) -> Self {
        Self { anchor: Anchor::Centre, ..self }
    }

    pub(crate) fn right(self) -> Self {
        Self { anchor: Anchor::Right, ..self }
    }

    pub(crate) fn in_colour(self, colour: Colour) -> Self {
        Self { colour, ..self }
    }
}
