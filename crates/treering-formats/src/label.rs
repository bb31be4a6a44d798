//! Names of functions for formats that need one.

use std::borrow::Cow;

use treering_profile::{FunctionId, FunctionKind, ModuleKind, Profile};

/// The name of a function where only a name can be given: its own, its address when it was
/// not resolved, else `[unknown]`; for a thread's root `[root]`.
pub(crate) fn label(profile: &Profile, function: FunctionId) -> Cow<'_, str> {
    let function = &profile.functions[function];
    let name = &profile.strings[function.name];
    match (function.kind, function.address) {
        (FunctionKind::Root, _) => Cow::Borrowed(ROOT),
        _ if !name.is_empty() => Cow::Borrowed(name),
        (_, Some(address)) => Cow::Owned(match function.module {
            Some(module) => {
                format!("{}+{address}", file_name(&profile.strings[profile.modules[module].path]))
            }
            None => address.to_string(),
        }),
        _ => Cow::Borrowed("[unknown]"),
    }
}

/// A text in one line of a text format: what ends a line becomes a blank, other control characters,
/// which terminals may obey and readers may refuse, are written as `\u{1b}`.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' | '\t' => line.push(' '),
            control if control.is_control() => line.extend(control.escape_unicode()),
            other => line.push(other),
        }
    }
    Cow::Owned(line)
}

/// Bytes as text. Those that are not UTF-8, as in names that are Latin-1, become `\xe4`, so that
/// names which differ in them stay apart.
pub(crate) fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    Cow::Owned(text)
}

/// The note for names that [`text_of`] changed.
pub(crate) const NOT_UTF8: &str = r"some bytes are not UTF-8; they are shown as \xe4 and the like";

/// A text file without the mark that some editors put at the start of UTF-8.
pub(crate) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// A name in one line without blanks at its ends, where readers would take them away: they become
/// `\u{20}`.
pub(crate) fn trimmed_line(text: &str) -> Cow<'_, str> {
    let line = one_line(text);
    let trimmed = line.trim();
    if trimmed.len() == line.len() {
        return line;
    }
    let start = line.len() - line.trim_start().len();
    let end = if trimmed.is_empty() { start } else { start + trimmed.len() };
    let escape = |text: &str| text.chars().map(|c| c.escape_unicode().to_string()).collect::<String>();
    Cow::Owned(escape(&line[..start]) + trimmed + &escape(&line[end..]))
}

/// A name as it was before [`one_line`] and [`trimmed_line`] escaped characters in it.
pub(crate) fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains("\\u{") {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split("\\u{");
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let escaped = part.split_once('}').and_then(|(digits, rest)| {
            let character = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
            (character.is_control() || character.is_whitespace()).then_some((character, rest))
        });
        match escaped {
            Some((character, rest)) => {
                name.push(character);
                name.push_str(rest);
            }
            None => {
                name.push_str("\\u{");
                name.push_str(part);
            }
        }
    }
    Cow::Owned(name)
}

/// The kind of a module, by its path or name.
pub(crate) fn module_kind(name: &str) -> ModuleKind {
    match name {
        "[vdso]" | "linux-vdso.so.1" => ModuleKind::Vdso,
        KERNEL => ModuleKind::Kernel,
        JIT => ModuleKind::Jit,
        _ if name.starts_with("[kernel") || name.ends_with(".ko") => ModuleKind::Kernel,
        _ if name.starts_with("[jit ") => ModuleKind::Jit,
        _ if name.starts_with('/') => ModuleKind::Elf,
        _ => ModuleKind::Other,
    }
}

/// The module of functions of the kernel that have none, in formats that tell them by it.
pub(crate) const KERNEL: &str = "[kernel]";

/// The module of functions made by compilers while the program ran, where they have none.
pub(crate) const JIT: &str = "[jit]";

/// The module that tells the kind of a function which has no module.
pub(crate) fn module_of_kind(kind: FunctionKind) -> Option<&'static str> {
    match kind {
        FunctionKind::Kernel => Some(KERNEL),
        FunctionKind::Jit => Some(JIT),
        _ => None,
    }
}

/// The name of a thread's root, to which costs outside of all functions are charged.
pub(crate) const ROOT: &str = "[root]";

/// The part behind the last slash.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_at_the_ends_survive() {
        for (name, written) in [
            (" ", r"\u{20}"),
            ("a b", "a b"),
            ("  a ", r"\u{20}\u{20}a\u{20}"),
            ("\u{1b}x", r"\u{1b}x"),
            ("", ""),
        ] {
            assert_eq!(trimmed_line(name), written);
            assert_eq!(unescaped(written), name);
        }
        assert_eq!(unescaped(r"\u{zz}\u{41}\u{"), r"\u{zz}\u{41}\u{");
    }

    #[test]
    fn bytes_that_are_not_utf8_keep_names_apart() {
        assert!(matches!(text_of("naïve".as_bytes()), Cow::Borrowed(_)));
        assert_eq!(text_of(b"na\xefve \xff"), r"na\xefve \xff");
    }

    #[test]
    fn a_text_is_one_line_that_no_terminal_obeys() {
        assert_eq!(one_line("two\r\nlines\t\u{1b}[31m"), "two  lines \\u{1b}[31m");
        assert!(matches!(one_line("naïve \"name\""), Cow::Borrowed(_)));
    }
}
