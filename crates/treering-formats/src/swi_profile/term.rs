//! Terms as SWI-Prolog writes them, with atoms in quotes where those are needed.

use super::value::{NUMBERS, Value};
use crate::budget::NestingLimits;
use crate::label::text_of;
use crate::{Problem, ReadError};

/// Reads one term, which a full stop may follow.
pub(super) fn parse(bytes: &[u8], limits: &mut NestingLimits) -> Result<Value, ReadError> {
    let mut parser = Parser { bytes, at: 0, limits };
    let value = parser.term()?;
    if parser.next() == Some(b'.') {
        parser.at += 1;
    }
    match parser.next() {
        None => Ok(value),
        Some(_) => Err(parser.error(Problem::Expected("the end"))),
    }
}

struct Parser<'a, 'b> {
    bytes: &'a [u8],
    at: usize,
    limits: &'b mut NestingLimits,
}

/// The characters of which atoms such as `=..` are made.
const SYMBOLS: &[u8] = b"+-*/\\^<>=~:.?@#&$";

/// Operators between operands, of which indicators of predicates have two: `user:fib/2`.
const MOST_OPERATORS: usize = 16;

fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii()
}

impl<'a> Parser<'a, '_> {
    fn error(&self, problem: Problem) -> ReadError {
        let problem = if self.at >= self.bytes.len() { Problem::CutShort } else { problem };
        ReadError::at_byte(self.at, problem)
    }

    /// The next byte that is no space, which stays.
    fn next(&mut self) -> Option<u8> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8, what: &'static str) -> Result<(), ReadError> {
        if self.next() != Some(byte) {
            return Err(self.error(Problem::Expected(what)));
        }
        self.at += 1;
        Ok(())
    }

    /// The bytes from here that are all of one sort.
    fn run(&mut self, is_of: impl Fn(&u8) -> bool) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|byte| !is_of(byte)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// A term of an argument: operands with `:` and `/` between them.
    fn term(&mut self) -> Result<Value, ReadError> {
        let mut left = self.operand()?;
        for _ in 0..MOST_OPERATORS {
            let operator = match self.next() {
                Some(b':') => ":",
                Some(b'/') => "/",
                _ => return Ok(left),
            };
            self.at += 1;
            let right = self.operand()?;
            left = Value::Compound(operator.to_owned(), vec![left, right]);
        }
        Err(self.error(Problem::TooDeep))
    }

    fn operand(&mut self) -> Result<Value, ReadError> {
        let next = self.next();
        self.limits.enter(NUMBERS).map_err(|limit| ReadError::at_byte(self.at, limit))?;
        let value = match next {
            Some(b'(') => {
                self.at += 1;
                let inner = self.term()?;
                self.take(b')', "')'")?;
                inner
            }
            Some(b'[') => self.list()?,
            Some(b'"') => Value::Text(self.quoted(b'"')?),
            Some(b'\'') => {
                let name = self.quoted(b'\'')?;
                self.named(name)?
            }
            Some(b'0'..=b'9') => self.number()?,
            Some(b'-') if self.bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit) => {
                self.at += 1;
                Value::Float(-self.number()?.number().unwrap_or(0.0))
            }
            _ => {
                let name = self.atom()?;
                self.named(name)?
            }
        };
        self.limits.leave();
        Ok(value)
    }

    /// An atom without quotes.
    fn atom(&mut self) -> Result<String, ReadError> {
        let name = match self.next() {
            Some(b'{') if self.bytes.get(self.at + 1) == Some(&b'}') => {
                self.at += 2;
                return Ok("{}".to_owned());
            }
            Some(b'!' | b';' | b',' | b'|') => {
                self.at += 1;
                &self.bytes[self.at - 1..self.at]
            }
            Some(byte) if SYMBOLS.contains(&byte) => self.run(|byte| SYMBOLS.contains(byte)),
            _ => self.run(is_word),
        };
        if name.is_empty() { Err(self.error(Problem::Expected("a term"))) } else { Ok(text_of(name).into()) }
    }

    /// The part behind a name: arguments, the pairs of a dict, or nothing.
    fn named(&mut self, name: String) -> Result<Value, ReadError> {
        match self.bytes.get(self.at) {
            Some(b'(') => {
                self.at += 1;
                let mut arguments = Vec::new();
                loop {
                    arguments.push(self.term()?);
                    if !self.goes_on(b')', "',' or ')'")? {
                        return Ok(Value::Compound(name, arguments));
                    }
                }
            }
            Some(b'{') => self.dict(),
            _ => Ok(Value::Text(name)),
        }
    }

    /// Whether a comma follows; else it must be the end.
    fn goes_on(&mut self, end: u8, what: &'static str) -> Result<bool, ReadError> {
        if self.next() == Some(b',') {
            self.at += 1;
            return Ok(true);
        }
        self.take(end, what)?;
        Ok(false)
    }

    fn dict(&mut self) -> Result<Value, ReadError> {
        self.at += 1;
        let mut pairs = Vec::new();
        if self.next() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Dict(pairs));
        }
        loop {
            let key = match self.next() {
                Some(b'\'') => self.quoted(b'\'')?,
                _ => text_of(self.run(is_word)).into_owned(),
            };
            if key.is_empty() {
                return Err(self.error(Problem::Expected("a key")));
            }
            self.take(b':', "':'")?;
            pairs.push((key, self.term()?));
            if !self.goes_on(b'}', "',' or '}'")? {
                return Ok(Value::Dict(pairs));
            }
        }
    }

    fn list(&mut self) -> Result<Value, ReadError> {
        self.at += 1;
        let mut elements = Vec::new();
        if self.next() == Some(b']') {
            self.at += 1;
            return Ok(Value::List(elements));
        }
        loop {
            elements.push(self.term()?);
            if !self.goes_on(b']', "',' or ']'")? {
                return Ok(Value::List(elements));
            }
        }
    }

    fn number(&mut self) -> Result<Value, ReadError> {
        let start = self.at;
        let digits = |byte: &u8| byte.is_ascii_digit();
        self.run(digits);
        let mut is_whole = true;
        let ahead = |at: usize| self.bytes.get(at).is_some_and(u8::is_ascii_digit);
        if self.bytes.get(self.at) == Some(&b'.') && ahead(self.at + 1) {
            is_whole = false;
            self.at += 1;
            self.run(digits);
            if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
                self.at += 1;
                self.at += usize::from(matches!(self.bytes.get(self.at), Some(b'+' | b'-')));
                self.run(digits);
            }
        }
        let text = text_of(&self.bytes[start..self.at]);
        let value = match is_whole {
            true => text.parse().ok().map(Value::Integer),
            false => text.parse().ok().map(Value::Float),
        };
        value.ok_or(ReadError::at_byte(start, Problem::Expected("a number below 2^64")))
    }

    /// An atom or a string in quotes.
    fn quoted(&mut self, quote: u8) -> Result<String, ReadError> {
        self.at += 1;
        let mut name = Vec::new();
        loop {
            let cut = self.error(Problem::CutShort);
            let byte = *self.bytes.get(self.at).ok_or(cut)?;
            self.at += 1;
            match byte {
                b'\\' => self.escaped(&mut name)?,
                _ if byte == quote && self.bytes.get(self.at) == Some(&quote) => {
                    self.at += 1;
                    name.push(quote);
                }
                _ if byte == quote => return Ok(text_of(&name).into_owned()),
                _ => name.push(byte),
            }
        }
    }

    /// The character that is escaped behind a backslash.
    fn escaped(&mut self, name: &mut Vec<u8>) -> Result<(), ReadError> {
        let start = self.at - 1;
        let byte = *self.bytes.get(self.at).ok_or(ReadError::at_byte(self.at, Problem::CutShort))?;
        self.at += 1;
        let plain = match byte {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'v' => 11,
            b'e' => 27,
            b's' => b' ',
            b'z' => 26,
            // A line that goes on.
            b'\n' => return Ok(()),
            b'x' | b'0'..=b'7' => {
                let radix = if byte == b'x' { 16 } else { 8 };
                self.at -= usize::from(byte != b'x');
                let digits = text_of(self.run(u8::is_ascii_hexdigit));
                // It ends with a backslash.
                self.at += usize::from(self.bytes.get(self.at) == Some(&b'\\'));
                return self.coded(name, u32::from_str_radix(&digits, radix).ok(), start);
            }
            b'u' | b'U' => {
                let end = (self.at + if byte == b'u' { 4 } else { 8 }).min(self.bytes.len());
                let digits = text_of(&self.bytes[self.at..end]);
                self.at = end;
                return self.coded(name, u32::from_str_radix(&digits, 16).ok(), start);
            }
            other => other,
        };
        name.push(plain);
        Ok(())
    }

    fn coded(&self, name: &mut Vec<u8>, code: Option<u32>, start: usize) -> Result<(), ReadError> {
        let character = code.and_then(char::from_u32);
        let character =
            character.ok_or(ReadError::at_byte(start, Problem::Expected("an escaped character")))?;
        name.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }
}
