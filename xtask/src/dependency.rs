//! The rules for dependencies between crates.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::workspace;

/// The dependencies that a crate of the workspace may have. Everything that is not named is refused.
struct Rule {
    /// The crate.
    name: &'static str,
    /// The crates of the workspace that it may use.
    may_use: &'static [&'static str],
    /// The crates from outside of the workspace that it may use.
    elsewhere: Elsewhere,
}

/// A choice of crates from outside of the workspace.
enum Elsewhere {
    /// Any that suits the crate's purpose.
    Any,
    /// These only: the crate is linked into the programs of users, or is a foundation.
    Only(&'static [&'static str]),
    /// Any but these.
    Not(&'static [&'static str]),
}

use Elsewhere::{Any, Not, Only};

/// Crates that do I/O of their own, or are a format: kept out of the crates that must do neither.
const INPUT_OUTPUT: &[&str] =
    &["libc", "memmap2", "nix", "object", "prost", "perf-event-open-sys", "rustix", "serde_json", "zstd"];

/// Every crate with what it may use. Crates of later work have their rules already.
const RULES: &[Rule] = &[
    Rule { name: "treering-events", may_use: &[], elsewhere: Only(&[]) },
    Rule {
        name: "treering-profile",
        may_use: &["treering-events"],
        elsewhere: Only(&["hashbrown", "serde", "smallvec"]),
    },
    Rule {
        name: "treering-analysis",
        may_use: &["treering-events", "treering-profile"],
        elsewhere: Not(INPUT_OUTPUT),
    },
    Rule {
        name: "treering-compare",
        may_use: &["treering-analysis", "treering-profile", "treering-x86"],
        elsewhere: Not(INPUT_OUTPUT),
    },
    Rule {
        name: "treering-report",
        may_use: &["treering-analysis", "treering-compare", "treering-profile"],
        elsewhere: Not(&["libc", "memmap2", "object", "prost", "perf-event-open-sys"]),
    },
    Rule {
        name: "treering-stat",
        may_use: &[
            "treering-analysis",
            "treering-measure",
            "treering-profile",
            "treering-report",
            "treering-x86",
        ],
        elsewhere: Only(&["serde_json"]),
    },
    Rule { name: "treering-plot", may_use: &[], elsewhere: Only(&["plotters"]) },
    Rule { name: "treering-viewer", may_use: &["treering-analysis", "treering-profile"], elsewhere: Any },
    Rule { name: "treering-archive", may_use: &[], elsewhere: Any },
    Rule {
        name: "treering-fleet",
        may_use: &["treering-analysis", "treering-compare", "treering-profile"],
        elsewhere: Any,
    },
    Rule {
        name: "treering-formats",
        may_use: &["treering-events", "treering-profile"],
        elsewhere: Not(&["object", "gimli", "addr2line", "perf-event-open-sys"]),
    },
    Rule {
        name: "treering-symbols",
        may_use: &["treering-cache", "treering-proc", "treering-profile"],
        elsewhere: Not(&["perf-event-open-sys"]),
    },
    Rule {
        name: "treering-perf",
        may_use: &["treering-proc", "treering-profile"],
        elsewhere: Not(&["addr2line", "cpp_demangle", "prost", "rustc-demangle", "zstd"]),
    },
    Rule { name: "treering-proc", may_use: &["treering-profile"], elsewhere: Only(&["nix", "object"]) },
    Rule { name: "treering-x86", may_use: &[], elsewhere: Only(&["iced-x86"]) },
    Rule {
        name: "treering-recover",
        may_use: &["treering-profile", "treering-x86"],
        elsewhere: Only(&["hashbrown"]),
    },
    Rule {
        name: "treering-translator",
        may_use: &["treering-cache", "treering-proc", "treering-profile", "treering-recover", "treering-x86"],
        elsewhere: Any,
    },
    Rule { name: "treering-macros", may_use: &[], elsewhere: Only(&[]) },
    Rule { name: "treering-memory", may_use: &["treering-events"], elsewhere: Only(&[]) },
    Rule {
        name: "treering-malloc",
        may_use: &["treering-events", "treering-memory"],
        elsewhere: Only(&["libc"]),
    },
    Rule { name: "treering-pg", may_use: &["treering-events"], elsewhere: Only(&["libc"]) },
    Rule { name: "treering-pg-static", may_use: &["treering-events"], elsewhere: Only(&["libc"]) },
    Rule {
        name: "treering-runtime",
        may_use: &["treering-events", "treering-macros", "treering-memory"],
        // The second is a macro without dependencies.
        elsewhere: Only(&["libc", "pin-project-lite"]),
    },
    Rule { name: "treering-cache", may_use: &[], elsewhere: Only(&["libc"]) },
    Rule {
        name: "treering-bench",
        may_use: &["treering-measure", "treering-runtime"],
        elsewhere: Only(&["clap", "nix", "serde_json"]),
    },
    Rule { name: "treering-measure", may_use: &["treering-proc", "treering-temporary"], elsewhere: Any },
    Rule { name: "treering-temporary", may_use: &[], elsewhere: Only(&[]) },
    Rule {
        name: "treering-octave",
        may_use: &["treering-runtime", "treering-temporary"],
        elsewhere: Only(&["libc"]),
    },
    Rule {
        name: "treering-prolog",
        may_use: &["treering-runtime", "treering-temporary"],
        elsewhere: Only(&["libc"]),
    },
    Rule { name: "treering-testing", may_use: &["treering-profile"], elsewhere: Any },
    Rule { name: "treering", may_use: EVERYTHING, elsewhere: Any },
    // The command that runs the tests waits for nothing of ours to be built.
    Rule { name: "xtask", may_use: &[], elsewhere: Any },
    Rule { name: "xtask-bench", may_use: USED_BY_BENCHMARKS, elsewhere: Any },
];

