//! Names that are written out once and referred to by number from then on.

use std::collections::HashMap;

use crate::Problem;
use crate::callgrind::line::NO_LINE;

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

/// Names by their numbers.
#[derive(Debug)]
pub(crate) struct Names<T> {
    by_number: HashMap<u64, T>,
    undefined: usize,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self { by_number: HashMap::new(), undefined: 0 }
    }
}

impl<T: Copy> Names<T> {
    /// The thing that `name` names; `make` makes it from the text of a definition.
    ///
    /// A number that was not defined, which some older files have, stands for what `make` makes of
    /// `undefined(number)`, from then on.
    pub(crate) fn resolve(
        &mut self,
        name: Name<'_>,
        undefined: impl FnOnce(u64) -> String,
        make: impl FnOnce(&str) -> T,
    ) -> Result<T, Problem> {
        match (name.number, name.text) {
            (Some(number), Some(text)) => {
                let defined = make(text);
                self.by_number.insert(number, defined);
                Ok(defined)
            }
            (Some(number), None) => {
                if let Some(&known) = self.by_number.get(&number) {
                    return Ok(known);
                }
                let made = make(&undefined(number));
                self.by_number.insert(number, made);
                self.undefined += 1;
                Ok(made)
            }
            (None, Some(text)) => Ok(make(text)),
            (None, None) => Err(NO_LINE),
        }
    }

    /// How many numbers were used that stood for nothing.
    pub(crate) fn undefined(&self) -> usize {
        self.undefined
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_defined_and_referred_to() {
        let mut names = Names::default();
        let mut resolve = |text| names.resolve(Name::parse(text), |number| format!("({number})"), str::len);
        assert_eq!(resolve("(2) main"), Ok(4));
        assert_eq!(resolve("(2)"), Ok(4));
        assert_eq!(resolve("(345)"), Ok(5));
        assert_eq!(resolve("(below main)"), Ok(12));
        assert_eq!(resolve("(4) ???"), Ok(0));
        assert_eq!(resolve("(2) other"), Ok(5));
        assert_eq!(resolve("(2)"), Ok(5));
        assert_eq!(names.undefined(), 1);
    }
}
