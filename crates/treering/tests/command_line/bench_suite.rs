//! `treering bench run --suite`.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use treering_testing::programs::installed;

use crate::session::{Outcome, Session};
use crate::skip;

/// A repository with a program of one commit, and the same changed in the work tree; the program is made by `make`'s work
/// in the shell.
fn repository(session: &Session) -> bool {
    if installed("git").is_none() {
        skip("git is not installed");
        return false;
    }
    std::fs::create_dir(session.path("tree")).expect("it can be made");
    write(session, "tree/source", "printf '%s\\n' \"$1\"\n");
    git(session, &["init", "--quiet", "--initial-branch", "main"]);
    git(session, &["add", "source"]);
    git(session, &["commit", "--quiet", "--message", "first"]);
    git(session, &["checkout", "--quiet", "-b", "topic"]);
    write(session, "tree/other", "a file of the topic\n");
    git(session, &["add", "other"]);
    git(session, &["commit", "--quiet", "--message", "second"]);
    write(session, "tree/source", "printf '%s\\n' \"$1\"; : changed\n");
    true
}

fn write(session: &Session, name: &str, text: &str) {
    std::fs::write(session.path(name), text).expect("it can be written");
}

fn git(session: &Session, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.arg("-C")
        .arg(session.path("tree"))
        .args(["-c", "user.name=T", "-c", "user.email=t@example.org"])
        .args(arguments);
    let output = git.output().expect("git runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

const SUITE: &str = r#"
rounds = 3
floor = "2 %"
measure = ["time", "memory"]
limit = { memory = "900 %" }

[version.base]
git = "merge-base main"
build = "cp source built"
[version.head]
build = "cp source built"

[program.copy]
setup = "echo made >> made; seq {n} > {input}"
run = "sh {version}/built '{algo} of' {input}"
params = { n = [1, 2], algo = ["list", "map"] }
skip = [{ n = 2, algo = "map" }]
same = "stdout"

[program.rival]
input = "copy"
run = "cat {input}"
compare = "plot"
"#;

fn suite(session: &Session, text: &str, options: &[&str]) -> Outcome {
    write(session, "tree/bench.toml", text);
    let all = [&["bench", "run", "--archive", "runs", "--suite", "tree/bench.toml"], options].concat();
    session.run(&all)
}

fn listed(session: &Session) -> Vec<Value> {
    let text = session.output(&["bench", "list", "--archive", "runs", "--json"]);
    let listed: Value = serde_json::from_str(&text).expect("it is JSON");
    listed["runs"].as_array().expect("runs").clone()
}

#[test]
fn a_suite_builds_versions_keeps_inputs_and_runs_competitors() {
    let session = Session::new();
    if !repository(&session) {
        return;
    }
    let outcome = suite(&session, SUITE, &[]);
    assert!(outcome.status.success(), "{outcome:#?}");
    let runs = listed(&session);
    let mut lines: Vec<String> = runs
        .iter()
        .map(|run| {
            format!("{} {} {} {}", run["program"], run["parameters"], run["version"], run["dirty"])
                .replace('"', "")
        })
        .collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            "copy {algo:list,n:1} base false",
            "copy {algo:list,n:1} head true",
            "copy {algo:list,n:2} base false",
            "copy {algo:list,n:2} head true",
            "copy {algo:map,n:1} base false",
            "copy {algo:map,n:1} head true",
            "rival {n:1}  false",
            "rival {n:2}  false",
        ]
    );
    let base = runs.iter().find(|run| run["version"] == "base").expect("a run");
    assert_eq!(base["commit"], git(&session, &["rev-parse", "main"]));
    assert!(runs.iter().all(|run| run["session"] == base["session"] && run["metrics"]["cpu"]["rounds"] == 3));
    // One input for each n, which is used again by the next run.
    let made = || std::fs::read_to_string(session.path("tree/made")).expect("it was made").lines().count();
    assert_eq!(made(), 2);
    assert!(suite(&session, SUITE, &["rival"]).status.success());
    assert_eq!((made(), listed(&session).len()), (2, 10));
    // Nothing of the work trees is left.
    assert_eq!(git(&session, &["worktree", "list"]).lines().count(), 1);
    let compared = session.run(&[
        "bench",
        "compare",
        "base",
        "head",
        "--archive",
        "runs",
        "--suite",
        "tree/bench.toml",
        "--json",
    ]);
    let compared: Value = serde_json::from_str(&compared.stdout).expect("it is JSON");
    assert_eq!(compared["pairs"].as_array().expect("pairs").len(), 3);
    assert_eq!(compared["floor"], 0.02);
    let table = session.output(&[
        "bench",
        "table",
        "copy",
        "-x",
        "n",
        "-p",
        "algo=list",
        "--by",
        "version=head,base",
        "--archive",
        "runs",
    ]);
    assert!(
        table.lines().nth(1).is_some_and(|line| line.split_whitespace().take(3).eq(["n", "head", "base"])),
        "{table}"
    );
    let unclear = session.run(&["bench", "table", "copy", "-x", "n", "--by", "version", "--archive", "runs"]);
    assert!(unclear.error().contains("runs with several values of algo would be one series"), "{unclear:#?}");
    let rivals = session.output(&[
        "bench",
        "table",
        "copy,rival",
        "-x",
        "n",
        "-p",
        "algo=list",
        "--archive",
        "runs",
        "--by",
        "program",
    ]);
    // The first line names the metric, the second one the series.
    let series = rivals.lines().nth(1).expect("two lines of heads");
    assert!(series.contains("copy") && series.contains("rival"), "{rivals}");
    assert!(rivals.lines().nth(2).is_some_and(|line| !line.contains('·')), "both have n = 1: {rivals}");
}

