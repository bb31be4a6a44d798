//! Counts beside those that the Rust compiler puts into a program (`-C instrument-coverage`): of one
//! run, so that both counted the same executions.

use std::collections::BTreeMap;
use std::path::Path;

use llvm_profparser::{CoverageMapping, CoverageReport};
use serde_json::Value;
use treering_testing::programs::RUST_SMALL;

use crate::session::{Outcome, Session, program, words};
use crate::skip;

const FILE: &str = "chains_small.rs";

/// The calls of functions by the line that they begin in, in order where several do.
type Calls = BTreeMap<u64, Vec<u64>>;

fn sorted(mut calls: Calls) -> Calls {
    calls.values_mut().for_each(|calls| calls.sort_unstable());
    calls
}

/// The executions of every function's first region.
fn of_compiler(report: &CoverageReport) -> Calls {
    let mut calls = Calls::new();
    let file = report.files.iter().find(|(path, _)| path.ends_with(FILE));
    let (_, file) = file.unwrap_or_else(|| panic!("the program's file is covered: {:?}", report.files));
    for regions in file.hits_by_function.values() {
        let (first, executions) = regions.first_key_value().expect("a function has regions");
        calls.entry(first.line_start as u64).or_default().push(*executions as u64);
    }
    sorted(calls)
}

fn of_treering(report: &Value) -> Calls {
    let mut calls = Calls::new();
    for row in report["functions"].as_array().expect("functions are listed") {
        if row["file"].as_str().is_some_and(|file| Path::new(file).ends_with(FILE)) {
            let line = row["line"].as_u64().expect("a line");
            calls.entry(line).or_default().push(row["calls"].as_u64().expect("calls"));
        }
    }
    sorted(calls)
}

#[test]
fn functions_have_the_calls_that_the_rust_compiler_counts() {
    let session = Session::new();
    // Unoptimised, or functions are inlined and have no calls.
    let flags = ["-C", "opt-level=0", "-C", "instrument-coverage"];
    let covered = RUST_SMALL.variant("covered", &flags).build().expect("it compiles");
    let raw = session.path("covered.profraw");
    let mut all = words(&["count", "--"]);
    all.extend(program(&covered, &[]));
    let ran = session.command(&all).env("LLVM_PROFILE_FILE", &raw).output().expect("it runs");
    let outcome = Outcome::of(ran);
    assert_eq!(outcome.shell_status(), 0, "{outcome:#?}");
    assert!(raw.exists(), "the program writes its counts");
    let Ok(profile) = llvm_profparser::parse(&raw) else {
        return skip("the counts of this version of the compiler cannot be read");
    };
    let objects = [covered];
    let mapping = CoverageMapping::new(&objects, &profile, false).expect("the program's regions");
    let theirs = of_compiler(&mapping.generate_report().expect("counts of regions"));
    assert!(theirs.len() >= 6 && theirs.values().flatten().sum::<u64>() > 400, "{theirs:?}");
    let report = session.run(&words(&["report", "--flat", "--json"]));
    let ours = of_treering(&serde_json::from_str(&report.stdout).expect("valid JSON"));
    assert_eq!(ours, theirs);
}
