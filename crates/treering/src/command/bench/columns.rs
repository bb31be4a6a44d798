//! Tables of text.

use treering_report::printable;

use crate::failure::Failure;
use crate::terminal;

/// On which side the text of a column stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Left: names.
    Left,
    /// Right: numbers.
    Right,
}

/// The rows with each column as wide as its widest cell. Cells are escaped: names may hold anything.
pub fn table(sides: &[Side], rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| printable(cell).into_owned()).collect()).collect();
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| wide(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..sides.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(sides).zip(&widths).map(|((cell, side), width)| {
            let blank = " ".repeat(width - wide(cell));
            if *side == Side::Left { format!("{cell}{blank}") } else { format!("{blank}{cell}") }
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text += "\n";
    }
    text
}

fn wide(cell: &str) -> usize {
    cell.chars().count()
}

/// Prints text in the characters that the user's terminal has.
pub fn print(text: &str) -> Result<(), Failure> {
    match terminal::has_unicode() {
        true => terminal::print(text),
        false => terminal::print(&in_ascii(text)),
    }
}

fn in_ascii(text: &str) -> String {
    let text =
        text.replace('·', ".").replace('±', "+-").replace('–', "-").replace('×', "x").replace('µ', "u");
    treering_report::in_ascii(&text.replace('▲', "^").replace('▼', "v").replace('…', "..."))
}
