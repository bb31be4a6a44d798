//! Values of Octave, as far as profiles have them.

use super::{Problem, ReadError};
use crate::budget::Budget;

/// A value. A struct array is a list of structs.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Number(f64),
    Text(String),
    List(Vec<Value>),
    Struct(Vec<(String, Value)>),
}

impl Value {
    pub(super) fn field(&self, name: &str) -> Option<&Self> {
        let Self::Struct(fields) = self else { return None };
        fields.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The elements of a struct array: `jsonencode` writes one with a single element as that element.
    pub(super) fn elements(&self) -> &[Self] {
        match self {
            Self::List(elements) => elements,
            one => std::slice::from_ref(one),
        }
    }

    pub(super) fn number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    pub(super) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }
}

/// Values may be in each other so deeply: some times as deep as Octave lets functions call each other.
const DEEPEST: usize = 1200;

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
        const NUMBERS: usize = 6;
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
