//! JSON as Octave's `jsonencode` writes it.

use super::value::{NUMBERS, Value};
use crate::budget::NestingLimits;
use crate::{Problem, ReadError};

/// Reads one value.
pub(super) fn parse(bytes: &[u8], limits: &mut NestingLimits) -> Result<Value, ReadError> {
    let mut parser = Parser { bytes, at: 0, limits };
    let value = parser.value()?;
    parser.space();
    match parser.at < bytes.len() {
        true => Err(parser.error(Problem::Expected("the end"))),
        false => Ok(value),
    }
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    limits: &'a mut NestingLimits,
}

impl Parser<'_> {
    fn error(&self, problem: Problem) -> ReadError {
        let problem = if self.at >= self.bytes.len() { Problem::CutShort } else { problem };
        ReadError::at_byte(self.at, problem)
    }

    fn space(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    /// The next byte that is no space, which stays.
    fn next(&mut self) -> Option<u8> {
        self.space();
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8, what: &'static str) -> Result<(), ReadError> {
        if self.next() != Some(byte) {
            return Err(self.error(Problem::Expected(what)));
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self) -> Result<Value, ReadError> {
        self.limits.enter(NUMBERS).map_err(|limit| ReadError::at_byte(self.at, limit))?;
        let value = match self.next() {
            Some(b'{') => self.object()?,
            Some(b'[') => self.list()?,
            Some(b'"') => Value::Text(self.string()?),
            _ => self.word()?,
        };
        self.limits.leave();
        Ok(value)
    }

    fn object(&mut self) -> Result<Value, ReadError> {
        self.at += 1;
        let mut fields = Vec::new();
        if self.next() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Struct(fields));
        }
        loop {
            if self.next() != Some(b'"') {
                return Err(self.error(Problem::Expected("the name of a field")));
            }
            let name = self.string()?;
            // Octave 7 leaves out empty struct arrays.
            let value = match self.next() {
                Some(b'}' | b',') => Value::List(Vec::new()),
                _ => {
                    self.take(b':', "':'")?;
                    self.value()?
                }
            };
            fields.push((name, value));
            match self.next() {
                Some(b',') => self.at += 1,
                _ => {
                    self.take(b'}', "',' or '}'")?;
                    return Ok(Value::Struct(fields));
                }
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
            elements.push(self.value()?);
            match self.next() {
                Some(b',') => self.at += 1,
                _ => {
                    self.take(b']', "',' or ']'")?;
                    return Ok(Value::List(elements));
                }
            }
        }
    }

    /// A text in quotes.
    fn string(&mut self) -> Result<String, ReadError> {
        let start = self.at;
        let mut escaped = false;
        let inner = self.bytes[start + 1..].iter().position(|&byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        let Some(inner) = inner else {
            self.at = self.bytes.len();
            return Err(self.error(Problem::CutShort));
        };
        let quoted = &self.bytes[start..start + inner + 2];
        let text = serde_json::from_str(&String::from_utf8_lossy(quoted));
        let text = text.map_err(|_| ReadError::at_byte(start, Problem::Expected("a text in quotes")))?;
        self.at = start + inner + 2;
        Ok(text)
    }

    /// A number, a truth value, or nothing.
    fn word(&mut self) -> Result<Value, ReadError> {
        let rest = &self.bytes[self.at..];
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || b",]}".contains(byte);
        let length = rest.iter().position(is_end).unwrap_or(rest.len());
        let value = match &rest[..length] {
            b"true" => Value::Number(1.0),
            b"false" => Value::Number(0.0),
            b"null" => Value::List(Vec::new()),
            word => {
                let number = std::str::from_utf8(word).ok().and_then(|word| word.parse::<f64>().ok());
                Value::Number(number.ok_or_else(|| self.error(Problem::Expected("a value")))?)
            }
        };
        self.at += length;
        Ok(value)
    }
}
