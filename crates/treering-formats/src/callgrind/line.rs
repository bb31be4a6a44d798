//! Takes single lines of a callgrind file apart.

use crate::Problem;

pub(super) const NO_LINE: Problem =
    Problem::Expected("a cost, `key: value`, a name such as `fn=main`, or `calls=`");

pub(super) const NO_NUMBER: Problem = Problem::Expected("a number");

const POSITION_OVERFLOW: Problem = Problem::Expected("a position from 0 to 2^64");

/// A line of the file, by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// Empty, or a comment.
    Nothing,
    /// `key: value`.
    Header(&'a str, &'a str),
    /// `fn=name` and the like.
    Name(Place, &'a str),
    /// `calls=count target`: the next line holds the total cost of the calls.
    Calls(u64),
    /// `jump=` or `jcnd=`: the next line holds a position without costs.
    Jump,
    /// Positions, and the cost of each event.
    Costs(&'a str),
}

/// The thing that a name names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Object,
    /// The file of the functions that follow.
    FunctionFile,
    /// The file of the lines that follow: of code inlined into the function, or back from it.
    LineFile,
    Function,
    CalledObject,
    CalledFile,
    CalledFunction,
    /// The file that a jump goes to.
    JumpFile,
    /// The function that a jump goes to.
    JumpFunction,
}

impl<'a> Line<'a> {
    pub(crate) fn parse(line: &'a str) -> Result<Self, Problem> {
        let line = line.trim();
        match line.bytes().next() {
            None | Some(b'#') => return Ok(Self::Nothing),
            Some(b'0'..=b'9' | b'+' | b'-' | b'*') => return Ok(Self::Costs(line)),
            Some(_) => {}
        }
        let split = line.find(['=', ':']).ok_or(NO_LINE)?;
        let (key, value) = (line[..split].trim(), line[split + 1..].trim());
        if line.as_bytes()[split] == b':' {
            return Ok(Self::Header(key, value));
        }
        let place = match key {
            "ob" => Place::Object,
            "fl" => Place::FunctionFile,
            "fi" | "fe" => Place::LineFile,
            "fn" => Place::Function,
            "cob" => Place::CalledObject,
            "cfi" | "cfl" => Place::CalledFile,
            "cfn" => Place::CalledFunction,
            "jfi" => Place::JumpFile,
            "jfn" => Place::JumpFunction,
            "calls" | "rcalls" => {
                let count = value.split_whitespace().next().ok_or(NO_NUMBER)?;
                return Ok(Self::Calls(number(count)?));
            }
            "jump" | "jcnd" => return Ok(Self::Jump),
            _ => return Err(NO_LINE),
        };
        Ok(Self::Name(place, value))
    }
}

/// A decimal number, or a hexadecimal one after `0x`.
pub(crate) fn number(text: &str) -> Result<u64, Problem> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| NO_NUMBER)
}

/// A cost, which is negative where a program gave something back: memory in PHP, for instance.
pub(crate) fn cost(text: &str) -> Result<i128, Problem> {
    match text.strip_prefix('-') {
        Some(digits) => Ok(-i128::from(number(digits)?)),
        None => Ok(i128::from(number(text.strip_prefix('+').unwrap_or(text))?)),
    }
}

/// A position that may be stated relative to the last one: `+n`, `-n`, or `*` for the same.
/// Of a range, the start.
pub(crate) fn position(text: &str, last: u64) -> Result<u64, Problem> {
    let start = match text.char_indices().skip(1).find(|(_, c)| matches!(c, '+' | '-' | ':')) {
        Some((at, _)) => &text[..at],
        None => text,
    };
    let relative =
        |digits, apply: fn(u64, u64) -> Option<u64>| apply(last, number(digits)?).ok_or(POSITION_OVERFLOW);
    match start.as_bytes().first() {
        Some(b'*') if start.len() == 1 => Ok(last),
        Some(b'+') => relative(&start[1..], u64::checked_add),
        Some(b'-') => relative(&start[1..], u64::checked_sub),
        _ => number(start),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_absolute_or_relative() {
        for (text, expected) in [
            ("12", Ok(12)),
            ("0x1f", Ok(31)),
            ("+3", Ok(103)),
            ("-100", Ok(0)),
            ("-101", Err(POSITION_OVERFLOW)),
            ("*", Ok(100)),
            ("40-50", Ok(40)),
            ("+1:200", Ok(101)),
            ("", Err(NO_NUMBER)),
            ("*x", Err(NO_NUMBER)),
            ("99999999999999999999", Err(NO_NUMBER)),
        ] {
            assert_eq!(position(text, 100), expected, "{text}");
        }
    }

    #[test]
    fn lines_are_told_apart() {
        for (text, expected) in [
            ("", Ok(Line::Nothing)),
            ("# callgrind format", Ok(Line::Nothing)),
            ("positions: instr line", Ok(Line::Header("positions", "instr line"))),
            ("fn=(3) a=b:c", Ok(Line::Name(Place::Function, "(3) a=b:c"))),
            ("cfl=x", Ok(Line::Name(Place::CalledFile, "x"))),
            ("calls=5 +3", Ok(Line::Calls(5))),
            ("calls=", Err(NO_NUMBER)),
            ("jcnd=2/3 0x10 7", Ok(Line::Jump)),
            ("+3 5 6", Ok(Line::Costs("+3 5 6"))),
            ("nonsense", Err(NO_LINE)),
            ("xx=1", Err(NO_LINE)),
        ] {
            assert_eq!(Line::parse(text), expected, "{text}");
        }
    }
}
