//! Octave's own text, as `save -text` writes it.

use super::shape;
use super::value::{NUMBERS, Value};
use crate::budget::NestingLimits;
use crate::label::text_of;
use crate::{Problem, ReadError};

/// Reads the first variable of a file.
pub(super) fn parse(bytes: &[u8], limits: &mut NestingLimits) -> Result<Value, ReadError> {
    let mut parser = Parser { bytes, at: 0, limits };
    parser.line()?;
    parser.named().map(|(_, value)| value)
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    limits: &'a mut NestingLimits,
}

impl<'a> Parser<'a> {
    fn expected(&self, what: &'static str) -> ReadError {
        let problem = if self.at >= self.bytes.len() { Problem::CutShort } else { Problem::Expected(what) };
        ReadError::at_byte(self.at, problem)
    }

    /// The next line; the file must have one, with its end.
    fn line(&mut self) -> Result<&'a [u8], ReadError> {
        let rest = &self.bytes[self.at..];
        let end = rest
            .iter()
            .position(|&byte| byte == b'\n')
            .ok_or(ReadError::at_byte(self.bytes.len(), Problem::CutShort))?;
        self.at += end + 1;
        Ok(rest[..end].trim_ascii_end())
    }

    /// The text behind `# key: ` on the next line that is not empty.
    fn header(&mut self, key: &'static str) -> Result<&'a [u8], ReadError> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        let start = self.at;
        let line = self.line()?;
        let value = line.strip_prefix(b"# ").and_then(|line| line.strip_prefix(key.as_bytes()));
        let value = value.and_then(|value| value.strip_prefix(b":"));
        value.map(<[u8]>::trim_ascii).ok_or_else(|| {
            self.at = start;
            self.expected(key)
        })
    }

    fn count(&mut self, key: &'static str) -> Result<usize, ReadError> {
        let value = self.header(key)?;
        let number = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
        number.ok_or_else(|| self.expected("a number"))
    }

    /// Numbers that stand on one line.
    fn numbers(&mut self) -> Result<Vec<f64>, ReadError> {
        let start = self.at;
        let line = text_of(self.line()?);
        let numbers: Option<Vec<f64>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
        numbers.ok_or(ReadError::at_byte(start, Problem::Expected("a number")))
    }

    /// A name and its value.
    fn named(&mut self) -> Result<(String, Value), ReadError> {
        let name = text_of(self.header("name")?).into_owned();
        self.limits.enter(NUMBERS).map_err(|limit| ReadError::at_byte(self.at, limit))?;
        let kind = text_of(self.header("type")?).into_owned();
        let value = match kind.as_str() {
            "scalar" | "bool" => {
                let start = self.at;
                let number = self.numbers()?.first().copied();
                Value::Number(number.ok_or(ReadError::at_byte(start, Problem::Expected("a number")))?)
            }
            "string" | "sq_string" => self.text()?,
            "matrix" | "bool matrix" => self.matrix()?,
            "cell" => self.cell()?,
            "scalar struct" => self.structs(true)?,
            "struct" => self.structs(false)?,
            other => {
                return Err(ReadError::at_byte(
                    self.at,
                    format!("the type {other:?} is in no profile of Octave"),
                ));
            }
        };
        self.limits.leave();
        Ok((name, value))
    }

    fn text(&mut self) -> Result<Value, ReadError> {
        if self.count("elements")? == 0 {
            self.count("length")?;
            return Ok(Value::Text(String::new()));
        }
        let length = self.count("length")?;
        let end = self.at.checked_add(length).filter(|&end| end < self.bytes.len());
        let end = end.ok_or(ReadError::at_byte(self.bytes.len(), Problem::CutShort))?;
        let text = text_of(&self.bytes[self.at..end]).into_owned();
        self.at = end;
        Ok(Value::Text(text))
    }

    fn matrix(&mut self) -> Result<Value, ReadError> {
        let (rows, columns) = (self.count("rows")?, self.count("columns")?);
        let mut elements = Vec::new();
        for _ in 0..if columns == 0 { 0 } else { rows } {
            elements.extend(self.numbers()?.into_iter().map(Value::Number));
        }
        Ok(Value::List(elements))
    }

    fn cell(&mut self) -> Result<Value, ReadError> {
        let (rows, columns) = (self.count("rows")?, self.count("columns")?);
        let mut elements = Vec::new();
        for _ in 0..rows.saturating_mul(columns) {
            elements.push(self.named()?.1);
        }
        Ok(Value::List(elements))
    }

    /// A struct, or an array of them, which is written as the lists of the values of each field.
    fn structs(&mut self, is_scalar: bool) -> Result<Value, ReadError> {
        self.count("ndims")?;
        let elements = self.numbers()?.into_iter().product::<f64>();
        let fields = self.count("length")?;
        let mut columns = Vec::new();
        for _ in 0..fields {
            columns.push(self.named()?);
        }
        if is_scalar {
            return Ok(Value::Struct(columns));
        }
        let is_full = |(_, value): &(String, Value)| value.elements().len() as f64 == elements;
        if !columns.iter().all(is_full) {
            return Err(ReadError::at_byte(self.at, shape("a struct array lacks values of a field")));
        }
        let mut rows: Vec<Vec<(String, Value)>> = Vec::new();
        for (name, values) in columns {
            let Value::List(values) = values else { continue };
            rows.resize(rows.len().max(values.len()), Vec::new());
            for (row, value) in rows.iter_mut().zip(values) {
                row.push((name.clone(), value));
            }
        }
        Ok(Value::List(rows.into_iter().map(Value::Struct).collect()))
    }
}
