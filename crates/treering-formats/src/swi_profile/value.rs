//! Terms of Prolog, as far as profiles have them.

use super::{Problem, ReadError};
use crate::budget::Budget;

/// A term, or a value of JSON.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Integer(u64),
    Float(f64),
    /// An atom, a string, or a variable.
    Text(String),
    List(Vec<Value>),
    Dict(Vec<(String, Value)>),
    Compound(String, Vec<Value>),
}

impl Value {
    pub(super) fn field(&self, name: &str) -> Option<&Self> {
        let Self::Dict(fields) = self else { return None };
        fields.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    pub(super) fn list(&self) -> Option<&[Self]> {
        if let Self::List(elements) = self { Some(elements) } else { None }
    }

    pub(super) fn count(&self) -> Option<u64> {
        if let Self::Integer(number) = self { Some(*number) } else { None }
    }

    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            _ => None,
        }
    }
}

/// Terms may be in each other so deeply: far deeper than those of a profile.
const DEEPEST: usize = 64;

/// What readers of both notations count.
pub(super) struct Limits {
    pub(super) budget: Budget,
    depth: usize,
}

impl Limits {
    pub(super) fn new(budget: Budget) -> Self {
        Self { budget, depth: 0 }
    }

    /// Before a value is made.
    pub(super) fn enter(&mut self, offset: usize) -> Result<(), ReadError> {
        const NUMBERS: usize = 8;
        let paid = self.budget.numbers(1, NUMBERS);
        paid.map_err(|_| ReadError::new(offset, Problem::TooLarge))?;
        self.depth += 1;
        if self.depth > DEEPEST { Err(ReadError::new(offset, Problem::TooDeep)) } else { Ok(()) }
    }

    /// After it.
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }
}
