//! Values for Octave.

/// A value that a command returns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Nothing is returned.
    Nothing,
    /// A line of text.
    Text(String),
    /// A number.
    Number(f64),
    /// A row of numbers.
    Numbers(Vec<f64>),
    /// A table of numbers: its rows, and how many columns there are.
    Matrix(Vec<Vec<f64>>, usize),
    /// A column of structures.
    Structures(Structures),
}

/// Structures of the same fields.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Structures {
    /// The names of the fields.
    pub(crate) fields: Vec<&'static str>,
    /// For each structure the values of its fields.
    pub(crate) rows: Vec<Vec<Value>>,
}

impl Value {
    /// A structure by itself.
    pub(crate) fn structure(fields: Vec<(&'static str, Value)>) -> Self {
        let (fields, row) = fields.into_iter().unzip();
        Self::Structures(Structures { fields, rows: vec![row] })
    }
}
