//! `cargo xtask test --quick`: the checks that find most mistakes, in two minutes.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::test::{LINTED, Passed, Run, Step, formatting, succeeds};
use crate::workspace;

/// The text of `cargo xtask test --help`.
pub(crate) const HELP: &str = "\
usage: cargo xtask test [--quick]

Without an option: installs missing Debian packages, then runs every check and test, as continuous integration does.

  --quick   for the time between two edits: checks the format, lints the crates that have changed, and runs the tests
            of the crates that need no other program. Installs nothing. What it cannot see, the whole finds.

Changed are crates with a Rust file or a manifest that differs from where the branch left the default branch: what the
branch has committed, what is not committed yet, and files that git does not know. On the default branch itself it is
what has changed since the commit before the last.
";

/// Crates whose tests need no program but the compilers, and no right to trace or sample.
const PURE: [&str; 13] = [
    "treering-analysis",
    "treering-compare",
    "treering-events",
    "treering-formats",
    "treering-memory",
    "treering-plot",
    "treering-proc",
    "treering-profile",
    "treering-recover",
    "treering-report",
    "treering-symbols",
    "treering-viewer",
    "treering-x86",
];

const STEPS: &[Step] = &[("formatting", formatting), ("lints of changed crates", lints)];

/// Runs the checks and tests, and ends with the line that the whole ends with.
pub(crate) fn run() -> ExitCode {
    let mut run = Run::default();
    run.check(STEPS);
    let mut test = workspace::cargo();
    // As `cargo test`, without the examples of documentation: each is a program to be linked.
    test.args(["test", "--quiet", "--no-fail-fast", "--tests"]);
    test.args(PURE.iter().flat_map(|name| ["--package", name]));
    test.args(["--", "--show-output"]);
    run.tests("tests of the pure crates", Ok(vec![test]));
    run.conclude()
}

/// Lints the crates that have changed, with all their targets.
fn lints() -> Passed {
    match Changes::find() {
        Err(reason) => Passed::Skipped(format!("no crate is linted: {reason}")),
        Ok(Changes { since, packages }) if packages.is_empty() => {
            println!("no crate has changed since {since}");
            Passed::Yes
        }
        Ok(Changes { since, packages }) => {
            let names: Vec<&str> = packages.iter().map(String::as_str).collect();
            println!("changed since {since}: {}", names.join(", "));
            let mut lint = workspace::cargo();
            lint.args(["clippy", "--all-targets", "--quiet"]);
            lint.args(names.iter().flat_map(|name| ["--package", name]));
            succeeds(lint.args(LINTED))
        }
    }
}

/// The crates that differ from a commit.
struct Changes {
    /// The commit, in short.
    since: String,
    /// The names of the crates.
    packages: BTreeSet<String>,
}

impl Changes {
    fn find() -> Result<Self, String> {
        let base = base()?;
        let mut files = git(&["diff", "--name-only", "--no-renames", &base])?;
        files += &git(&["ls-files", "--others", "--exclude-standard"])?;
        let packages = files.lines().filter_map(package_of).filter(|name| folder(name).is_dir()).collect();
        Ok(Self { since: git(&["rev-parse", "--short", &base])?.trim().to_owned(), packages })
    }
}

/// Names of the default branch: that of the repository that this one was cloned from, before ours.
const DEFAULT_BRANCHES: [&str; 5] = ["origin/HEAD", "origin/main", "origin/master", "main", "master"];

/// The commit where this branch left the default branch. If it has not left it, the commit before the last.
fn base() -> Result<String, String> {
    let head = git(&["rev-parse", "HEAD"])?;
    let default = DEFAULT_BRANCHES.iter().find_map(|name| git(&["merge-base", "HEAD", name]).ok());
    if let Some(left) = default.filter(|left| *left != head) {
        return Ok(left.trim().to_owned());
    }
    let before = git(&["rev-parse", "--verify", "--quiet", "HEAD~"]);
    Ok(before.unwrap_or(head).trim().to_owned())
}

fn git(words: &[&str]) -> Result<String, String> {
    let output = Command::new("git").args(words).current_dir(workspace::root()).output();
    let output = output.map_err(|error| format!("cannot run git: {error}"))?;
    if !output.status.success() {
        return Err(format!("git {} ended with {}", words.join(" "), output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The crate that a file belongs to, if lints can depend on the file.
fn package_of(file: &str) -> Option<String> {
    if !file.ends_with(".rs") && !file.ends_with("/Cargo.toml") {
        return None;
    }
    let mut folders = file.split('/');
    match (folders.next()?, folders.next()?) {
        ("crates", name) => Some(name.to_owned()),
        ("xtask", "bench") => Some("xtask-bench".to_owned()),
        ("xtask", _) => Some("xtask".to_owned()),
        _ => None,
    }
}

/// The folder of a crate, which is gone if the crate is.
fn folder(package: &str) -> PathBuf {
    let root = workspace::root();
    if package.starts_with("xtask") {
        root.join(package.replace('-', "/"))
    } else {
        root.join("crates").join(package)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_the_crate_of_its_folder() {
        for (file, package) in [
            ("crates/treering-x86/src/decode.rs", Some("treering-x86")),
            ("crates/treering/tests/command_line/main.rs", Some("treering")),
            ("crates/treering/Cargo.toml", Some("treering")),
            ("xtask/src/main.rs", Some("xtask")),
            ("xtask/bench/src/main.rs", Some("xtask-bench")),
            ("crates/treering/README.md", None),
            ("fuzz/fuzz_targets/any.rs", None),
            ("Cargo.toml", None),
        ] {
            assert_eq!(package_of(file).as_deref(), package, "{file}");
        }
    }

    #[test]
    fn every_crate_of_the_workspace_is_found_by_its_name() {
        let metadata = workspace::metadata(&["--no-deps"]).expect("cargo is there");
        for package in metadata["packages"].as_array().expect("there are packages") {
            let manifest = package["manifest_path"].as_str().expect("it has one");
            let file =
                manifest.strip_prefix(&format!("{}/", workspace::root().display())).expect("it is below");
            assert_eq!(package_of(file).as_deref(), package["name"].as_str());
            assert!(folder(&package_of(file).expect("it is a crate")).is_dir(), "{file}");
        }
    }

    #[test]
    fn the_pure_crates_exist() {
        let known = workspace::crates().expect("there are crates");
        for name in PURE {
            assert!(known.iter().any(|folder| folder.ends_with(name)), "{name}");
        }
    }
}
