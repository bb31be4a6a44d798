//! The environment of a counted program where it is held: its size and order move counts, as every program searches it.

use std::ffi::{OsStr, OsString};

/// Variables that are passed on, by their names or, with a `*`, by their beginnings: those for places of
/// files, languages, and options of runtimes and libraries.
const PASSED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "LD_*",
    "GLIBC_TUNABLES",
    "MALLOC_*",
    "OMP_*",
    "PYTHON*",
    "VIRTUAL_ENV",
    "PERL*",
    "LUA_*",
    "RUBY*",
    "GEM_*",
    "NODE_*",
    "JAVA_*",
    "RUST_*",
    "RUSTFLAGS",
    "CARGO_*",
    "GO*",
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "OCTAVE_*",
    "SWI_*",
    "TREERING_*",
    "XDG_*_HOME",
    "LOCPATH",
    "NLSPATH",
    "ASAN_OPTIONS",
    "UBSAN_OPTIONS",
    "TSAN_OPTIONS",
];

/// Variables that lie before and after all others on the stack. `compare` gives them lengths that make up for words and
/// names of programs of different lengths, so that the others lie at the same addresses.
pub(in crate::command) const PADDING: [&str; 2] = ["TREERING_PADDING_BEFORE", "TREERING_PADDING_AFTER"];

/// The variables that a program is passed, in the order of their names: well-known ones, and those that `more` names.
pub(super) fn held(all: Vec<(OsString, OsString)>, more: &[String]) -> Vec<(OsString, OsString)> {
    let mut passed = all;
    passed.retain(|(name, _)| {
        PASSED.iter().any(|passed| matches(passed, name)) || more.iter().any(|passed| matches(passed, name))
    });
    let [before, after] = PADDING;
    passed.sort_by(|one, other| {
        let place = |(name, _): &(OsString, OsString)| (name != before, name == after);
        place(one).cmp(&place(other)).then_with(|| one.cmp(other))
    });
    passed
}

/// Whether a name is one that is written with at most one `*`.
fn matches(passed: &str, name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    match passed.split_once('*') {
        None => passed == name,
        Some((before, after)) => {
            name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_and_named_variables_are_passed_in_order() {
        let all =
            ["ZED", "PATH", "SSH_TTY", "LC_ALL", "LC", "XDG_DATA_HOME", "XDG_SESSION_ID", "MINE", "HOMER"];
        let all: Vec<_> = all.iter().map(|name| (OsString::from(name), OsString::from("x"))).collect();
        let names = |more: &[&str]| {
            let more: Vec<_> = more.iter().map(|name| (*name).to_owned()).collect();
            let passed = held(all.clone(), &more).into_iter();
            passed.map(|(name, _)| name.into_string().unwrap_or_default()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(&[]), "LC_ALL PATH XDG_DATA_HOME");
        assert_eq!(names(&["MINE", "Z*"]), "LC_ALL MINE PATH XDG_DATA_HOME ZED");
    }

    #[test]
    fn variables_of_compare_lie_around_the_others() {
        let names = ["TREERING_PADDING_AFTER", "ZED", "PATH", "TREERING_PADDING_BEFORE"];
        let all = names.map(|name| (OsString::from(name), OsString::from("x")));
        let order: Vec<_> = held(all.to_vec(), &["*".to_owned()]).into_iter().map(|(name, _)| name).collect();
        assert_eq!(order, ["TREERING_PADDING_BEFORE", "PATH", "ZED", "TREERING_PADDING_AFTER"]);
    }
}
