//! Functions found by what a person types.

use treering_profile::{FunctionId, Profile};

use crate::basis::Basis;
use crate::graph::{CallGraph, Presentation};
use crate::identity::{Identity, function_name};

/// Why no single function was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindError {
    /// No function's name fits.
    NotFound {
        /// The name that was looked for.
        wanted: String,
        /// The functions that cost most, for a hint.
        largest: Vec<String>,
    },
    /// Several functions' names fit equally well.
    Ambiguous {
        /// The name that was looked for.
        wanted: String,
        /// The names that fit, as listings have them where names are equal; largest total first.
        candidates: Vec<String>,
    },
}

impl std::fmt::Display for FindError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotFound { wanted, .. } => write!(f, "no function is called {wanted:?}"),
            Self::Ambiguous { wanted, candidates } => {
                write!(f, "{wanted:?} could be any of {} functions", candidates.len())
            }
        }
    }
}

impl std::error::Error for FindError {}

/// Finds a function that occurs in the profile.
///
/// Tries, until one fits: `label`, which is how listings name a function, such as `f (a.c) [solve]`; the
/// exact name; the label without its module; the name without its arguments; the last part of a
/// path such as `std::vec::Vec::push`; a part of the name; and last `matches`, for patterns.
/// Several that fit at the same step are an error that lists them.
pub fn find_function(
    profile: &Profile,
    basis: &Basis,
    wanted: &str,
    label: impl Fn(FunctionId) -> String,
    matches: impl Fn(&str) -> bool,
) -> Result<FunctionId, FindError> {
    let occurring = occurring(profile, basis);
    let named = |id| function_name(profile, id);
    let before_module = |label: &str| label.strip_prefix(wanted).is_some_and(|rest| rest.starts_with(" ["));
    let before_arguments = |name: &str| name.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('('));
    let last_part = |name: &str| {
        let path = name.split('(').next().unwrap_or(name);
        path.strip_suffix(wanted).is_some_and(|path| path.ends_with("::"))
    };
    let steps: [&dyn Fn(FunctionId) -> bool; 7] = [
        &|id| label(id) == wanted,
        &|id| named(id) == wanted,
        &|id| before_module(&label(id)),
        &|id| before_arguments(&named(id)),
        &|id| last_part(&named(id)),
        &|id| !wanted.is_empty() && named(id).contains(wanted),
        &|id| matches(&named(id)),
    ];
    for fits in steps {
        let found: Vec<_> = occurring.iter().copied().filter(|&id| fits(id)).collect();
        match found[..] {
            [] => continue,
            [one] => return Ok(one),
            _ => return Err(ambiguous(profile, wanted, &label, &found)),
        }
    }
    let largest = occurring.iter().take(5).map(|&id| function_name(profile, id).into_owned()).collect();
    Err(FindError::NotFound { wanted: wanted.to_owned(), largest })
}

/// The functions that occur, largest total first.
fn occurring(profile: &Profile, basis: &Basis) -> Vec<FunctionId> {
    let graph = CallGraph::of(profile, basis, Presentation::Contexts);
    let identity = Identity::of(profile);
    let mut functions: Vec<_> =
        graph.functions.iter().filter(|cost| cost.function != Profile::ROOT).collect();
    functions.sort_by_key(|cost| (std::cmp::Reverse(cost.total_cost), cost.function));
    functions.into_iter().map(|cost| identity.representative(cost.function)).collect()
}

fn ambiguous(
    profile: &Profile,
    wanted: &str,
    label: impl Fn(FunctionId) -> String,
    found: &[FunctionId],
) -> FindError {
    let describe = |&id: &FunctionId| {
        let name = function_name(profile, id);
        let others = found.iter().filter(|&&other| function_name(profile, other) == name).count();
        if others > 1 { label(id) } else { name.into_owned() }
    };
    FindError::Ambiguous { wanted: wanted.to_owned(), candidates: found.iter().map(describe).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use treering_profile::MetricId;

    fn find(wanted: &str) -> Result<String, FindError> {
        let profile = treering_testing::stacks("main;draw(int);a::draw_all 3\n main;b::draw_all;push 5");
        let basis = Basis::of(&profile, MetricId::new(0));
        let label = |id| format!("{} [here]", function_name(&profile, id));
        let matches = |name: &str| wanted == "^m" && name.starts_with('m');
        let found = find_function(&profile, &basis, wanted, label, matches);
        found.map(|id| function_name(&profile, id).into_owned())
    }

    #[test]
    fn the_exact_name_wins_over_parts() {
        assert_eq!(find("draw"), Ok("draw(int)".to_owned()));
        assert_eq!(find("a::draw_all"), Ok("a::draw_all".to_owned()));
        assert_eq!(find("ush"), Ok("push".to_owned()));
        assert_eq!(find("^m"), Ok("main".to_owned()));
    }

    #[test]
    fn the_name_in_listings_is_found() {
        assert_eq!(find("push [here]"), Ok("push".to_owned()));
        assert_eq!(find("draw(int) [here]"), Ok("draw(int)".to_owned()));
    }

    #[test]
    fn several_that_fit_are_listed_largest_first() {
        let candidates = vec!["b::draw_all".to_owned(), "a::draw_all".to_owned()];
        let expected = FindError::Ambiguous { wanted: "draw_all".to_owned(), candidates };
        assert_eq!(find("draw_all"), Err(expected));
    }

    #[test]
    fn a_name_that_does_not_occur_is_not_found() {
        let error = find("paint").expect_err("nothing is called paint");
        assert_eq!(error.to_string(), "no function is called \"paint\"");
    }
}
