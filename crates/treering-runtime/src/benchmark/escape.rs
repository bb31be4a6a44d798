//! Names and texts of the program's as each format needs them.

use treering_events::character::{is_obeyed, is_unseen};

/// Escapes text for element content of XML 1.0. Invalid UTF-8 and characters that XML forbids become
/// U+FFFD; a carriage return is written as a reference, because readers would make it a line end.
pub(crate) fn xml_content(bytes: &[u8]) -> String {
    let escape = |out: &mut String, character| match character {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '\r' => out.push_str("&#13;"),
        '\t' | '\n' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => out.push(character),
        _ => out.push('\u{fffd}'),
    };
    each(bytes, escape)
}

/// The same for an attribute between double quotes, where line ends and tabs would be read as
/// spaces.
pub(crate) fn xml_attribute(bytes: &[u8]) -> String {
    let content = xml_content(bytes);
    content.replace('"', "&quot;").replace('\n', "&#10;").replace('\t', "&#9;")
}

/// A name on one line of a text: control characters become `\n`, `\t` or `\u{7}`, and so do characters that nobody sees.
pub(crate) fn line(bytes: &[u8]) -> String {
    each(bytes, |out, character| match character {
        '\n' | '\t' | '\r' => out.extend(character.escape_default()),
        _ if is_obeyed(character) || is_unseen(character) => out.extend(character.escape_unicode()),
        _ => out.push(character),
    })
}

/// A text of several lines, each as [`line`] has it.
pub(crate) fn lines(bytes: &[u8]) -> Vec<String> {
    bytes.split(|&byte| byte == b'\n').map(|one| line(one.strip_suffix(b"\r").unwrap_or(one))).collect()
}

/// A part of a double-quoted string of DOT. A backslash would start an escape there.
pub(crate) fn dot(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// A column of gnuplot data between double quotes, which cannot hold one.
pub(crate) fn gnuplot(bytes: &[u8]) -> String {
    line(bytes).replace('"', "'")
}

/// At most `columns` characters; a longer text ends with an ellipsis.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.into();
    }
    let mut short: String = text.chars().take(columns.saturating_sub(1)).collect();
    short.push('…');
    short
}

fn each(bytes: &[u8], escape: impl Fn(&mut String, char)) -> String {
    let mut out = String::with_capacity(bytes.len());
    String::from_utf8_lossy(bytes).chars().for_each(|character| escape(&mut out, character));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_holds_any_bytes() {
        assert_eq!(xml_content(b"a<b> & \"c\"\x01\xff\r\n"), "a&lt;b&gt; &amp; \"c\"\u{fffd}\u{fffd}&#13;\n");
        assert_eq!(xml_attribute(b"\"a\"\n\tb<"), "&quot;a&quot;&#10;&#9;b&lt;");
        assert_eq!(xml_content("\u{fffe}\u{1f600}".as_bytes()), "\u{fffd}\u{1f600}");
    }

    #[test]
    fn a_name_stays_on_its_line() {
        assert_eq!(line(b"a\nb\tc\x07"), "a\\nb\\tc\\u{7}");
        assert_eq!(line("user\u{200b}s \u{202e}and\u{61c} \u{ad}".as_bytes()), r"user\u{200b}s \u{202e}and\u{61c} \u{ad}");
        assert_eq!(lines(b"one\r\ntwo\x1b[0m"), ["one", "two\\u{1b}[0m"]);
    }

    #[test]
    fn quotes_are_escaped_for_dot_and_replaced_for_gnuplot() {
        assert_eq!(dot("say \"hi\\n\""), "say \\\"hi\\\\n\\\"");
        assert_eq!(gnuplot(b"say \"hi\""), "say 'hi'");
    }

    #[test]
    fn cut_text_is_not_longer_than_asked() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde…");
        assert_eq!(cut("äöüß", 3), "äö…");
    }
}
