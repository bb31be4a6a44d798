//! Names that are written out once and referred to by number from then on.

use std::collections::HashMap;

use crate::callgrind::Problem;

/// A name as a line gives it: `(3) main` defines number 3, `(3)` refers to it, `main` does
/// neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name<'a> {
    pub(crate) number: Option<u64>,
    /// Empty in a reference. Callgrind's `???` for an unknown name is given as the empty text of
    /// a definition.
    pub(crate) text: Option<&'a str>,
}

impl<'a> Name<'a> {
    pub(crate) fn parse(value: &'a str) -> Self {
        let numbered = value.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let numbered = numbered.and_then(|(digits, text)| Some((digits.parse().ok()?, text.trim_start())));
        match numbered {
            Some((number, "")) => Self { number: Some(number), text: None },
            Some((number, text)) => Self { number: Some(number), text: Some(known(text)) },
            None => Self { number: None, text: Some(known(value)) },
        }
    }
}

fn known(text: &str) -> &str {
    if text == "???" { "" } else { text }
}

/// What the numbers stand for.
#[derive(Debug)]
pub(crate) struct Names<T> {
    by_number: HashMap<u64, T>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self { by_number: HashMap::new() }
    }
}

impl<T: Copy> Names<T> {
    /// What `name` stands for; `make` makes it from the text of a definition.
    pub(crate) fn resolve(&mut self, name: Name<'_>, make: impl FnOnce(&str) -> T) -> Result<T, Problem> {
        let defined = name.text.map(make);
        match (name.number, defined) {
            (Some(number), Some(defined)) => {
                self.by_number.insert(number, defined);
                Ok(defined)
            }
            (Some(number), None) => self.by_number.get(&number).copied().ok_or(Problem::UnknownName(number)),
            (None, Some(defined)) => Ok(defined),
            (None, None) => Err(Problem::UnknownLine),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_defined_and_referred_to() {
        let mut names = Names::default();
        let mut resolve = |text| names.resolve(Name::parse(text), str::len);
        assert_eq!(resolve("(2) main"), Ok(4));
        assert_eq!(resolve("(2)"), Ok(4));
        assert_eq!(resolve("(3)"), Err(Problem::UnknownName(3)));
        assert_eq!(resolve("(below main)"), Ok(12));
        assert_eq!(resolve("(4) ???"), Ok(0));
        assert_eq!(resolve("(2) other"), Ok(5));
        assert_eq!(resolve("(2)"), Ok(5));
    }
}
