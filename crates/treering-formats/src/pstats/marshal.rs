//! Reads values of Python's marshal format, after `Python/marshal.c`, as far as profiles have them.

use std::rc::Rc;

use crate::label::text_of;
use crate::{Problem, ReadError};

/// A value of Python.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    None,
    Integer(i64),
    Float(f64),
    Text(Rc<str>),
    Tuple(Rc<[Value]>),
    Dictionary(Rc<[(Value, Value)]>),
}

/// Marks values that later ones may refer to.
const REFERRED: u8 = 0x80;

/// How deeply values may be in each other; those of pstats are four deep.
const DEEPEST: usize = 16;

/// Reads the value that a file holds. It may share parts, so it is never copied as a whole.
pub(crate) fn read(bytes: &[u8]) -> Result<Value, ReadError> {
    let mut reader = Reader { bytes, at: 0, references: Vec::new(), interned: Vec::new() };
    match reader.value(0)? {
        Some(value) => Ok(value),
        None => Err(unknown_type(0, b'0')),
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    references: Vec<Value>,
    /// The texts that Python 2 refers to.
    interned: Vec<Value>,
}

impl<'a> Reader<'a> {
    /// A value; nothing for the end of a dictionary.
    fn value(&mut self, depth: usize) -> Result<Option<Value>, ReadError> {
        let offset = self.at;
        if depth > DEEPEST {
            return Err(ReadError::at_byte(offset, Problem::TooDeep));
        }
        let code = self.take(1, offset)?[0];
        let place = (code & REFERRED != 0).then(|| {
            self.references.push(Value::None);
            self.references.len() - 1
        });
        let value = self.value_of(code & !REFERRED, offset, depth)?;
        if let (Some(place), Some(value)) = (place, &value) {
            self.references[place] = value.clone();
        }
        Ok(value)
    }

    fn value_of(&mut self, code: u8, offset: usize, depth: usize) -> Result<Option<Value>, ReadError> {
        Ok(Some(match code {
            b'0' => return Ok(None),
            b'N' => Value::None,
            b'F' => Value::Integer(0),
            b'T' => Value::Integer(1),
            b'i' => Value::Integer(i64::from(self.long(offset)?.cast_signed())),
            b'I' => Value::Integer(i64::from_le_bytes(self.array(offset)?)),
            b'l' => Value::Integer(self.digits(offset)?),
            b'f' => {
                let length = self.take(1, offset)?[0];
                let text = std::str::from_utf8(self.take(length.into(), offset)?).ok();
                let number = text.and_then(|text| text.parse().ok());
                Value::Float(number.ok_or_else(|| cut(offset))?)
            }
            b'g' => Value::Float(f64::from_le_bytes(self.array(offset)?)),
            b's' | b'u' | b'a' | b'A' => {
                let length = self.long(offset)?;
                self.text(length, offset)?
            }
            b't' => {
                let length = self.long(offset)?;
                let text = self.text(length, offset)?;
                self.interned.push(text.clone());
                text
            }
            b'z' | b'Z' => {
                let length = self.take(1, offset)?[0];
                self.text(length.into(), offset)?
            }
            b'R' => {
                let number = self.long(offset)?;
                let known = self.interned.get(number as usize);
                known.cloned().ok_or_else(|| missing(offset, number))?
            }
            b'r' => {
                let number = self.long(offset)?;
                let known = self.references.get(number as usize);
                known.cloned().ok_or_else(|| missing(offset, number))?
            }
            b'(' | b'[' => {
                let count = self.long(offset)?;
                self.tuple(count, offset, depth)?
            }
            b')' => {
                let count = self.take(1, offset)?[0];
                self.tuple(count.into(), offset, depth)?
            }
            b'{' => self.dictionary(depth)?,
            code => return Err(unknown_type(offset, code)),
        }))
    }

    fn take(&mut self, length: usize, offset: usize) -> Result<&'a [u8], ReadError> {
        let taken = self.bytes[self.at..].get(..length).ok_or_else(|| cut(offset))?;
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, offset: usize) -> Result<[u8; N], ReadError> {
        let taken = self.take(N, offset)?;
        taken.try_into().map_err(|_| cut(offset))
    }

    fn long(&mut self, offset: usize) -> Result<u32, ReadError> {
        Ok(u32::from_le_bytes(self.array(offset)?))
    }

    /// A number of any size, as digits of 15 bits; those above 64 bits become the largest there is.
    fn digits(&mut self, offset: usize) -> Result<i64, ReadError> {
        let count = self.long(offset)?.cast_signed();
        let digits = self.take(count.unsigned_abs() as usize * 2, offset)?;
        let mut number = 0_i128;
        for digit in digits.chunks_exact(2).rev() {
            let digit = i128::from(u16::from_le_bytes([digit[0], digit[1]]) & 0x7fff);
            number = (number << 15 | digit).min(i128::from(i64::MAX));
        }
        let number = number as i64;
        Ok(if count < 0 { -number } else { number })
    }

    fn text(&mut self, length: u32, offset: usize) -> Result<Value, ReadError> {
        Ok(Value::Text(text_of(self.take(length as usize, offset)?).into()))
    }

    fn tuple(&mut self, count: u32, offset: usize, depth: usize) -> Result<Value, ReadError> {
        // Each has a byte at least.
        if count as usize > self.bytes.len() - self.at {
            return Err(cut(offset));
        }
        let item = |_| self.value(depth + 1)?.ok_or_else(|| unknown_type(offset, b'0'));
        Ok(Value::Tuple((0..count).map(item).collect::<Result<_, _>>()?))
    }

    fn dictionary(&mut self, depth: usize) -> Result<Value, ReadError> {
        let mut entries = Vec::new();
        while let Some(key) = self.value(depth + 1)? {
            let offset = self.at;
            let value = self.value(depth + 1)?.ok_or_else(|| unknown_type(offset, b'0'))?;
            entries.push((key, value));
        }
        Ok(Value::Dictionary(entries.into()))
    }
}

