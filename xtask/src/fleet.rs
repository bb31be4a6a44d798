//! `cargo xtask fleet`: archives with every engine and with S3.
//!
//! It takes much longer than the tests of everything else: the engine in `query/`, a workspace of its own, takes minutes to
//! build, Ballista takes most of an hour the first time, and Spark has hundreds of megabytes.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::test::{LINTED, Passed, Run, Step, succeeds};
use crate::{engines, licence, workspace};

/// Builds, installs, and runs all of it.
pub(crate) fn run() -> ExitCode {
    let spark = Command::new("java").arg("-version").output().is_ok().then_some(("pyspark", "pyspark"));
    let wanted: Vec<_> = engines::FOR_TESTS.into_iter().chain(spark).collect();
    let missing = engines::install(&wanted);
    let has_ballista = engines::build_ballista();
    let mut run = Run::default();
    run.check(STEPS);
    run.tests("tests of treering-query", Ok(vec![in_query("test")]));
    let mut test = workspace::cargo();
    test.args(["test", "--package", "treering", "--test", "command_line", "archive"]);
    test.args(["--", "--show-output", "--include-ignored"]);
    run.tests("tests of archives", Ok(vec![test]));
    run.leave_out(missing.iter().map(|name| format!("skipped: the package {name} is missing")));
    if !has_ballista {
        run.leave_out(["skipped: Ballista is missing".to_owned()]);
    }
    if spark.is_none() {
        run.leave_out(["skipped: java is missing, which Spark needs".to_owned()]);
    }
    run.conclude()
}

const STEPS: &[Step] = &[
    ("lints of treering-query", || succeeds(in_query("clippy").args(["--all-targets"]).args(LINTED))),
    ("licences of treering-query", licences),
    ("treering-query", || succeeds(in_query("build").arg("--release"))),
];

/// A command of cargo in the workspace of `treering-query`.
fn in_query(command: &str) -> Command {
    let mut cargo = workspace::cargo();
    cargo.current_dir(folder()).args([command, "--locked"]);
    // It has its own folder, where the tests look for the program.
    cargo.env("CARGO_TARGET_DIR", folder().join("target"));
    cargo
}

fn folder() -> PathBuf {
    workspace::root().join("query")
}

fn licences() -> Passed {
    match licence::check_of(&folder().join("Cargo.toml")) {
        Ok(broken) => {
            broken.iter().for_each(|line| println!("{line}"));
            broken.is_empty().into()
        }
        Err(error) => {
            println!("{error}");
            Passed::No
        }
    }
}
