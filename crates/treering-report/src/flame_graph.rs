//! A flame graph as one SVG picture, without a script.

mod style;

use std::fmt::Write as _;

use treering_analysis::{
    Basis, CallTree, Categories, Direction, Pruning, TotalSource, TreeNode, TreeRow, function_name,
    module_name,
};
use treering_profile::{Profile, StringId, Unit};
use unicode_width::UnicodeWidthStr as _;

use crate::colour::{INLINED, KINDS, WHOLE};
use crate::facts;
use crate::function::Labels;
use crate::name::{fit, fit_narrow, last_part};
use crate::number::{grouped, percent, plural, whole_cost};
use crate::picture::Picture;
use crate::printable::{printable, printable_profile};
use crate::style::Style;

/// How large a picture may be.
#[derive(Clone, Copy, Debug)]
pub struct Canvas {
    /// Its width in pixels.
    pub width: u32,
    /// The most rows of functions that are drawn.
    pub rows: usize,
}

impl Default for Canvas {
    /// As wide as most screens, and some three of them high.
    fn default() -> Self {
        Self { width: 1440, rows: 150 }
    }
}

/// Draws the flame graph of a profile, from callers down to callees, in the colours of the page.
///
/// Widths are shares of what the profile holds, numbers are of the whole run, which `basis` is of. What
/// is narrower than a pixel or deeper than the canvas is left out, and the picture says how much that is.
/// It reads in light and in dark: a style sheet within it follows the reader's choice.
pub fn flame_graph_svg(profile: &Profile, basis: &Basis, canvas: &Canvas) -> Picture {
    let profile = &*printable_profile(profile);
    let shown = profile.run_cost(basis.metric);
    let pixels = f64::from(canvas.width) - 2.0 * MARGIN;
    let share = if basis.run.cost == 0 { 0.0 } else { shown as f64 / basis.run.cost as f64 };
    let pruning = Pruning { min_share: share / pixels, max_depth: canvas.rows.saturating_sub(1) };
    let tree = CallTree::of(profile, basis, Direction::Callees, pruning);
    let drawing = Drawing {
        profile,
        basis,
        tree: &tree,
        labels: Labels::of(profile),
        categories: Categories::of(profile),
        unit: profile.metrics[basis.metric.index()].unit,
        shown,
        pixels,
        rows: canvas.rows,
    };
    drawing.picture(canvas.width)
}

/// How files begin, so that they are known as ours.
pub(crate) const SVG_START: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
    <!-- The flame graph of a profile, made by treering export. -->";

/// Pixels left and right of the graph.
const MARGIN: f64 = 12.0;
/// From one row to the next, of which a pixel is left between them.
const ROW: f64 = 20.0;
/// From one line of text to the next.
const LINE: f64 = 18.0;
/// How wide a character is: six tenths of the size in every font that the style sheet names, and a bit.
const LETTER: f64 = 7.3;
/// Narrower rectangles have no text; from the second width on they have their share.
const TEXT_FROM: f64 = 26.0;
const SHARE_FROM: f64 = 150.0;
/// From this width on what was inlined has a dashed line at its foot.
const FOOT_FROM: f64 = 34.0;

struct Drawing<'a> {
    profile: &'a Profile,
    basis: &'a Basis,
    tree: &'a CallTree,
    labels: Labels<'a>,
    categories: Categories<'a>,
    unit: Unit,
    /// The facts of the run.
    shown: u64,
    /// How wide the graph is.
    pixels: f64,
    rows: usize,
}

/// Where a rectangle is.
#[derive(Clone, Copy)]
struct Place {
    x: f64,
    y: f64,
    width: f64,
}

