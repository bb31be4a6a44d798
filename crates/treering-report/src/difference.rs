//! The difference of two profiles: as text, Markdown and JSON.
//!
//! Always base → head, and change = head − base. The first line is the verdict, and no row contradicts it.

mod amounts;
mod blocks;
mod call_graph;
mod facts;
mod flat;
mod json;
mod lines;
mod markdown;
mod tree;
mod verdict;

pub use blocks::{difference_blocks_json, difference_blocks_text};
pub use call_graph::difference_call_graph_text;
pub use flat::difference_text;
pub use json::difference_json;
pub use lines::{difference_lines_json, difference_lines_text};
pub use markdown::{code as markdown_code, difference_markdown, escaped as markdown_text};
pub use tree::difference_tree_text;
pub use verdict::{Outcome, Verdict};

/// How many rows a table of changes has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The most rows; nothing for as many as explain nine tenths of all changes, and at most twelve.
    pub limit: Option<usize>,
}

/// The text in ASCII, for terminals that have no more: `->` for `→`, `-` for `−`.
pub fn in_ascii(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '→' => plain.push_str("->"),
            '←' => plain.push_str("<-"),
            '−' | '–' => plain.push('-'),
            '…' => plain.push_str("..."),
            '±' => plain.push_str("+-"),
            '×' => plain.push('x'),
            'µ' => plain.push('u'),
            '·' => plain.push('-'),
            '²' => plain.push_str("^2"),
            '³' => plain.push_str("^3"),
            '√' => plain.push_str("sqrt "),
            '├' | '└' => plain.push('`'),
            '│' => plain.push('|'),
            _ => plain.push(letter),
        }
    }
    plain
}
