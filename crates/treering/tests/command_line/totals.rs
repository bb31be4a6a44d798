//! Total costs of counts: measured with `--tree`, and claimed by no view without it.

use serde_json::Value;
use treering_testing::programs::{INCLUSIVE, MANY_CHAINS, installed};

use crate::profile::Flat;
use crate::session::{Session, program, words};
use crate::skip;

/// Counts a program into `FILE`, and returns its flat profile.
fn counted(session: &Session, options: &[&str], path: &std::path::Path, file: &str) -> Flat {
    let mut all = words(&["count", "--fixed", "-q", "-o", file]);
    all.extend(words(options));
    all.extend(words(&["--"]));
    all.extend(program(path, if options.contains(&"--max-nodes") { &["3"] } else { &[] }));
    session.output(&all);
    session.flat(&[file])
}

fn row<'a>(flat: &'a Flat, function: &str) -> &'a Value {
    let mut found = flat.rows().iter().filter(|row| row["function"] == function);
    found.next().unwrap_or_else(|| panic!("{function} is in {:#}", flat.0))
}

#[test]
fn no_view_claims_totals_that_were_not_measured() {
    let session = Session::new();
    let flat = counted(&session, &[], &INCLUSIVE.build().expect("the compiler is installed"), "plain.trg");
    assert!(flat.rows().iter().all(|row| row["total_cost"] == Value::Null), "{:#}", flat.0);
    let text = session.output(&["report", "plain.trg", "--flat"]);
    assert!(!text.contains("% total") && text.contains("treering count --tree"), "{text}");
    let lines = session.output(&["report", "plain.trg", "--lines", "sort", "--json"]);
    let lines: Value = serde_json::from_str(&lines).expect("it is JSON");
    assert_eq!(lines["total_cost"], Value::Null);
    let graph = session.output(&["report", "plain.trg", "--callgraph"]);
    let numbered = graph.lines().filter(|line| line.starts_with('['));
    assert!(
        numbered.clone().count() > 3 && numbered.clone().all(|line| line.matches('~').count() == 2),
        "{graph}"
    );
    for view in ["--tree", "--callers"] {
        let refused = session.run(&["report", "plain.trg", view]);
        assert_eq!(refused.status.code(), Some(1), "{refused:#?}");
        assert!(refused.stderr.contains("hint: treering count --tree"), "{refused:#?}");
    }
    let refused = session.run(&["report", "plain.trg", "--sort", "total"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:#?}");
}

#[test]
fn exports_say_that_inclusive_costs_are_estimates_and_none_comes_back_as_measured() {
    let session = Session::new();
    counted(&session, &[], &INCLUSIVE.build().expect("the compiler is installed"), "plain.trg");
    session.output(&["export", "plain.trg", "--to", "callgrind", "-o", "plain.cg"]);
    let written = std::fs::read_to_string(session.path("plain.cg")).expect("it was written");
    assert!(written.contains("desc: Inclusive: estimated"), "{}", &written[..600]);
    assert!(
        written.contains("event: instructions : instructions (inclusive: estimated)"),
        "{}",
        &written[..600]
    );
    session.output(&["export", "plain.trg", "--to", "pprof", "-o", "plain.pb.gz"]);
    for file in ["plain.cg", "plain.pb.gz"] {
        let flat = session.flat(&[file]);
        assert!(flat.rows().iter().all(|row| row["total_cost"] == Value::Null), "{file}: {:#}", flat.0);
    }
    // With a tree they are measured.
    counted(&session, &["--tree"], &INCLUSIVE.build().expect("the compiler is installed"), "tree.trg");
    session.output(&["export", "tree.trg", "--to", "callgrind", "-o", "tree.cg"]);
    let written = std::fs::read_to_string(session.path("tree.cg")).expect("it was written");
    assert!(!written.contains("estimated"), "{}", &written[..600]);
    assert!(session.flat(&["tree.cg"]).total_share("sort") > 0.9);
}

#[test]
fn functions_have_the_same_name_self_cost_and_calls_with_and_without_a_tree() {
    let session = Session::new();
    let path = INCLUSIVE.build().expect("the compiler is installed");
    let plain = counted(&session, &[], &path, "plain.trg");
    let tree = counted(&session, &["--tree"], &path, "tree.trg");
    for function in ["main", "sort", "print", "compare", "sprintf"] {
        let [one, other] = [&plain, &tree].map(|flat| row(flat, function));
        for key in ["self_cost", "calls", "module"] {
            assert_eq!(one[key], other[key], "{function}: {key}");
        }
    }
    for stub in ["sprintf@plt", "qsort@plt", "malloc@plt"] {
        let [one, other] = [&plain, &tree].map(|flat| row(flat, stub));
        assert_eq!(one["calls"], other["calls"], "{stub}");
    }
}

#[test]
fn totals_and_their_estimates_are_those_of_callgrind() {
    let Some(valgrind) = installed("valgrind") else {
        skip("valgrind is not installed");
        return;
    };
    let session = Session::new();
    let path = INCLUSIVE.build().expect("the compiler is installed");
    let file = session.path("theirs.cg");
    let mut command = std::process::Command::new(valgrind);
    command
        .args(["--tool=callgrind", "-q"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(&path);
    if !command.status().is_ok_and(|status| status.success()) {
        skip("valgrind fails");
        return;
    }
    let theirs = session.flat(&["theirs.cg"]);
    // Its arcs are measured, so they tell something of chains of calls.
    for view in ["--tree", "--callers"] {
        let text = session.output(&["report", "theirs.cg", view]);
        assert!(text.contains("arcs but no stacks") && text.contains("sort"), "{text}");
    }
    let plain = counted(&session, &[], &path, "plain.trg");
    let tree = counted(&session, &["--tree"], &path, "tree.trg");
    for function in ["main", "sort", "print", "compare"] {
        let share = theirs.total_share(function);
        let measured = tree.total_share(function);
        let estimated =
            row(&plain, function)["estimated_total_cost"].as_f64().unwrap_or(0.0) / plain.run_cost();
        // Valgrind runs other variants of the library's functions, and does not count the start of a process.
        assert!((share - measured).abs() < 0.03, "{function}: {share} and {measured}");
        assert!((measured - estimated).abs() < 0.01, "{function}: {measured} and {estimated}");
    }
}

#[test]
fn a_folded_tree_says_how_much_of_the_cost_was_folded_and_bounds_totals() {
    let session = Session::new();
    let path = MANY_CHAINS.build().expect("the compiler is installed");
    let folded = counted(&session, &["--tree", "--max-nodes", "1000"], &path, "folded.trg");
    let whole = counted(&session, &["--tree", "--max-nodes", "100000"], &path, "whole.trg");
    let cost = folded.0["run"]["folded_cost"].as_u64().unwrap_or(0);
    assert!(cost > 0 && whole.0["run"]["folded_cost"] == Value::Null, "{:#}", folded.0["run"]);
    let text = session.output(&["report", "folded.trg"]);
    assert!(text.contains("the tree of calls grew too large") && text.contains('–'), "{text}");
    for truth in whole.rows() {
        let function = truth["function"].as_str().unwrap_or_default();
        if whole.rows().iter().filter(|row| row["function"] == function).count() > 1 {
            continue;
        }
        let known = row(&folded, function);
        assert_eq!(known["self_cost"], truth["self_cost"], "{function}");
        assert_eq!(known["calls"], truth["calls"], "{function}");
        let [low, high] = ["total_low", "total_high"].map(|key| known[key].as_u64().unwrap_or(0));
        let total = truth["total_cost"].as_u64().unwrap_or(0);
        // Bounds are kept as shares.
        assert!(low <= total + 1 && total <= high + 1, "{function}: {low} {total} {high}");
    }
}

#[test]
fn a_tree_has_the_lines_that_counts_have_without_one() {
    let session = Session::new();
    let path = INCLUSIVE.build().expect("the compiler is installed");
    counted(&session, &[], &path, "plain.trg");
    counted(&session, &["--tree"], &path, "tree.trg");
    for function in ["main", "compare", "print"] {
        let lines = |file: &str| -> Vec<(u64, u64)> {
            let text = session.output(&["report", file, "--lines", function, "--json"]);
            let lines: Value = serde_json::from_str(&text).expect("it is JSON");
            let number = |line: &Value, key: &str| line[key].as_u64().unwrap_or(0);
            let rows = lines["lines"].as_array().expect("an array").iter();
            let costs = rows.map(|line| (number(line, "line"), number(line, "self_cost")));
            costs.filter(|(_, cost)| *cost > 0).collect()
        };
        let [plain, tree] = ["plain.trg", "tree.trg"].map(lines);
        assert!(!plain.is_empty(), "{function}");
        assert_eq!(plain, tree, "{function}");
    }
}
