//! The HTML around the data.

use std::fmt::Write as _;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

/// The page's script, its worker, its style, and the worker that lays out graphs (compressed).
const SCRIPT: &str = include_str!("../assets/viewer.js");
const WORKER: &str = include_str!("../assets/worker.js");
const STYLE: &str = include_str!("../assets/viewer.css");
const GRAPH: &[u8] = include_bytes!("../assets/graph.js.gz");

/// The text for an old browser; the script replaces it.
const BEFORE: &str = "This page needs a browser of 2023 or later with JavaScript: Chrome 112, Firefox 128 or Safari 16.4. \
                      The same numbers as text: treering report.";

/// The parts of a page.
pub(crate) struct Parts<'a> {
    pub(crate) title: &'a str,
    pub(crate) head: &'a str,
    pub(crate) packed: &'a Packed,
}

/// The compressed parts of a page, as base64.
pub(crate) struct Packed {
    pub(crate) tree: String,
    pub(crate) data: String,
    pub(crate) rest: String,
    pub(crate) time: String,
    pub(crate) code: String,
}

impl Packed {
    /// Each by its name, in the order in which a page needs them.
    pub(crate) fn in_order(&self) -> [(&'static str, &str); 5] {
        [
            ("tree", &self.tree),
            ("data", &self.data),
            ("rest", &self.rest),
            ("time", &self.time),
            ("code", &self.code),
        ]
    }
}

/// The script that stands behind each piece of what is packed: it hands the piece on while the browser still
/// reads the rest of the file.
const HAND_ON: &str = "window.treeringPiece&&treeringPiece()";

/// The length of a piece, in letters of base64: whole groups of four.
const PIECE: usize = 1 << 19;

/// The settings of a page that asks its server for new versions.
pub(crate) struct Live {
    pub(crate) version: u64,
    pub(crate) interval_ms: u64,
}

/// Puts the page together.
pub(crate) fn html(parts: &Parts<'_>, live: Option<Live>) -> String {
    let graph = STANDARD.encode(GRAPH);
    let data: usize = graph.len() + parts.packed.in_order().iter().map(|(_, text)| text.len()).sum::<usize>();
    let mut page = String::with_capacity(data + SCRIPT.len() + WORKER.len() + 65_536);
    let connect = if live.is_some() { "connect-src 'self'; " } else { "" };
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}' 'sha256-{}' 'wasm-unsafe-eval'; style-src 'sha256-{}' 'unsafe-inline'; \
         worker-src blob:; img-src data:; {connect}base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(HAND_ON),
        hash(STYLE)
    );
    page += START;
    page += GENERATOR;
    let _ = writeln!(page, "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">");
    page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    page += "<meta name=\"referrer\" content=\"no-referrer\">\n";
    let _ = writeln!(page, "<title>{} – Treering</title>", escaped(parts.title));
    let _ = writeln!(page, "<style>{STYLE}</style>\n</head>\n<body>");
    let _ = writeln!(page, "<div id=\"page\"><p class=\"wait\">{BEFORE}</p></div>");
    block(&mut page, "head", "application/json", parts.head);
    block(&mut page, "worker", "text/plain", WORKER);
    if let Some(Live { version, interval_ms }) = live {
        let text = format!("{{\"version\":{version},\"interval\":{interval_ms}}}");
        block(&mut page, "live", "application/json", &text);
    }
    // The script runs as soon as the browser has read it, and takes what comes behind it piece by piece.
    let _ = writeln!(page, "<script>{SCRIPT}</script>");
    for (name, text) in parts.packed.in_order() {
        pieces(&mut page, name, text);
    }
    block(&mut page, "graphviz", "text/plain", &graph);
    page += "</body>\n</html>\n";
    page
}

/// Whether a file that starts so is a page of ours.
pub fn is_page(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    // Titles hold commands, which may be longer than what is looked at; pages of before had nothing else.
    let marked = || text[START.len()..].starts_with(GENERATOR) || text.contains(" – Treering</title>");
    text.starts_with(START) && marked()
}

/// How pages begin.
const START: &str =
    "<!doctype html>\n<html lang=\"en\" data-theme=\"light\">\n<head>\n<meta charset=\"utf-8\">\n";

/// The mark of a page that Treering made, before anything of any length.
const GENERATOR: &str = "<meta name=\"generator\" content=\"Treering\">\n";

/// A block of data that browsers do not run.
fn block(page: &mut String, id: &str, kind: &str, text: &str) {
    let _ = writeln!(page, "<script type=\"{kind}\" id=\"{id}\">{text}</script>");
}

/// Data in pieces, of which the last one says so.
fn pieces(page: &mut String, name: &str, text: &str) {
    let count = text.len().div_ceil(PIECE).max(1);
    for at in 0..count {
        let piece = &text[at * PIECE..text.len().min((at + 1) * PIECE)];
        let last = if at + 1 == count { " data-last" } else { "" };
        let _ = write!(page, "<script type=\"text/plain\" data-piece=\"{name}\"{last}>{piece}</script>");
        let _ = writeln!(page, "<script>{HAND_ON}</script>");
    }
}

/// Compressed and as text.
pub(crate) fn packed(bytes: &[u8]) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(bytes).expect("memory takes everything");
    STANDARD.encode(encoder.finish().expect("memory takes everything"))
}

fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

/// Text that is no markup, with what cannot be seen or turns it around escaped, as the script does with all others.
fn escaped(text: &str) -> String {
    let markup = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    let shown = |c: char| if is_unseen(c) { c.escape_unicode().to_string() } else { c.to_string() };
    markup.chars().map(shown).collect()
}

/// Controls, and the characters of format that have no width.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}

/// JSON that cannot end the block that it stands in.
pub(crate) fn inert(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_ours_is_known_whatever_its_title() {
        let page = |head: &str| is_page(format!("{START}{head}").as_bytes());
        assert!(page(GENERATOR));
        // Of versions that had no such mark.
        assert!(page(&format!("<title>{} – Treering</title>", "x".repeat(20_000))));
        assert!(!page("<title>Notes</title>") && !is_page(GENERATOR.as_bytes()));
    }

    #[test]
    fn scripts_hold_nothing_that_ends_them() {
        for script in [SCRIPT, WORKER] {
            assert!(!script.contains("</script") && !script.contains("<!--"));
        }
        assert!(!STYLE.contains("</style"));
    }
}
