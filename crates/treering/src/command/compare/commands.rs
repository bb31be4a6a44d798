//! Two commands in one command line.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use treering_compare::Sides;

use crate::failure::Failure;

/// The words of both commands, which `--` parts. A command may be one word in quotes: it is divided as a shell would, or
/// given to a shell if it has more than words and quotes.
pub(super) fn both(words: &[OsString]) -> Result<Sides<Vec<OsString>>, Failure> {
    let Some(at) = words.iter().position(|word| word == "--") else {
        return Err(Failure::new("there is one command and not two")
            .hint("put -- between them: treering compare ./before input -- ./after input")
            .hint("or compare two revisions: treering compare --git main --build make -- ./program input"));
    };
    let (base, head) = (one(&words[..at])?, one(&words[at + 1..])?);
    if base.is_empty() || head.is_empty() {
        let missing = if base.is_empty() { "before" } else { "after" };
        return Err(Failure::new(format_args!("there is no command {missing} the --")));
    }
    Ok(Sides { base, head })
}

/// The words of a command.
pub(super) fn one(words: &[OsString]) -> Result<Vec<OsString>, Failure> {
    let [word] = words else { return Ok(words.to_vec()) };
    let Some(text) = word.to_str().filter(|text| text.contains(char::is_whitespace)) else {
        return Ok(words.to_vec());
    };
    if Path::new(word).is_file() {
        return Ok(words.to_vec());
    }
    match divided(text) {
        Divided::Words(words) => Ok(words.into_iter().map(OsString::from).collect()),
        Divided::Script => Ok(["/bin/sh", "-c", text].map(OsString::from).to_vec()),
        Divided::Open(quote) => Err(Failure::new(format_args!("the quote {quote} is not closed in: {text}"))),
    }
}

/// A command as people write it.
pub(super) fn shown(words: &[OsString]) -> String {
    let quoted = |word: &OsString| {
        let text = word.to_string_lossy().into_owned();
        let is_plain =
            |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+,:@%=".contains(byte) || !byte.is_ascii();
        match !text.is_empty() && word.as_bytes().iter().all(is_plain) {
            true => text,
            false => format!("'{}'", text.replace('\'', "'\\''")),
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[derive(Debug, PartialEq, Eq)]
enum Divided {
    Words(Vec<String>),
    /// Only a shell understands it.
    Script,
    /// A quote that is not closed.
    Open(char),
}

/// Divides a text at blanks that stand in no quotes.
fn divided(text: &str) -> Divided {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None::<char>);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some('"'), '$' | '`') => return Divided::Script,
            (Some('"'), '\\') => match letters.next() {
                Some(next @ ('"' | '\\' | '$' | '`')) => word.get_or_insert_default().push(next),
                Some(next) => word.get_or_insert_default().extend(['\\', next]),
                None => return Divided::Open('"'),
            },
            (Some(_), letter) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '\\') => word.get_or_insert_default().extend(letters.next()),
            (None, ' ' | '\t') => words.extend(word.take()),
            (
                None,
                '\n' | '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '*' | '?' | '[' | '~' | '#'
                | '{',
            ) => {
                return Divided::Script;
            }
            // A variable for the command.
            (None, '=') if words.is_empty() => return Divided::Script,
            (None, letter) => word.get_or_insert_default().push(letter),
        }
    }
    match quote {
        Some(open) => Divided::Open(open),
        None => {
            words.extend(word);
            Divided::Words(words)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_divided_as_a_shell_would() {
        let words = |text: &str| match divided(text) {
            Divided::Words(words) => words.join("|"),
            other => format!("{other:?}"),
        };
        assert_eq!(words("perl count.pl"), "perl|count.pl");
        assert_eq!(words(r#"a 'b c' "d \" e" f\ g '' h"i"'j'"#), r#"a|b c|d " e|f g||hij"#);
        assert_eq!(words("a\u{a0}b\t c"), "a\u{a0}b|c");
        assert_eq!(words("lua -e 'for i = 1, 10 do end'"), "lua|-e|for i = 1, 10 do end");
        for script in ["a | b", "a > b", "a \"$B\"", "A=1 b", "a *.c", "cd x && make", "echo ~", "a\nb"] {
            assert_eq!(divided(script), Divided::Script, "{script}");
        }
        assert_eq!(divided("a 'b"), Divided::Open('\''));
    }

    #[test]
    fn commands_are_parted_once() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let sides = both(&words("a 1 -- b -- 2")).expect("there are two");
        assert_eq!((sides.base, sides.head), (words("a 1"), words("b -- 2")));
        assert!(both(&words("a 1")).is_err());
        assert!(both(&words("-- b")).is_err());
        assert_eq!(shown(&words("./a x=1")), "./a x=1");
        assert_eq!(shown(&["it's".into(), "".into()]), r"'it'\''s' ''");
    }
}
