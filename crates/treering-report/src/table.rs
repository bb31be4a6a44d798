//! Columns that line up.

use std::borrow::Cow;

use crate::style::Style;

/// A table of right-aligned columns and a name at the end of each row.
pub(crate) struct Table {
    headings: Vec<String>,
    name_heading: Cow<'static, str>,
    rows: Vec<Row>,
}

struct Row {
    cells: Vec<String>,
    name: String,
    share: f64,
}

impl Table {
    pub(crate) fn new(headings: Vec<String>, name_heading: impl Into<Cow<'static, str>>) -> Self {
        Self { headings, name_heading: name_heading.into(), rows: Vec::new() }
    }

    /// Adds a row; `share` of the run decides its colour.
    pub(crate) fn row(&mut self, cells: Vec<String>, name: String, share: f64) {
        self.rows.push(Row { cells, name, share });
    }

    pub(crate) fn render(&self, style: &Style) -> String {
        let widths: Vec<usize> = (0..self.headings.len()).map(|at| self.width(at)).collect();
        let used = widths.iter().map(|width| width + 2).sum();
        let mut text = String::new();
        let heading = format!("{}{}", align(&self.headings, &widths), self.name_heading);
        text.push_str(&style.bold(&heading));
        text.push('\n');
        for row in &self.rows {
            text.push_str(&style.heat(row.share, &align(&row.cells, &widths)));
            text.push_str(&style.fit(used, &row.name));
            text.push('\n');
        }
        text
    }

    fn width(&self, at: usize) -> usize {
        let cells = self.rows.iter().map(|row| row.cells[at].chars().count());
        cells.max().unwrap_or(0).max(self.headings[at].chars().count())
    }
}

/// Cells right-aligned to their widths, two spaces after each.
fn align(cells: &[String], widths: &[usize]) -> String {
    cells.iter().zip(widths).map(|(cell, width)| format!("{cell:>width$}  ")).collect()
}
