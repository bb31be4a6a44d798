//! Values of Octave, as far as profiles have them.

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

/// How deeply values may be nested: some times as deeply as Octave lets functions call each other.
pub(super) const DEEPEST: usize = 1200;

/// The size of a value in memory, in units of eight bytes.
pub(super) const NUMBERS: usize = 6;
