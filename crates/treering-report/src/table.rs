//! Columns that line up.

use std::borrow::Cow;

use crate::name::{ARROW, fit_all, fit_chain};
use crate::number::grouped;
use crate::style::Style;

/// A table of right-aligned columns and a name at the end of each row.
pub(crate) struct Table {
    headings: Vec<String>,
    name_heading: Cow<'static, str>,
    rows: Vec<Row>,
}

struct Row {
    cells: Vec<String>,
    /// How deep it is in a tree.
    depth: usize,
    /// A function, or functions that only call the next one.
    names: Vec<String>,
    share: f64,
}

impl Table {
    pub(crate) fn new(headings: Vec<String>, name_heading: impl Into<Cow<'static, str>>) -> Self {
        Self { headings, name_heading: name_heading.into(), rows: Vec::new() }
    }

    /// Adds a row; `share` of the run decides its colour.
    pub(crate) fn row(&mut self, cells: Vec<String>, name: String, share: f64) {
        self.tree_row(cells, 0, vec![name], share);
    }

    /// Adds a row of a tree: functions of which each only calls the next one.
    pub(crate) fn tree_row(&mut self, cells: Vec<String>, depth: usize, names: Vec<String>, share: f64) {
        self.rows.push(Row { cells, depth, names, share });
    }

    pub(crate) fn render(&self, style: &Style) -> String {
        let widths: Vec<usize> = (0..self.headings.len()).map(|at| self.width(at)).collect();
        let used = widths.iter().map(|width| width + 2).sum();
        let mut text = String::new();
        let heading = format!("{}{}", align(&self.headings, &widths), self.name_heading);
        text.push_str(&style.bold(&heading));
        text.push('\n');
        for (row, name) in self.rows.iter().zip(self.names(style, used)) {
            text.push_str(&style.heat(row.share, &align(&row.cells, &widths)));
            text.push_str(&name);
            text.push('\n');
        }
        text
    }

    /// What follows the columns of every row: the indentation is kept, the names are shortened.
    fn names(&self, style: &Style, used: usize) -> Vec<String> {
        let room = style.room(used);
        let indents: Vec<_> = self.rows.iter().map(|row| indent(row.depth, room)).collect();
        let Some(room) = room else {
            let rows = self.rows.iter().zip(indents);
            return rows.map(|(row, indent)| indent + &row.names.join(ARROW)).collect();
        };
        let rooms: Vec<_> = indents.iter().map(|indent| room - indent.chars().count().min(room)).collect();
        let texts = self.rows.iter().map(|row| match row.names.as_slice() {
            [name] => Cow::Borrowed(name.as_str()),
            _ => Cow::Borrowed(""),
        });
        let single = fit_all(&texts.collect::<Vec<_>>(), &rooms);
        let rows = self.rows.iter().zip(indents).zip(single.into_iter().zip(rooms));
        rows.map(|((row, indent), (single, room))| match row.names.len() {
            1 => indent + &single,
            _ => indent + &fit_chain(&row.names, room),
        })
        .collect()
    }

    fn width(&self, at: usize) -> usize {
        let cells = self.rows.iter().map(|row| row.cells[at].chars().count());
        cells.max().unwrap_or(0).max(self.headings[at].chars().count())
    }
}

/// Rows are indented no further than this, so that the text of a deep recursion does not grow with the square of
/// its depth; those below say how deep they are.
pub(crate) const DEEPEST_INDENT: usize = 100;

/// White space before a row. Where there is little room, a level takes one character, and no more than
/// a third of the room is taken.
fn indent(depth: usize, room: Option<usize>) -> String {
    const NARROW: usize = 80;
    let (step, deepest) = match room {
        None => (2, DEEPEST_INDENT),
        Some(room) if room < NARROW => (1, room / 3),
        Some(room) => (2, (room / 6).min(DEEPEST_INDENT)),
    };
    let indent = " ".repeat(step * depth.min(deepest));
    if depth > deepest { format!("{indent}[{}] ", grouped(depth as u64)) } else { indent }
}

/// Cells right-aligned to their widths, two spaces after each.
fn align(cells: &[String], widths: &[usize]) -> String {
    cells.iter().zip(widths).map(|(cell, width)| format!("{cell:>width$}  ")).collect()
}
