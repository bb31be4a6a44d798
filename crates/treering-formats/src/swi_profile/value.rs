//! Terms of Prolog, as far as profiles have them.

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

/// How deeply terms may be nested: far more deeply than those of a profile.
pub(super) const DEEPEST: usize = 64;

/// The size of a value in memory, in units of eight bytes.
pub(super) const NUMBERS: usize = 8;