impl Drawing<'_> {
    fn picture(&self, width: u32) -> Picture {
        let left_out = self.left_out();
        let head = self.head(&left_out);
        let legend_at = MARGIN + LINE * head.len() as f64 + 6.0;
        let top = legend_at + LINE + 8.0;
        let deepest = self.nodes().map(|node| node.depth + 2).max().unwrap_or(1);
        let height = top + ROW * deepest as f64 + MARGIN;
        let mut text = format!(
            "{SVG_START}\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width} {height:.0}\" role=\"img\">\n<title>{}</title>\n<style>{}</style>\n\
             <rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n",
            escaped(&self.title()),
            style::sheet(),
        );
        for (at, (class, line)) in head.iter().enumerate() {
            let y = MARGIN + LINE * (at as f64 + 0.7);
            let _ = writeln!(
                text,
                "<text class=\"{class}\" x=\"{MARGIN}\" y=\"{y:.0}\">{}</text>",
                escaped(line)
            );
        }
        self.legend(&mut text, legend_at);
        self.rectangles(&mut text, top);
        text += "</svg>\n";
        Picture { text, left_out }
    }

    fn title(&self) -> String {
        let command = self.profile.runs.first().map(|run| run.command.join(" ")).unwrap_or_default();
        let metric = &self.profile.metrics[self.basis.metric.index()].name;
        match command.is_empty() {
            true => format!("Flame graph of {metric}"),
            false => format!("Flame graph of {metric}: {command}"),
        }
    }

    /// The lines above the graph, each with its class.
    fn head(&self, left_out: &[String]) -> Vec<(&'static str, String)> {
        let room = (self.pixels / LETTER) as usize;
        let style = Style { colour: false, width: Some(room) };
        let mut lines = vec![("head", fit(&printable(&self.title()), room))];
        let told = facts::lines(self.profile, self.basis).into_iter();
        let told = told.map(|(label, text)| format!("{label:<8}  {text}"));
        let own = std::iter::once(self.explanation()).chain(left_out.iter().cloned());
        for line in told.chain(own.map(|text| format!("{:<8}  {text}", "picture"))) {
            let wrapped = style.wrap(&line, 10);
            lines.extend(wrapped.split('\n').map(|line| ("fact", line.to_owned())));
        }
        lines
    }

    fn explanation(&self) -> String {
        let metric = &self.profile.metrics[self.basis.metric.index()].name;
        let widths = match self.shown == self.basis.run.cost {
            true => "widths and numbers are shares of the run".to_owned(),
            false => "widths are shares of the selected part, numbers shares of the run".to_owned(),
        };
        format!(
            "{widths} in {metric}; callers are above what they called; point at a rectangle for its numbers"
        )
    }

    /// The omissions of the picture.
    fn left_out(&self) -> Vec<String> {
        let mut left_out = Vec::new();
        for too_deep in [false, true] {
            let hidden = self.tree.rows.iter().filter_map(|row| match row {
                TreeRow::Hidden(hidden) if hidden.too_deep == too_deep => Some(hidden),
                _ => None,
            });
            let (pieces, cost) = hidden.fold((0, 0_u64), |(pieces, cost), hidden| {
                (pieces + hidden.nodes as u64, cost.saturating_add(hidden.cost.cost))
            });
            if pieces == 0 {
                continue;
            }
            let why = match too_deep {
                false => "narrower than a pixel".to_owned(),
                true => format!("deeper than {} rows", self.rows),
            };
            let (pieces, share) = (plural(pieces, "piece"), percent(self.basis.share(cost)));
            left_out
                .push(format!("not drawn: {pieces} {why}, with all that they called {share} % of the run"));
        }
        if TotalSource::of(self.profile, self.basis.metric) == TotalSource::Bounded {
            left_out.push(
                "contexts were folded below [folded: tree too large]: other totals are at least what is shown"
                    .to_owned(),
            );
        }
        left_out
    }

    fn legend(&self, text: &mut String, top: f64) {
        let mut x = MARGIN;
        for kind in KINDS {
            let words = match kind.class {
                "own" => "the program's own",
                "inlined" => "inlined into its caller",
                other => other,
            };
            let _ = writeln!(
                text,
                "<g class=\"{}\"><rect x=\"{x:.0}\" y=\"{top:.0}\" width=\"14\" height=\"14\"/></g>\
                 <text class=\"fact\" x=\"{:.0}\" y=\"{:.0}\">{words}</text>",
                kind.class,
                x + 20.0,
                top + 11.0
            );
            x += 20.0 + LETTER * words.len() as f64 + 24.0;
        }
    }

    fn nodes(&self) -> impl Iterator<Item = &TreeNode> {
        self.tree.rows.iter().filter_map(|row| match row {
            TreeRow::Node(node) => Some(node),
            TreeRow::Shared(_) | TreeRow::Hidden(_) => None,
        })
    }

    fn rectangles(&self, text: &mut String, top: f64) {
        self.whole(text, Place { x: MARGIN, y: top, width: self.pixels });
        // By depth: how much of the run is to the left of the next node.
        let mut used = vec![0_u64];
        for node in self.nodes() {
            used.truncate(node.depth + 1);
            let before = used[node.depth];
            used[node.depth] = before.saturating_add(node.total_cost.cost);
            used.push(before);
            let place = Place {
                x: MARGIN + self.wide(before),
                y: top + ROW * (node.depth + 1) as f64,
                width: self.wide(node.total_cost.cost),
            };
            self.node(text, node, place);
        }
    }

    /// How many pixels a cost is.
    fn wide(&self, cost: u64) -> f64 {
        if self.shown == 0 { 0.0 } else { cost as f64 / self.shown as f64 * self.pixels }
    }

    fn whole(&self, text: &mut String, place: Place) {
        let share = self.basis.share(self.shown);
        let name = if self.shown == self.basis.run.cost { "whole program" } else { "selected part" };
        let title = format!("{name}\n{} %, {}", percent(share), whole_cost(self.unit, self.shown));
        rectangle(text, WHOLE.class, &title, place);
        label(text, name, share, place);
        *text += "</g>\n";
    }

    fn node(&self, text: &mut String, node: &TreeNode, place: Place) {
        let kind = if node.inlined { INLINED } else { self.categories.category(node.function) as usize };
        rectangle(text, KINDS[kind].class, &self.numbers(node), place);
        let share = self.basis.share(node.total_cost.cost);
        label(text, &self.labels.without_module(node.function), share, place);
        if node.inlined && place.width >= FOOT_FROM {
            let (y, width) = (place.y + ROW - 1.5, place.width - 1.0);
            let _ = write!(text, "<path d=\"M{:.2} {y:.1}h{width:.2}\"/>", place.x);
        }
        *text += "</g>\n";
    }

    /// The text shown where the pointer rests on a rectangle.
    fn numbers(&self, node: &TreeNode) -> String {
        let mut text = function_name(self.profile, node.function).into_owned();
        let entry = &self.profile.functions[node.function];
        if let Some(module) = module_name(self.profile, node.function) {
            let _ = write!(text, "\n[{}]", module.trim_matches(['[', ']']));
        }
        if entry.file != StringId::new(0) {
            let _ = write!(text, "\n{}", &self.profile.strings[entry.file]);
            if entry.line > 0 {
                let _ = write!(text, ":{}", entry.line);
            }
        }
        let amount = |measure: treering_analysis::Measure| {
            let bounds = self.basis.interval(measure).map_or(String::new(), |interval| {
                format!(" [{}, {}]", percent(interval.low), percent(interval.high))
            });
            let share = percent(self.basis.share(measure.cost));
            format!("{share} %{bounds}, {}", whole_cost(self.unit, measure.cost))
        };
        let _ = write!(text, "\ntotal {}\nself {}", amount(node.total_cost), amount(node.self_cost));
        if let Some(calls) = node.calls {
            let _ = write!(text, "\ncalls {}", grouped(calls));
        }
        if node.inlined {
            text += "\ninlined into its caller";
        }
        text
    }
}

