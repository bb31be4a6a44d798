//! `treering record`: stacks that are hard to unwind reach their first function, with no frame too
//! many and none too few, or are counted as cut short.

use std::path::{Path, PathBuf};

use treering_testing::programs::{HARD_STACKS, Recipe};

use crate::session::{Session, program};
use crate::skip;

/// Ways to compile the program, which change what its stacks look like.
const PLAIN: &[&str] = &["-O2"];
const UNOPTIMISED: &[&str] = &["-O0"];
const FRAME_POINTERS: &[&str] = &["-O2", "-fno-omit-frame-pointer", "-DWITH_FRAMES"];
const NO_TABLES: &[&str] =
    &["-O2", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fomit-frame-pointer"];
const STATIC: &[&str] = &["-O2", "-static"];
const NARROW: &[&str] = &["-O2", "-m32"];
const NARROW_STATIC: &[&str] = &["-O2", "-m32", "-static"];
const NARROW_FIXED: &[&str] = &["-O2", "-m32", "-no-pie", "-fno-pie"];
const NARROW_NO_TABLES: &[&str] =
    &["-O2", "-m32", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fomit-frame-pointer"];

fn build(name: &str, flags: &[&str]) -> Option<PathBuf> {
    let recipe: Recipe = HARD_STACKS.variant(name, flags);
    match recipe.build() {
        Ok(path) => Some(path),
        Err(error) if name.starts_with("narrow") => {
            skip(&format!("no compiler for 32-bit programs: {error}"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The stacks of a recording as the program's own functions, outermost first, and their costs: from
/// `main` or a coroutine's function on, without the C library's and the kernel's.
fn stacks(session: &Session) -> Vec<(Vec<String>, f64)> {
    session.output(&["export", "--to", "folded", "-o", "stacks.folded", "treering.trg"]);
    let folded = std::fs::read_to_string(session.path("stacks.folded")).expect("it was written");
    let line = |line: &str| {
        let (stack, cost) = line.rsplit_once(' ').expect("a stack and a cost");
        let frames = stack.split(';').filter(|frame| OWN.contains(frame) || frame.starts_with("[truncated"));
        (frames.map(str::to_owned).collect(), cost.parse().expect("a number"))
    };
    folded.lines().map(line).collect()
}

/// The functions of the program.
const OWN: &[&str] = &[
    "main",
    "work",
    "aligned",
    "calls_aligned",
    "interrupted",
    "calls_interrupted",
    "raises_another",
    "on_trap",
    "on_user",
    "in_coroutine",
    "coroutine",
    "calls_bare",
    "bare_leaf",
    "bare_pushes",
    "bare_calls",
];

/// Records one kind of stack and checks that whatever was spent in the innermost function has
/// exactly this stack.
fn check(program_path: &Path, kind: &str, expected: &[&str]) {
    let session = Session::new();
    let flat = session.record(&[], &program(program_path, &[kind]));
    let innermost = expected.last().expect("a function");
    let stacks = stacks(&session);
    let ends_there = |stack: &[String]| stack.last().is_some_and(|last| last == innermost);
    let others: Vec<_> = stacks.iter().filter(|(stack, _)| ends_there(stack) && stack != expected).collect();
    let path = program_path.display();
    assert!(others.is_empty(), "{path} {kind}: {others:#?}");
    let right: f64 = stacks.iter().filter(|(stack, _)| stack == expected).map(|(_, cost)| cost).sum();
    let share = right / flat.run_cost();
    // Starting takes the rest.
    assert!(share > 0.6, "{path} {kind}: {share:.3} of the cost has that stack: {stacks:#?}");
}

/// Checks all kinds of stacks of which the whole is known.
fn check_all(name: &str, flags: &[&str]) {
    let Some(path) = build(name, flags) else { return };
    check(&path, "realigned", &["main", "calls_aligned", "aligned", "work"]);
    check(&path, "interrupted", &["main", "calls_interrupted", "interrupted", "on_trap", "work"]);
    let nested = ["main", "calls_interrupted", "interrupted", "on_trap", "raises_another", "on_user", "work"];
    check(&path, "nested", &nested);
    check(&path, "coroutine", &["coroutine", "in_coroutine", "work"]);
    check(&path, "leaf", &["main", "calls_bare", "bare_leaf"]);
    check(&path, "pushes", &["main", "calls_bare", "bare_pushes"]);
    check(&path, "calls", &["main", "calls_bare", "bare_calls", "work"]);
}

#[test]
fn tables_that_read_memory_are_followed() {
    check_all("plain", PLAIN);
}

#[test]
fn unoptimised_code_is_unwound_through_signals_and_coroutines() {
    check_all("unoptimised", UNOPTIMISED);
}

#[test]
fn frame_pointers_skip_no_interrupted_function() {
    check_all("frame-pointers", FRAME_POINTERS);
}

#[test]
fn code_without_tables_is_read() {
    check_all("no-tables", NO_TABLES);
}

#[test]
fn static_programs_are_unwound_through_signals() {
    check_all("static", STATIC);
}

#[test]
fn programs_of_32_bits_are_unwound() {
    check_all("narrow", NARROW);
    if let Some(path) = build("narrow-fixed", NARROW_FIXED) {
        check(&path, "realigned", &["main", "calls_aligned", "aligned", "work"]);
    }
}

#[test]
fn static_programs_of_32_bits_are_unwound() {
    check_all("narrow-static", NARROW_STATIC);
}

#[test]
fn code_of_32_bits_without_tables_is_read() {
    check_all("narrow-no-tables", NARROW_NO_TABLES);
}

#[test]
fn callers_interrupted_by_a_signal_on_its_own_stack_are_reported_missing() {
    let path = build("plain", PLAIN).expect("the compiler is installed");
    let session = Session::new();
    let flat = session.record(&[], &program(&path, &["alternate"]));
    let cut = flat.loss("truncated_stacks") as f64 / flat.samples() as f64;
    assert!(cut > 0.6, "{cut:.3} of the stacks are cut short, though no copy holds both");
    // The function that was interrupted is known from the signal's frame, its callers are not.
    let expected = ["[truncated stack]", "interrupted", "on_trap", "work"];
    let stacks = stacks(&session);
    assert!(stacks.iter().any(|(stack, _)| stack == &expected), "{stacks:#?}");
    let report = session.output(&["report"]);
    assert!(report.contains("continue on another stack"), "{report}");
}

#[test]
fn frame_pointers_lead_out_of_a_signals_own_stack() {
    let path = build("frame-pointers", FRAME_POINTERS).expect("the compiler is installed");
    check(&path, "alternate", &["main", "calls_interrupted", "interrupted", "on_trap", "work"]);
}
