//! Frames that a profile asks not to be shown: `drop_frames` and `keep_frames`.
//!
//! After `RemoveUninteresting` of github.com/google/pprof, so that costs go where `go tool pprof`
//! shows them: from the root, the first function after one that is kept and whose name matches is
//! taken out with all below it, and its cost goes to its caller.

use std::collections::HashMap;

use regex::{Regex, RegexBuilder};

/// The reason for an error.
pub(crate) const UNUSABLE: &str = "is not a regular expression";

/// The expressions, each of which must match a whole name.
#[derive(Debug)]
pub(crate) struct Prune {
    drop: Regex,
    keep: Option<Regex>,
    /// Whether names match; each is matched once.
    known: HashMap<String, bool>,
}

impl Prune {
    /// Of a profile's two texts; nothing if nothing is to be dropped.
    ///
    /// # Errors
    /// When an expression is none.
    pub(crate) fn new(drop: &str, keep: &str) -> Option<Result<Self, regex::Error>> {
        if drop.is_empty() {
            return None;
        }
        let whole = |text: &str| RegexBuilder::new(&format!("^(?:{text})$")).size_limit(1 << 20).build();
        let keep = (!keep.is_empty()).then(|| whole(keep)).transpose();
        Some(whole(drop).and_then(|drop| Ok(Self { drop, keep: keep?, known: HashMap::new() })))
    }

    /// Whether a function of this name and what it calls are dropped.
    pub(crate) fn drops(&mut self, name: &str) -> bool {
        if name.is_empty() {
            return false;
        }
        if let Some(&known) = self.known.get(name) {
            return known;
        }
        let simple = simple(name);
        let drops =
            self.drop.is_match(simple) && !self.keep.as_ref().is_some_and(|keep| keep.is_match(simple));
        self.known.insert(name.to_owned(), drops);
        drops
    }
}

/// A name without its arguments: without what follows the first `(` that is none of
/// `(anonymous namespace)` and `operator()`.
fn simple(name: &str) -> &str {
    let name = name.strip_prefix('.').unwrap_or(name);
    let mut from = 0;
    while let Some(found) = name[from..].find('(').map(|found| found + from) {
        if name[found..].starts_with("(anonymous namespace)") {
            from = found + "(anonymous namespace)".len();
        } else if name[..found].ends_with("operator") && name[found..].starts_with("()") {
            from = found + 2;
        } else {
            return &name[..found];
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_matched_whole_and_without_its_arguments() {
        let mut prune = Prune::new("malloc_.*|A::operator\\(\\)", "malloc_user").unwrap().unwrap();
        for (name, expected) in [
            ("malloc_internal(int)", true),
            ("malloc_user", false),
            ("my_malloc_internal", false),
            ("A::operator()(int) const", true),
            (".malloc_x", true),
            ("", false),
        ] {
            assert_eq!(prune.drops(name), expected, "{name}");
        }
        assert_eq!(simple("(anonymous namespace)::f(int)"), "(anonymous namespace)::f");
        assert!(Prune::new("", "x").is_none());
        assert!(Prune::new("(", "").unwrap().is_err());
    }
}