/// A rectangle with its title, in a group that is to be closed.
fn rectangle(text: &mut String, class: &str, title: &str, place: Place) {
    let gap = if place.width >= 3.0 { 1.0 } else { 0.25 };
    let _ = write!(
        text,
        "<g class=\"{class}\"><title>{}</title><rect x=\"{:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{:.0}\"/>",
        escaped(title),
        place.x,
        place.y,
        (place.width - gap).max(0.4),
        ROW - 1.0
    );
}

/// A name, shortened to what fits, and its share where there is room for that.
fn label(text: &mut String, name: &str, share: f64, place: Place) {
    if place.width < TEXT_FROM {
        return;
    }
    let y = place.y + 13.5;
    let mut room = place.width - 10.0;
    if place.width >= SHARE_FROM {
        let share = percent(share);
        let _ = write!(
            text,
            "<text class=\"share\" x=\"{:.1}\" y=\"{y:.1}\">{share}</text>",
            place.x + place.width - 6.0
        );
        room -= LETTER * (share.len() + 1) as f64;
    }
    let short = fit_width(name, (room / LETTER) as usize);
    if short.is_empty() {
        return;
    }
    let (qualifier, last) = short.split_at(last_part(&short));
    let _ = write!(text, "<text x=\"{:.1}\" y=\"{y:.1}\">", place.x + 5.0);
    if !qualifier.is_empty() {
        let _ = write!(text, "<tspan class=\"of\">{}</tspan>", escaped(qualifier));
    }
    let _ = write!(text, "{}</text>", escaped(last));
}

/// A name, cut to `columns` columns, of which some characters take two.
fn fit_width(name: &str, columns: usize) -> String {
    let mut room = columns;
    loop {
        let short = fit_narrow(name, room);
        match short.width().saturating_sub(columns).div_ceil(2) {
            0 => return short,
            over => room = room.saturating_sub(over),
        }
    }
}

/// Text that is no markup, of the characters that XML 1.0 allows.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => {
                escaped.push(character);
            }
            _ => escaped.push('\u{fffd}'),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
