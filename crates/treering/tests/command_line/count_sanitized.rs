//! `treering count` of programs with sanitizers, which report what they do without it.

use std::path::{Path, PathBuf};
use std::process::Command;

use treering_testing::programs::fixture;

use crate::session::{Outcome, Session, program, words};
use crate::skip;

/// The program with a sanitizer, if the compiler has that.
fn sanitized(session: &Session, compiler: &str, sanitizer: &str) -> Option<PathBuf> {
    let path = session.path(&format!("{compiler}-{sanitizer}"));
    let mut command = Command::new(compiler);
    command.args(["-g", "-O1", "-pthread"]).arg(format!("-fsanitize={sanitizer}")).arg("-o").arg(&path);
    let built = command.arg(fixture("count/sanitized.c")).output();
    let is_built = built.is_ok_and(|output| output.status.success());
    if !is_built {
        skip(&format!("{compiler} has no {sanitizer} sanitizer here"));
    }
    is_built.then_some(path)
}

/// The lines that say what was found, without numbers that differ in every run.
fn found(outcome: &Outcome) -> Vec<String> {
    let all = outcome.stdout.lines().chain(outcome.stderr.lines());
    let said = all.filter(|line| {
        ["ERROR:", "WARNING:", "SUMMARY:", "leak of", "done"].iter().any(|part| line.contains(part))
    });
    let without_numbers = |line: &str| {
        let words =
            line.split_ascii_whitespace().filter(|word| !word.contains("==") && !word.contains("pid="));
        let words = words.filter(|word| !word.starts_with("0x"));
        words.collect::<Vec<_>>().join(" ")
    };
    let mut said: Vec<_> = said.map(without_numbers).collect();
    said.sort();
    said
}

fn check(session: &Session, path: &Path, arguments: &[&str], options: &[&str]) -> Outcome {
    let native = Command::new(path).args(arguments).output().expect("it runs");
    let native = Outcome::of(native);
    let mut all = words(&["count", "-o", "out.trg"]);
    all.extend(words(options));
    all.push("--".into());
    all.extend(program(path, arguments));
    let counted = session.run(&all);
    let what = format!("{} {arguments:?} {options:?}", path.display());
    assert_eq!(counted.shell_status(), native.shell_status(), "{what}: {native:#?}{counted:#?}");
    assert_eq!(found(&counted), found(&native), "{what}");
    assert!(counted.stderr.contains("all instructions were counted"), "{what}: {counted:#?}");
    counted
}

/// Leaks are looked for by a helper that stops all threads, and hung for ever.
#[test]
fn leaks_are_found_with_all_options() {
    let session = Session::new();
    for (compiler, sanitizer) in
        [("gcc", "address"), ("gcc", "leak"), ("clang", "address"), ("clang", "leak")]
    {
        let Some(path) = sanitized(&session, compiler, sanitizer) else { continue };
        check(&session, &path, &["leak", "4"], &[]);
    }
    let Some(path) = sanitized(&session, "gcc", "leak") else { return };
    check(&session, &path, &["none", "2"], &[]);
    for option in [&["--tree"][..], &["--fixed"]] {
        check(&session, &path, &["leak", "2"], option);
    }
}

#[test]
fn sanitizers_find_the_same_faults_while_counted() {
    let session = Session::new();
    let all = [
        ("gcc", "address", "overflow"),
        ("gcc", "thread", "race"),
        ("gcc", "undefined", "none"),
        ("clang", "address", "overflow"),
        ("clang", "thread", "race"),
        ("clang", "memory", "uninitialised"),
        ("clang", "memory", "none"),
    ];
    for (compiler, sanitizer, kind) in all {
        let Some(path) = sanitized(&session, compiler, sanitizer) else { continue };
        check(&session, &path, &[kind, "0"], &[]);
    }
}