fn cut(offset: usize) -> ReadError {
    ReadError::at_byte(offset, Problem::CutShort)
}

fn missing(offset: usize, number: u32) -> ReadError {
    ReadError::at_byte(offset, format!("the value refers to value {number}, which is missing"))
}

fn unknown_type(offset: usize, code: u8) -> ReadError {
    match code {
        b'c' => ReadError::at_byte(
            offset,
            "it is a code object, as `python -m profile` writes; cProfile writes none",
        ),
        _ => ReadError::at_byte(offset, format!("the value is of the unknown type {code:#04x}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    #[test]
    fn values_of_every_sort_are_read() {
        for (bytes, expected) in [
            (&b"N"[..], Value::None),
            (b"i\xfe\xff\xff\xff", Value::Integer(-2)),
            (b"I\x01\0\0\0\x01\0\0\0", Value::Integer((1 << 32) + 1)),
            (b"l\x03\0\0\0\x01\0\0\0\x01\0", Value::Integer((1 << 30) + 1)),
            (b"l\xff\xff\xff\xff\x05\0", Value::Integer(-5)),
            (b"g\0\0\0\0\0\0\xf0\x3f", Value::Float(1.0)),
            (b"f\x031.5", Value::Float(1.5)),
            (b"z\x02ab", text("ab")),
            (b"u\x02\0\0\0\xc3\xa9", text("é")),
            (b")\x02\xda\x01ar\0\0\0\0", Value::Tuple([text("a"), text("a")].into())),
            (b"(\x02\0\0\0t\x01\0\0\0aR\0\0\0\0", Value::Tuple([text("a"), text("a")].into())),
            (b"{z\x01ai\x07\0\0\x000", Value::Dictionary([(text("a"), Value::Integer(7))].into())),
        ] {
            assert_eq!(read(bytes), Ok(expected), "{}", bytes.escape_ascii());
            for length in 0..bytes.len() {
                assert!(read(&bytes[..length]).is_err(), "{} of {}", length, bytes.escape_ascii());
            }
        }
    }

    #[test]
    fn bytes_that_are_no_value_are_refused() {
        assert_eq!(read(b"r\x01\0\0\0"), Err(missing(0, 1)));
        assert_eq!(read(b"c"), Err(unknown_type(0, b'c')));
        assert_eq!(read(&b")\x01".repeat(50)), Err(ReadError::at_byte(34, Problem::TooDeep)));
        assert_eq!(read(b"(\xff\xff\xff\x7f"), Err(cut(0)));
    }
}