#[test]
fn versions_that_print_something_else_are_not_compared() {
    let session = Session::new();
    if !repository(&session) {
        return;
    }
    write(&session, "tree/source", "echo other\n");
    let outcome = suite(&session, SUITE, &["copy"]);
    assert_eq!(outcome.status.code(), Some(2), "{outcome:#?}");
    let expected =
        "copy algo=list n=1 head: does other work than base: their outputs differ, 6 against 8 bytes";
    assert!(outcome.stderr.contains(expected), "{outcome:#?}");
    assert!(listed(&session).iter().all(|run| run["version"] == "base"));
    let allowed = SUITE.replace("same = \"stdout\"", "same = \"none\"");
    assert!(suite(&session, &allowed, &["copy"]).status.success());
}

#[test]
fn mistakes_in_a_suite_are_found_before_anything_is_built_or_run() {
    let session = Session::new();
    std::fs::create_dir(session.path("tree")).expect("it can be made");
    let program = "[program.p]\nrun = \"touch ran\"\n";
    for (text, message) in [
        ("ruonds = 3\n", "tree/bench.toml: ruonds is no key; did you mean rounds?"),
        ("[program.q]\nrun = \"./{m}\"\n", "[program.q] {m} names no parameter: there are version"),
        ("[program.q]\nrun = \"./q\"\nparams = { n = [1] }\n", "[program.q] the command has no place for n"),
        ("[program.q]\nrun = \"'./q\"\n", "[program.q] run has a quote without its end"),
        (
            "[program.q]\nrun = \"./q {input}\"\ninput = \"p\"\n",
            "[program.q] input names a program without a setup",
        ),
        (
            "[program.q]\nrun = \"./q\"\nsame = \"stderr\"\n",
            "same is \"stderr\"; it can be \"stdout\" or \"none\"",
        ),
        ("[program.q]\nrun = \"./q\"\nsetup = \"make\"\n", "[program.q] setup has no place for {input}"),
        (
            "[version.a]\ngit = \"no-such\"\n",
            "[version.a] git = \"no-such\": git knows no such revision here",
        ),
        (
            "[version.a]\nbuild = \"echo wrong >&2; false\"\n",
            "build = \"echo wrong >&2; false\" failed with status 1: wrong",
        ),
    ] {
        let text =
            if text.starts_with('[') { format!("{program}{text}") } else { format!("{text}{program}") };
        let outcome = suite(&session, &text, &[]);
        assert_eq!(outcome.status.code(), Some(2), "{outcome:#?}");
        assert!(outcome.error().contains(message), "{outcome:#?}");
    }
    assert!(!session.path("tree/ran").exists());
    let unknown = suite(&session, program, &["x"]);
    assert!(unknown.error().contains("there is no program x: there are p"), "{unknown:#?}");
    // A program that should describe itself.
    let plain = suite(&session, "rounds = 1\n[program.p]\nrun = \"true\"\ncbs = true\n", &[]);
    assert!(plain.error().contains("has no parameters and results: link it with -ltreering"), "{plain:#?}");
    assert!(!Path::new("tree/ran").exists());
}