/// The crates that make up the command line.
const EVERYTHING: &[&str] = &[
    "treering-analysis",
    "treering-archive",
    "treering-cache",
    "treering-compare",
    "treering-events",
    "treering-fleet",
    "treering-formats",
    "treering-measure",
    "treering-perf",
    "treering-plot",
    "treering-proc",
    "treering-profile",
    "treering-recover",
    "treering-report",
    "treering-stat",
    "treering-symbols",
    "treering-temporary",
    "treering-translator",
    "treering-viewer",
    "treering-x86",
];

/// Crates that benchmarks read results and find programs with.
const USED_BY_BENCHMARKS: &[&str] = &[
    "treering-fleet",
    "treering-formats",
    "treering-measure",
    "treering-plot",
    "treering-profile",
    "treering-testing",
];

/// Test support may be used by tests of any crate.
const TESTS_MAY_USE: &str = "treering-testing";

/// One dependency of one crate, as cargo knows it.
#[derive(Debug, PartialEq, Eq)]
struct Dependency {
    from: String,
    to: String,
    /// Whether only its tests and benchmarks use it.
    for_tests: bool,
}

/// Asks cargo for all dependencies of the workspace and returns every broken rule as a sentence.
pub(crate) fn check() -> Result<Vec<String>, String> {
    let metadata = workspace::metadata(&["--no-deps"])?;
    let (crates, dependencies) = read(&metadata);
    Ok(broken(&crates, &dependencies))
}

fn read(metadata: &Value) -> (BTreeSet<String>, Vec<Dependency>) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (mut crates, mut dependencies) = (BTreeSet::new(), Vec::new());
    for package in list(&metadata["packages"]) {
        let from = text(&package["name"]);
        for dependency in list(&package["dependencies"]) {
            let for_tests = dependency["kind"] == "dev";
            dependencies.push(Dependency { from: from.clone(), to: text(&dependency["name"]), for_tests });
        }
        crates.insert(from);
    }
    (crates, dependencies)
}

fn broken(crates: &BTreeSet<String>, dependencies: &[Dependency]) -> Vec<String> {
    let ruled = |name: &str| RULES.iter().any(|rule| rule.name == name);
    let unruled = crates.iter().filter(|name| !ruled(name));
    let mut broken: Vec<String> =
        unruled.map(|name| format!("{name} has no rule in xtask/src/dependency.rs")).collect();
    broken.extend(dependencies.iter().filter_map(refusal));
    broken
}

/// Why the dependency is refused, or nothing.
fn refusal(dependency: &Dependency) -> Option<String> {
    let Dependency { from, to, for_tests } = dependency;
    let rule = RULES.iter().find(|rule| rule.name == from)?;
    let ours = RULES.iter().any(|rule| rule.name == to);
    if ours {
        let allowed = rule.may_use.contains(&to.as_str()) || (*for_tests && to == TESTS_MAY_USE);
        // Tests may compare crates that the code itself keeps apart.
        return (!allowed && !for_tests).then(|| format!("{from} must not depend on {to}"));
    }
    let allowed = match rule.elsewhere {
        Any => true,
        Only(names) => names.contains(&to.as_str()),
        Not(names) => !names.contains(&to.as_str()),
    };
    (!allowed && !for_tests).then(|| format!("{from} must not depend on {to}, which is too much for it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(from: &str, to: &str, for_tests: bool) -> bool {
        refusal(&Dependency { from: from.to_owned(), to: to.to_owned(), for_tests }).is_some()
    }

    #[test]
    fn the_arrows_point_one_way() {
        assert!(!refused("treering-analysis", "treering-profile", false));
        assert!(refused("treering-profile", "treering-analysis", false));
        assert!(refused("treering-perf", "treering-symbols", false));
        assert!(refused("treering-formats", "treering-analysis", false));
        assert!(!refused("treering", "treering-perf", false));
    }

    #[test]
    fn test_support_is_for_tests() {
        assert!(refused("treering-analysis", "treering-testing", false));
        assert!(!refused("treering-analysis", "treering-testing", true));
    }

    #[test]
    fn the_runtime_stays_light() {
        for heavy in ["tokio", "prost", "serde", "zstd"] {
            assert!(refused("treering-runtime", heavy, false), "{heavy}");
        }
        assert!(!refused("treering-runtime", "libc", false));
    }

    #[test]
    fn a_crate_without_a_rule_is_reported() {
        let crates = BTreeSet::from(["treering-surprise".to_owned()]);
        assert_eq!(broken(&crates, &[]), ["treering-surprise has no rule in xtask/src/dependency.rs"]);
    }

    #[test]
    fn cargo_metadata_is_read() {
        let metadata = serde_json::json!({"packages": [{"name": "a", "dependencies": [
            {"name": "b", "kind": null}, {"name": "c", "kind": "dev"}]}]});
        let (crates, dependencies) = read(&metadata);
        assert_eq!(crates, BTreeSet::from(["a".to_owned()]));
        let to = |name: &str, for_tests| Dependency { from: "a".into(), to: name.into(), for_tests };
        assert_eq!(dependencies, [to("b", false), to("c", true)]);
    }

    #[test]
    fn no_rule_allows_a_circle() {
        // Follows the allowed uses from every crate; the names are few, so depth is enough.
        fn reaches(from: &str, goal: &str, depth: usize) -> bool {
            let rule = RULES.iter().find(|rule| rule.name == from);
            let uses = rule.map_or(&[][..], |rule| rule.may_use);
            depth > 0 && uses.iter().any(|to| *to == goal || reaches(to, goal, depth - 1))
        }
        for rule in RULES {
            assert!(!reaches(rule.name, rule.name, RULES.len()), "{}", rule.name);
        }
    }
}
