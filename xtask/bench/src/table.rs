//! A Markdown table with a heading and notes.

use serde_json::{Value, json};

/// A Markdown table with a heading and notes.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    title: String,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

impl Table {
    /// A table without rows.
    pub(super) fn new(title: &str, header: &[&str]) -> Self {
        let header = header.iter().map(|&cell| cell.to_owned()).collect();
        Self { title: title.to_owned(), header, ..Self::default() }
    }

    /// Adds a row, which has as many cells as the header.
    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The rows, for programs to read.
    pub(super) fn json(&self) -> Value {
        let row = |cells: &Vec<String>| self.header.iter().cloned().zip(cells.iter().cloned()).collect();
        json!({"title": self.title, "rows": self.rows.iter().map(row).collect::<Vec<Value>>()})
    }

    /// Adds a sentence below the table.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "## {}\n", self.title)?;
        writeln!(f, "| {} |", self.header.join(" | "))?;
        writeln!(f, "|{}", "---|".repeat(self.header.len()))?;
        for row in &self.rows {
            writeln!(f, "| {} |", row.join(" | "))?;
        }
        for note in &self.notes {
            writeln!(f, "\n{note}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_markdown() {
        let mut table = Table::new("Sizes", &["what", "bytes"]);
        table.row(vec!["a".to_owned(), "3".to_owned()]);
        table.note("Measured once.");
        let text = "## Sizes\n\n| what | bytes |\n|---|---|\n| a | 3 |\n\nMeasured once.\n";
        assert_eq!(table.to_string(), text);
        assert_eq!(table.json(), json!({"title": "Sizes", "rows": [{"what": "a", "bytes": "3"}]}));
    }
}
