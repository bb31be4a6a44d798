//! The names of addresses, before they become part of a profile.

use std::collections::HashMap;

use treering_profile::{FunctionKind, Piece};

use crate::frames::Frames;

/// The names of a module's addresses.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) functions: Vec<NamedFunction>,
    pub(crate) files: Vec<String>,
    /// For each address its frames, outermost first; none if it could not be resolved.
    pub(crate) places: Frames,
}

/// A function with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedFunction {
    pub(crate) name: String,
    /// The mangled name where it differs, else empty.
    pub(crate) linkage_name: String,
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) start: Option<u64>,
    pub(crate) kind: FunctionKind,
    /// The piece of the function that it is, where other pieces are known as well.
    pub(crate) piece: Piece,
}

/// A frame at an address: its function and the line executed in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// An index of [`Answers::functions`].
    pub(crate) function: usize,
    pub(crate) line: Option<PlacedLine>,
}

/// An index of [`Answers::files`] and a line from 1.
pub(crate) type PlacedLine = (usize, u32);

impl NamedFunction {
    /// A function of which only a symbol is known.
    pub(crate) fn named(name: String, kind: FunctionKind, start: Option<u64>) -> Self {
        Self {
            name,
            linkage_name: String::new(),
            file: String::new(),
            line: 0,
            start,
            kind,
            piece: Piece::default(),
        }
    }
}

impl Answers {
    pub(crate) fn add_function(&mut self, function: NamedFunction) -> usize {
        self.functions.push(function);
        self.functions.len() - 1
    }

    /// Adds the answers for addresses that come behind those of `self`.
    pub(crate) fn append(&mut self, other: Self) {
        let (functions, files) = (self.functions.len(), self.files.len());
        self.functions.extend(other.functions);
        self.files.extend(other.files);
        let shift = |place: &mut Place| {
            place.function += functions;
            place.line = place.line.map(|(file, line)| (file + files, line));
        };
        self.places.append(other.places, shift);
    }
}

/// Collects functions that are told apart by where their symbol starts.
#[derive(Default)]
pub(crate) struct ByStart(HashMap<u64, usize>);

impl ByStart {
    /// The function that starts there, made if new.
    pub(crate) fn function(
        &mut self,
        answers: &mut Answers,
        start: u64,
        make: impl FnOnce() -> NamedFunction,
    ) -> usize {
        *self.0.entry(start).or_insert_with(|| answers.add_function(make()))
    }
}
