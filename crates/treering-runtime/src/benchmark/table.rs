//! Tables of text: numbers to the right, and a name last.

use super::escape::cut;

/// How wide a table may be, in characters.
pub(crate) const COLUMNS: usize = 80;

/// The last column is never cut to less.
const LEAST: usize = 8;

/// Rows of cells. All but the last cell of a row are moved to the right of their column.
pub(crate) struct Table {
    rows: Vec<Row>,
    /// Cut the last column so that the table is no wider than [`COLUMNS`].
    pub(crate) narrow: bool,
}

enum Row {
    Cells(Vec<String>),
    Line(char),
}

impl Table {
    pub(crate) fn new(narrow: bool, heads: &[&str]) -> Self {
        let mut table = Self { rows: Vec::new(), narrow };
        table.row(heads.iter().map(|&head| head.to_owned()).collect());
        table
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(Row::Cells(cells));
    }

    /// A line through the whole table.
    pub(crate) fn line(&mut self, character: char) {
        self.rows.push(Row::Line(character));
    }

    /// The width of every column but the last.
    fn widths(&self) -> Vec<usize> {
        let mut widths = Vec::new();
        for row in &self.rows {
            let Row::Cells(cells) = row else { continue };
            let numbers = cells.len().saturating_sub(1);
            widths.resize(widths.len().max(numbers), 0);
            for (width, cell) in widths.iter_mut().zip(&cells[..numbers]) {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths
    }

    pub(crate) fn text(&self) -> String {
        let widths = self.widths();
        let used: usize = widths.iter().map(|width| width + 2).sum();
        let last = if self.narrow { COLUMNS.saturating_sub(used).max(LEAST) } else { usize::MAX };
        let mut text = String::new();
        for row in &self.rows {
            match row {
                Row::Cells(cells) => cells_text(&mut text, cells, &widths, last),
                Row::Line(character) => text.extend(std::iter::repeat_n(*character, COLUMNS)),
            }
            text.push('\n');
        }
        text
    }
}

fn cells_text(text: &mut String, cells: &[String], widths: &[usize], last: usize) {
    let Some((name, numbers)) = cells.split_last() else { return };
    for (cell, width) in numbers.iter().zip(widths) {
        text.push_str(&format!("{cell:>width$}  "));
    }
    text.push_str(&cut(name, last));
    text.truncate(text.trim_end_matches(' ').len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_right_and_long_names_are_cut() {
        let mut table = Table::new(true, &["calls", "name"]);
        table.row(vec!["7".into(), "n".repeat(100)]);
        let text = table.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "calls  name");
        assert!(lines[1].starts_with("    7  nnn") && lines[1].ends_with("n…"), "{text}");
        assert_eq!(lines[1].chars().count(), COLUMNS);
    }

    #[test]
    fn a_wide_table_cuts_nothing() {
        let mut table = Table::new(false, &["calls", "name"]);
        table.row(vec!["7".into(), "n".repeat(100)]);
        assert!(table.text().ends_with("nn\n"));
    }
}
