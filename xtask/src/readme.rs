//! The README of each crate, made from the documentation at the top of its `lib.rs`, whose example is tested.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use pulldown_cmark::{BrokenLink, Event, LinkType, Options, Parser, Tag, TagEnd};

use crate::workspace;

/// A page that is made of others, as it should be.
pub(crate) struct Made {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// The text that it should hold.
    text: String,
}

impl Made {
    /// Whether the file is as it should be.
    fn is_current(&self) -> bool {
        std::fs::read_to_string(&self.path).is_ok_and(|text| text == self.text)
    }

    /// Writes it, if it is not as it should be; returns whether it was written.
    pub(crate) fn write(&self) -> Result<bool, String> {
        if self.is_current() {
            return Ok(false);
        }
        let written = std::fs::write(&self.path, &self.text);
        written.map(|()| true).map_err(|error| format!("{}: {error}", self.path.display()))
    }
}

/// The pages of all crates with a library.
pub(crate) fn all() -> Result<Vec<Made>, String> {
    let libraries = workspace::crates()?.into_iter().filter(|path| path.join("src/lib.rs").is_file());
    libraries.map(|library| made(&library)).collect()
}

fn made(library: &Path) -> Result<Made, String> {
    let source = library.join("src/lib.rs");
    let source =
        std::fs::read_to_string(&source).map_err(|error| format!("{}: {error}", source.display()))?;
    let name = library.file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!("<!-- Made from src/lib.rs by `cargo xtask docs`. -->\n\n# {name}\n\n");
    text += &for_readers(&documentation(&source));
    text += "\n---\nA crate of [Treering](../../README.md), a call-graph profiler. Licensed under MIT or Apache-2.0, \
             at your option.\n";
    Ok(Made { path: library.join("README.md"), text })
}

/// The documentation at the top of a source file.
fn documentation(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned() + "\n").collect()
}

/// As documentation is shown outside of rustdoc: without links to items and without hidden lines of code, and with
/// its headings below the crate's name.
fn for_readers(documentation: &str) -> String {
    let mut text = String::new();
    let mut code: Option<bool> = None;
    for line in without_item_links(documentation).lines() {
        match (line.strip_prefix("```"), code) {
            (Some(words), None) => {
                let rust = words.is_empty() || words.split(',').any(|word| RUST.contains(&word));
                code = Some(rust);
                let _ = writeln!(text, "```{}", if rust { "rust" } else { words });
            }
            (Some(_), Some(_)) => {
                code = None;
                text += "```\n";
            }
            (None, Some(true)) if line == "#" || line.starts_with("# ") => {}
            (None, None) if line.starts_with('#') => _ = writeln!(text, "#{line}"),
            (None, _) => _ = writeln!(text, "{line}"),
        }
    }
    text
}

/// The names of code blocks that rustdoc takes for Rust.
const RUST: [&str; 4] = ["rust", "no_run", "ignore", "should_panic"];

/// The text with links that only rustdoc knows replaced by what they say.
fn without_item_links(documentation: &str) -> String {
    let mut any = |link: BrokenLink<'_>| Some((link.reference.into_string().into(), "".into()));
    let parser = Parser::new_with_broken_link_callback(documentation, Options::ENABLE_TABLES, Some(&mut any));
    let mut text = String::new();
    let mut copied = 0;
    let mut inside: Option<(usize, usize)> = None;
    for (event, range) in parser.into_offset_iter() {
        match event {
            Event::Start(Tag::Link { dest_url, link_type, .. }) if is_item(&dest_url, link_type) => {
                text += &documentation[copied..range.start];
                inside = Some((usize::MAX, 0));
                copied = range.start;
            }
            Event::End(TagEnd::Link) if inside.is_some() => {
                let (start, end) = inside.take().unwrap_or_default();
                text += &documentation[start.min(end)..end];
                copied = range.end;
            }
            _ => {
                inside = inside.map(|(start, end)| (start.min(range.start), end.max(range.end)));
            }
        }
    }
    text + &documentation[copied..]
}

/// Whether a link leads to an item of a crate, and not to a page.
fn is_item(target: &str, link_type: LinkType) -> bool {
    let unknown = [LinkType::ShortcutUnknown, LinkType::CollapsedUnknown, LinkType::ReferenceUnknown];
    unknown.contains(&link_type) || !(target.contains('/') || target.contains('#') || target.ends_with(".md"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_see_no_links_to_items_and_no_hidden_lines() {
        let source = "//! Counts [`Things`](crate::Things), [`Others`] and\n//! [*all*](all()): see [the page].\n\
                      //!\n//! # Limits\n//!\n//! ```no_run\n//! # hidden();\n//! shown([1]);\n//! ```\n//!\n\
                      //! ```text\n//! # shown\n//! ```\n//!\n//! [the page]: https://example.org/\nuse std::fmt;\n";
        assert_eq!(
            for_readers(&documentation(source)),
            "Counts `Things`, `Others` and\n*all*: see [the page].\n\n## Limits\n\n```rust\nshown([1]);\n```\n\n\
             ```text\n# shown\n```\n\n[the page]: https://example.org/\n"
        );
    }

    #[test]
    fn every_readme_says_what_its_crate_says() {
        let pages = all().expect("every crate has documentation");
        let stale: Vec<_> = pages.iter().filter(|page| !page.is_current()).map(|page| &page.path).collect();
        assert!(stale.is_empty(), "these do not say what src/lib.rs says: {stale:?}\nhint: cargo xtask docs");
    }
}
