//! Takes single lines of folded stacks apart.

use crate::Problem;
use crate::label::text_of;

/// A stack as a line gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// The names and what is between them. Ends with the first of two weights where the line has two.
    pub(crate) stack: &'a [u8],
    pub(crate) weight: Weight<'a>,
}

/// The weight of a stack: a number that may have decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weight<'a> {
    whole: u64,
    /// The digits after the point, without zeros at their end.
    decimals: &'a str,
}

impl<'a> Line<'a> {
    /// A line of the file; nothing for an empty one or a comment.
    pub(crate) fn parse(line: &'a [u8]) -> Result<Option<Self>, Problem> {
        let line = line.trim_ascii_end();
        if line.is_empty() || is_comment(line) {
            return Ok(None);
        }
        let split = split(line).ok_or("no weight: a stack is followed by a space and a number".into());
        let parsed = split.and_then(|(stack, weight)| match Weight::parse(weight) {
            Some(weight) => Ok(Self { stack, weight }),
            None => {
                let weight = text_of(weight);
                Err(format!("`{weight}` is no weight, which is a number from 0 to 2^64 - 1").into())
            }
        });
        parsed.map(Some)
    }

    /// The line of a difference of two files, which has two weights, as that of each of them.
    pub(crate) fn two(&self) -> Option<[Self; 2]> {
        let (stack, before) = split(self.stack.trim_ascii_end())?;
        let before = Weight::parse(before)?;
        Some([Self { stack, weight: before }, Self { stack, ..*self }])
    }

    /// The names of the functions, the outermost first. Empty ones at the end are none, after
    /// FlameGraph.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let length = self.stack.iter().rposition(|&byte| byte != b';').map_or(0, |last| last + 1);
        let stack = &self.stack[..length];
        stack.split(|&byte| byte == b';').filter(move |_| !stack.is_empty())
    }
}

/// Whether a line is a comment, also one that ends with a number: `# duration: 1000`. Names start with `#` as well,
/// of Ruby classes for instance, `#<Class:0x1>;new 4`, and so do those of their methods: `Array#each;b 4`.
pub(super) fn is_comment(line: &[u8]) -> bool {
    let Some(text) = line.strip_prefix(b"#") else { return false };
    let is_key = |text: &[u8]| {
        let word = text
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
            .count();
        word > 0 && text[word..].trim_ascii_start().first().is_none_or(|byte| matches!(byte, b':' | b'='))
    };
    match text.first() {
        None => true,
        Some(first) if first.is_ascii_whitespace() || matches!(first, b'#' | b'!') => true,
        // `#duration: 1000`, or words that are followed by no weight.
        Some(_) => {
            !text.contains(&b';')
                && (is_key(text) || split(line).is_none_or(|(_, last)| Weight::parse(last).is_none()))
        }
    }
}

/// The parts before and behind the last blank.
fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = line.iter().rposition(|byte| matches!(byte, b' ' | b'\t'))?;
    Some((&line[..at], &line[at + 1..]))
}

impl<'a> Weight<'a> {
    fn parse(text: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(decimals) {
            return None;
        }
        Some(Self { whole: whole.parse().ok()?, decimals: decimals.trim_end_matches('0') })
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.whole == 0 && self.decimals.is_empty()
    }

    /// How many decimals it has.
    pub(crate) fn decimals(&self) -> usize {
        self.decimals.len()
    }

    /// The weight in units of 10^-`decimals`, rounded.
    pub(crate) fn scaled(&self, decimals: usize) -> u128 {
        let digit = |at: usize| self.decimals.as_bytes().get(at).map_or(0, |digit| u128::from(digit - b'0'));
        let scaled = (0..decimals).fold(u128::from(self.whole), |number, at| number * 10 + digit(at));
        scaled + u128::from(digit(decimals) >= 5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Option<(String, u128)> {
        let line = Line::parse(line.as_bytes()).ok()??;
        Some((String::from_utf8_lossy(line.stack).into_owned(), line.weight.scaled(3)))
    }

    #[test]
    fn a_stack_is_followed_by_a_weight() {
        for (line, expected) in [
            ("a;b 12", Some(("a;b", 12_000))),
            ("a;b 1.5\r", Some(("a;b", 1_500))),
            ("a 2.", Some(("a", 2_000))),
            ("a 0.0004", Some(("a", 0))),
            ("a 0.0006", Some(("a", 1))),
            (" 3", Some(("", 3_000))),
            ("# comment", None),
            ("# duration: 1000", None),
            ("#", None),
            ("#duration: 1000", None),
            ("## 5", None),
            ("#foo bar", None),
            ("#foo 5", Some(("#foo", 5_000))),
            ("#<Class:0x1>;new 4", Some(("#<Class:0x1>;new", 4_000))),
            ("a 1e5", None),
            ("a -1", None),
            ("a .5", None),
            ("a 99999999999999999999", None),
        ] {
            assert_eq!(parsed(line), expected.map(|(stack, weight)| (stack.to_owned(), weight)), "{line}");
        }
    }

    #[test]
    fn names_at_the_end_may_be_empty() {
        let line = Line::parse(b"a;;b;; 1").unwrap().unwrap();
        assert_eq!(line.names().collect::<Vec<_>>(), [&b"a"[..], b"", b"b"]);
        assert_eq!(Line::parse(b" 1").unwrap().unwrap().names().count(), 0);
    }

    #[test]
    fn a_line_of_a_difference_has_two_weights() {
        let two = |line: &'static str| Line::parse(line.as_bytes()).unwrap().unwrap().two();
        let [before, after] = two("a;b 5 7").unwrap();
        assert_eq!((before.stack, before.weight.scaled(0)), (&b"a;b"[..], 5));
        assert_eq!((after.stack, after.weight.scaled(0)), (&b"a;b"[..], 7));
        assert_eq!(two("a;b 7"), None);
        assert_eq!(two("a;b c 7"), None);
    }
}
