//! The same data as JSON.

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::value::Value;
use crate::budget::NestingLimits;
use crate::{Problem, ReadError};

/// Reads one value.
pub(super) fn parse(bytes: &[u8], limits: &mut NestingLimits) -> Result<Value, ReadError> {
    // Each value of JSON takes two bytes at least.
    limits.budget.numbers(bytes.len() / 2, 1)?;
    serde_json::from_slice(bytes).map_err(|error| {
        let lines = bytes.split_inclusive(|&byte| byte == b'\n').take(error.line().saturating_sub(1));
        let offset = lines.map(<[u8]>::len).sum::<usize>() + error.column().saturating_sub(1);
        let problem = if error.is_eof() { Problem::CutShort } else { Problem::Expected("JSON") };
        ReadError::at_byte(offset.min(bytes.len()), problem)
    })
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Maker)
    }
}

struct Maker;

impl<'de> Visitor<'de> for Maker {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a number, a text, a list or an object")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Float(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Text("null".to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = sequence.next_element()? {
            elements.push(element);
        }
        Ok(Value::List(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields: Vec<(String, Value)> = Vec::new();
        while let Some((name, value)) = map.next_entry()? {
            if fields.len() == MOST_FIELDS {
                return Err(A::Error::custom("an object has more fields than one of a profile"));
            }
            fields.push((name, value));
        }
        Ok(Value::Dict(fields))
    }
}

/// Fields of one object; those of profiles have eight.
const MOST_FIELDS: usize = 64;
