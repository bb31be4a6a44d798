//! Names of functions for formats that need one.

use std::borrow::Cow;

use treering_profile::{FunctionId, FunctionKind, Profile};

/// What a function is called where only a name can be given: its name, its address when it was
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

/// The name of a thread's root, to which costs outside of all functions are charged.
pub(crate) const ROOT: &str = "[root]";

/// What follows the last slash.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_line_that_no_terminal_obeys() {
        assert_eq!(one_line("two\r\nlines\t\u{1b}[31m"), "two  lines \\u{1b}[31m");
        assert!(matches!(one_line("naïve \"name\""), Cow::Borrowed(_)));
    }
}
