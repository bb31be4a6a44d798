//! Takes lines below the first one of a sample apart.

use crate::perf_script::header::is_hex;

/// A frame of a call chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) address: u64,
    /// The function without the offset in it; empty where it is not known.
    pub(crate) symbol: &'a [u8],
    /// The file that holds the function; empty where it is not known.
    pub(crate) module: &'a [u8],
    /// Whether the function was inlined into that of the next frame.
    pub(crate) inlined: bool,
}

impl<'a> Frame<'a> {
    /// `1217 solve+0x37 (/tmp/mix)`, `1217 poly (inlined)` or `1217 solve`.
    ///
    /// The last parentheses hold the file; names of functions have parentheses too.
    pub(crate) fn parse(line: &'a [u8]) -> Option<Self> {
        let line = line.trim_ascii();
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        let (address, rest) = line.split_at(end);
        let address = is_hex(address).then(|| std::str::from_utf8(address).ok()).flatten()?;
        let address = u64::from_str_radix(address, 16).ok()?;
        let mut frame = Self { address, ..Self::default() };
        let mut rest = rest.trim_ascii();
        if let Some(before) = rest.strip_suffix(b"(inlined)") {
            frame.inlined = true;
            rest = before.trim_ascii_end();
        }
        if rest.ends_with(b")")
            && let Some(open) = opening(rest)
        {
            frame.module = without_offset(&rest[open + 1..rest.len() - 1]);
            rest = rest[..open].trim_ascii_end();
        }
        if !matches!(rest, b"[unknown]") {
            frame.symbol = without_offset(rest);
        }
        if matches!(frame.module, b"[unknown]" | b"inlined") {
            frame.module = b"";
        }
        Some(frame)
    }
}

/// Where the last parentheses that close at the end open, if a blank is before them.
fn opening(text: &[u8]) -> Option<usize> {
    let mut depth = 0;
    let at = text.iter().rposition(|byte| {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    (at == 0 || text[at - 1] == b' ').then_some(at)
}

/// The text before `+0x37`.
fn without_offset(text: &[u8]) -> &[u8] {
    let Some(plus) = text.iter().rposition(|&byte| byte == b'+') else { return text };
    let offset = text[plus + 1..].strip_prefix(b"0x");
    if plus > 0 && offset.is_some_and(is_hex) { &text[..plus] } else { text }
}

/// `mix.c:7` or `mix.c:7 (inlined)`, as `-F srcline` prints it below a frame: the file, the line, and
/// whether the frame is inlined. The line is 0 where it is not known: `??:0` or `libc.so.6[27249]`.
pub(crate) fn source_line(line: &[u8]) -> Option<(&[u8], u32, bool)> {
    let line = line.trim_ascii();
    let (line, inlined) = match line.strip_suffix(b"(inlined)") {
        Some(line) => (line.trim_ascii_end(), true),
        None => (line, false),
    };
    if let Some(address) = line.strip_suffix(b"]") {
        let open = address.iter().rposition(|&byte| byte == b'[')?;
        return is_hex(&address[open + 1..]).then_some((&address[..open], 0, inlined));
    }
    let colon = line.iter().rposition(|&byte| byte == b':')?;
    let number = std::str::from_utf8(&line[colon + 1..]).ok()?;
    let number = number.split(' ').next().unwrap_or_default();
    let number = if number == "?" { 0 } else { number.parse().ok()? };
    Some((&line[..colon], number, inlined))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_names_with_blanks_and_parentheses() {
        for (line, symbol, module, inlined) in [
            ("\t    1217 solve+0x37 (/tmp/a b/mix)", "solve", "/tmp/a b/mix", false),
            ("  27304 __libc_start_main_impl+0x84 (inlined)", "__libc_start_main_impl", "", true),
            ("1217 solve", "solve", "", false),
            ("1217 f(int, char*)+0x1 (/lib/x (deleted))", "f(int, char*)", "/lib/x (deleted)", false),
            ("7f operator()(int) const (/x)", "operator()(int) const", "/x", false),
            ("0 [unknown] ([unknown])", "", "", false),
            (
                "ffffffff821facd8 __schedule+0x618 ([kernel.kallsyms])",
                "__schedule",
                "[kernel.kallsyms]",
                false,
            ),
            (
                "d70 _start+0xffff018fd5dce000 (/usr/lib/ld-2.24.so+0x1f)",
                "_start",
                "/usr/lib/ld-2.24.so",
                false,
            ),
            ("13 RegExp:[&<>\"] (/tmp/perf-7.map)", "RegExp:[&<>\"]", "/tmp/perf-7.map", false),
            ("13 f(int)", "f(int)", "", false),
            ("13", "", "", false),
        ] {
            let frame = Frame::parse(line.as_bytes()).unwrap();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let seen = (text(frame.symbol), text(frame.module), frame.inlined);
            assert_eq!(seen, (symbol.to_owned(), module.to_owned(), inlined), "{line}");
        }
        assert_eq!(Frame::parse(b"xyz solve (/a)"), None);
        assert_eq!(Frame::parse(b""), None);
    }

    #[test]
    fn source_lines_follow_frames() {
        assert_eq!(source_line(b"  mix.c:7"), Some((&b"mix.c"[..], 7, false)));
        assert_eq!(source_line(b"  a b.c:70 (inlined)"), Some((&b"a b.c"[..], 70, true)));
        assert_eq!(source_line(b"  x.c:7 (discriminator 3)"), Some((&b"x.c"[..], 7, false)));
        assert_eq!(source_line(b"  ??:0"), Some((&b"??"[..], 0, false)));
        assert_eq!(source_line(b"  libc.so.6[27249]"), Some((&b"libc.so.6"[..], 0, false)));
        assert_eq!(source_line(b"  7 apples"), None);
    }
}
