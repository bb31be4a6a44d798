//! JSON whose objects contain each other as deep as a program recurses: a parser with a stack of its own.

use serde_json::{Map, Value};

use crate::budget::Budget;
use crate::label::without_mark;
use crate::{Position, Problem, ReadError};

/// An object, and the one that it is in.
#[derive(Debug)]
pub(crate) struct TreeObject {
    pub(crate) parent: Option<usize>,
    /// Its values but for those of keys that lead to other objects.
    pub(crate) fields: Map<String, Value>,
}

/// Numbers that an object takes about: its values, and their names.
const OBJECT_COLUMNS: usize = 40;

/// The objects of a file, each before those in it. The values of some keys are objects, or arrays of objects, that
/// become objects of their own.
pub(crate) fn objects(
    bytes: &[u8],
    inner: &[&str],
    budget: &mut Budget,
) -> Result<Vec<TreeObject>, ReadError> {
    let text = without_mark(bytes);
    let mut parser = Parser { text, at: 0, objects: Vec::new(), open: Vec::new() };
    parser.expect(b'{')?;
    parser.begin(None, budget)?;
    while let Some(&Open { object, in_array }) = parser.open.last() {
        if in_array {
            match parser.next()? {
                b'{' => parser.begin(Some(object), budget)?,
                b',' => {}
                b']' => drop(parser.open.pop()),
                _ => return Err(parser.error(Problem::Expected("an object"))),
            }
            continue;
        }
        match parser.next()? {
            b',' => {}
            b'}' => drop(parser.open.pop()),
            b'"' => {
                parser.at -= 1;
                parser.field(object, inner, budget)?;
            }
            _ => return Err(parser.error(Problem::Expected("the name of a value"))),
        }
    }
    Ok(parser.objects)
}

/// An object that has not ended, or an array of objects in one.
#[derive(Clone, Copy)]
struct Open {
    object: usize,
    in_array: bool,
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    objects: Vec<TreeObject>,
    open: Vec<Open>,
}

impl Parser<'_> {
    fn field(&mut self, object: usize, inner: &[&str], budget: &mut Budget) -> Result<(), ReadError> {
        let Value::String(key) = self.value()? else {
            return Err(self.error(Problem::Expected("the name of a value")));
        };
        self.expect(b':')?;
        if inner.contains(&key.as_str()) {
            match self.next()? {
                b'{' => return self.begin(Some(object), budget),
                b'[' => {
                    self.open.push(Open { object, in_array: true });
                    return Ok(());
                }
                _ => self.at -= 1,
            }
        }
        let value = self.value()?;
        self.objects[object].fields.insert(key, value);
        Ok(())
    }

    fn begin(&mut self, parent: Option<usize>, budget: &mut Budget) -> Result<(), ReadError> {
        budget.numbers(1, OBJECT_COLUMNS)?;
        self.open.push(Open { object: self.objects.len(), in_array: false });
        self.objects.push(TreeObject { parent, fields: Map::new() });
        Ok(())
    }

    /// The value that follows.
    fn value(&mut self) -> Result<Value, ReadError> {
        let mut values = serde_json::Deserializer::from_slice(&self.text[self.at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                self.at += values.byte_offset();
                Ok(value)
            }
            Some(Err(error)) => Err(self.error(ReadError::from(error).problem)),
            None => Err(self.error(Problem::CutShort)),
        }
    }

    /// The next byte that is no white space.
    fn next(&mut self) -> Result<u8, ReadError> {
        let rest = &self.text[self.at.min(self.text.len())..];
        let Some(blank) = rest.iter().position(|byte| !byte.is_ascii_whitespace()) else {
            return Err(self.error(Problem::CutShort));
        };
        self.at += blank + 1;
        Ok(rest[blank])
    }

    fn expect(&mut self, byte: u8) -> Result<(), ReadError> {
        if self.next()? == byte { Ok(()) } else { Err(self.error("it is no JSON of a tree")) }
    }

    fn error(&self, problem: impl Into<Problem>) -> ReadError {
        let before = &self.text[..self.at.min(self.text.len())];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1;
        let position = Position::Column { line: line as u64, column: column as u64 };
        ReadError { position, problem: problem.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_in_each_other_as_deep_as_they_like() {
        let depth = 100_000;
        let text = format!("{}{}", "{\"a\":1,\"children\":[".repeat(depth), "]}".repeat(depth));
        let objects = objects(text.as_bytes(), &["children"], &mut Budget::new(text.len())).unwrap();
        assert_eq!((objects.len(), objects[depth - 1].parent), (depth, Some(depth - 2)));
        assert_eq!(objects[7].fields["a"], 1);
    }

    #[test]
    fn json_that_is_no_tree_is_refused_with_its_place() {
        for text in ["", "[]", "{", "{\"a\"}", "{\"children\":[1]}", "{\"a\":1 \"b\"", "{\"a\":[1,}", "{1:2}"]
        {
            let read = objects(text.as_bytes(), &["children"], &mut Budget::new(99));
            assert!(matches!(read, Err(ReadError { position: Position::Column { .. }, .. })), "{text}");
        }
    }
}
