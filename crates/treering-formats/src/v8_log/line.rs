//! The fields of a line.

use std::borrow::Cow;

/// Divides a line at its commas. `quoted`: names are in quotes, as before V8 6.5, and may hold commas.
pub(super) fn fields(line: &str, quoted: bool) -> Vec<Cow<'_, str>> {
    if !quoted || !line.contains('"') {
        return line.split(',').map(unescaped).collect();
    }
    let (mut fields, mut start, mut inside) = (Vec::new(), 0, false);
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'"' => inside = !inside,
            b',' if !inside => {
                fields.push(unquoted(&line[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    fields.push(unquoted(&line[start..]));
    fields
}

/// A quote in quotes stands twice.
fn unquoted(field: &str) -> Cow<'_, str> {
    match field.strip_prefix('"').and_then(|field| field.strip_suffix('"')) {
        Some(inner) => Cow::Owned(unescaped(inner).replace("\"\"", "\"")),
        None => unescaped(field),
    }
}

/// `\x2C` is a comma, `\u1234` a character, `\n` a new line, `\\` a backslash.
fn unescaped(field: &str) -> Cow<'_, str> {
    if !field.contains('\\') {
        return Cow::Borrowed(field);
    }
    let mut units: Vec<u16> = Vec::new();
    let mut rest = field;
    while let Some(next) = rest.chars().next() {
        let escape = (next == '\\').then(|| escape(&rest[1..])).flatten();
        let (unit, length) = match escape {
            Some((unit, length)) => (Some(unit), 1 + length),
            None => (None, next.len_utf8()),
        };
        match unit {
            Some(unit) => units.push(unit),
            None => units.extend(next.encode_utf16(&mut [0; 2]).iter()),
        }
        rest = &rest[length..];
    }
    Cow::Owned(String::from_utf16_lossy(&units))
}

/// The letter that an escape stands for, and how many bytes it has behind the backslash.
fn escape(text: &str) -> Option<(u16, usize)> {
    let hex = |digits: usize| Some((u16::from_str_radix(text.get(1..1 + digits)?, 16).ok()?, 1 + digits));
    match text.bytes().next()? {
        b'x' => hex(2),
        b'u' => hex(4),
        b'n' => Some((u16::from(b'\n'), 1)),
        b'\\' => Some((u16::from(b'\\'), 1)),
        _ => None,
    }
}

/// A number, of which those that begin with `0x` are hexadecimal.
pub(super) fn number(field: &str) -> Option<u64> {
    match field.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => field.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_names_do_not_divide_a_line() {
        assert_eq!(fields(r"a,f\x2C\u0101\\x,7", false), ["a", "f,\u{101}\\x", "7"]);
        assert_eq!(fields("a,\"f, \"\"g\"\"\",7", true), ["a", "f, \"g\"", "7"]);
        assert_eq!(fields(r#"RegExp,"x,\d\"#, false), ["RegExp", "\"x", "\\d\\"]);
        assert_eq!(
            [number("0x1f"), number("31"), number("-1"), number("")],
            [Some(31), Some(31), None, None]
        );
    }
}
