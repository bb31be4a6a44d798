//! Stepping of programs whose counts are known.
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use treering_testing::programs::{
    CHILDREN, CONTROL_FLOW, FREESTANDING, LEAF_THREADS, OBJECTS, REWRITTEN, RUST_SMALL, SIGNALS,
};
use treering_testing::single_step::{Histogram, Stepped};

/// The address of a symbol in a program that is not moved when it is loaded.
fn symbol(program: &std::path::Path, name: &str) -> u64 {
    use object::{Object as _, ObjectSymbol as _};
    let bytes = std::fs::read(program).unwrap();
    let object = object::File::parse(&*bytes).unwrap();
    let symbol = object.symbols().find(|symbol| symbol.name() == Ok(name));
    symbol.unwrap_or_else(|| panic!("{name} is in {}", program.display())).address()
}

fn step(program: &std::path::Path, arguments: &[&str]) -> (Histogram, Option<i32>, String) {
    let mut histogram = Histogram::default();
    let stepped = Stepped::new(program).arguments(arguments).keep_output();
    let ended = stepped.run(&mut histogram).unwrap();
    (histogram, ended.exit_status, String::from_utf8(ended.output).unwrap())
}

/// How often a function is entered, for position-independent programs too: those are loaded at the
/// same address in every run.
fn entries(histogram: &Histogram, program: &std::path::Path, function: &str) -> u64 {
    let stated = symbol(program, function);
    [0, PIE_BASE].iter().map(|base| histogram.at(base + stated)).sum()
}

/// Where x86-64 Linux loads position-independent programs when nothing is randomised.
const PIE_BASE: u64 = 0x5555_5555_4000;

#[test]
fn instructions_of_a_program_without_a_library_are_counted_as_by_hand() {
    let program = FREESTANDING.build().unwrap();
    let (histogram, status, _) = step(&program, &[]);
    assert_eq!(status, Some(44));
    assert_eq!(entries(&histogram, &program, "fib"), 465);
    assert_eq!(entries(&histogram, &program, "spin_loop"), 1000);
    let again = step(&program, &[]).0;
    assert_eq!(histogram.executions, again.executions);
}

#[test]
fn a_repeated_instruction_is_executed_once() {
    let program = FREESTANDING.build().unwrap();
    let histogram = step(&program, &[]).0;
    assert_eq!(entries(&histogram, &program, "fill_here"), 2);
}

#[test]
fn instructions_that_share_bytes_are_apart() {
    let program = FREESTANDING.build().unwrap();
    let histogram = step(&program, &[]).0;
    let behind = symbol(&program, "skip_here");
    assert_eq!((histogram.at(behind - 1), histogram.at(behind)), (4, 6));
}

#[test]
fn calls_of_a_c_program_are_those_in_its_comments() {
    let program = CONTROL_FLOW.build().unwrap();
    let (histogram, status, _) = step(&program, &[]);
    assert_eq!(status, Some(0));
    let calls = |function| entries(&histogram, &program, function);
    assert_eq!((calls("leaf"), calls("choose"), calls("apply")), (300, 600, 90));
    assert_eq!((calls("twice"), calls("thrice"), calls("maybe_jump")), (60, 30, 20));
    assert_eq!((calls("even"), calls("odd")), (21, 21));
}

#[test]
fn programs_in_cpp_and_rust_run_as_they_do_alone() {
    let recipes = [
        OBJECTS.variant("static", &["-static-pie"]),
        RUST_SMALL.variant("static", &["-Ctarget-feature=+crt-static"]),
    ];
    for recipe in recipes {
        let program = recipe.build().unwrap();
        let (histogram, status, output) = step(&program, &[]);
        let alone = std::process::Command::new(&program).output().unwrap();
        assert_eq!((status, output.as_bytes()), (Some(0), &*alone.stdout));
        assert!(histogram.instructions() > 100_000);
    }
}

#[test]
fn handlers_run_once_for_each_signal() {
    let program = SIGNALS.build().unwrap();
    let (histogram, status, output) = step(&program, &["5"]);
    assert_eq!((status, output.as_str()), (Some(0), "10 5 5 0\n"));
    let calls = |function| entries(&histogram, &program, function);
    assert_eq!((calls("on_raise"), calls("on_fault")), (10, 10));
    assert_eq!(histogram.signals, 20);
    assert_eq!(calls("store"), 10);
}

#[test]
fn every_thread_is_stepped() {
    let program = LEAF_THREADS.build().unwrap();
    let (histogram, status, _) = step(&program, &["6", "50"]);
    assert_eq!(status, Some(0));
    assert_eq!(histogram.threads.len(), 7);
    assert_eq!(entries(&histogram, &program, "leaf"), 300);
}

#[test]
fn children_are_stepped_each_in_its_image() {
    let program = CHILDREN.build().unwrap();
    let (histogram, status, _) = step(&program, &[]);
    assert_eq!(status, Some(0));
    let work = PIE_BASE + symbol(&program, "work");
    let mut calls: Vec<_> =
        histogram.executions.iter().filter(|((_, at), _)| *at == work).map(|(_, count)| *count).collect();
    calls.sort_unstable();
    assert_eq!(calls, [1, 2, 3, 4]);
}

#[test]
fn code_that_changes_runs_as_it_is() {
    let program = REWRITTEN.build().unwrap();
    for arguments in [&[][..], &["writable"]] {
        let (_, status, output) = step(&program, arguments);
        assert_eq!((status, output.as_str()), (Some(0), "216\n"));
    }
}

#[test]
fn a_program_that_takes_too_long_is_given_up_and_one_that_is_missing_refused() {
    let mut histogram = Histogram::default();
    let program = CONTROL_FLOW.build().unwrap();
    let error = Stepped::new(program).most_steps(1000).run(&mut histogram).unwrap_err();
    assert!(error.to_string().contains("more steps"), "{error}");
    assert!(Stepped::new("/no/such/program").run(&mut histogram).is_err());
}
