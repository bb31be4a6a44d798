//! The number 0 stands for no task: it is what a program gets while nothing is recorded, and it may
//! be entered when something is. In that case it was taken for the free place of a node's child, what
//! was entered below went astray, and the program crashed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::program::{Program, is_installed, project, succeeded, tree};

/// The tree that the program leaves with this profiler and clock.
fn check(kind: &str, clock: &str, expected: &str) {
    if !is_installed("cc") {
        return;
    }
    let source = project().join("hooks/c/tests/end_to_end/no_number.c");
    let program = Program::build(&format!("no_number/{kind}{clock}"), "cc", &["-O1"], &source);
    succeeded(program.command().arg(kind).env("TREERING_CLOCK", clock));
    let profile = program.profile("treering.trg");
    assert_eq!(tree(&profile, |function| profile.strings[function.name].to_owned()), expected);
    let losses = &profile.metadata.losses;
    let others = [losses.unbalanced_leaves, losses.open_activations, losses.dropped_events];
    assert_eq!(others, [0; 3], "{losses:?}");
}

const TREE: &str = "\
in none 1
inside 1
outer 3
  in none 3
  inside 3
";

const CALL_GRAPH: &str = "1";
const FLAT: &str = "2";
const COUNT: &str = "3";

#[test]
fn nothing_is_counted_for_it_in_a_call_graph() {
    check(CALL_GRAPH, "tsc", TREE);
    check(CALL_GRAPH, "monotonic", TREE);
}

#[test]
fn nothing_is_counted_for_it_in_a_flat_profile() {
    let flat = "in none 4\ninside 4\nouter 3\n";
    check(FLAT, "tsc", flat);
    check(FLAT, "monotonic", flat);
}

#[test]
fn nothing_is_counted_for_it_where_calls_are_counted_only() {
    check(COUNT, "tsc", TREE);
}
