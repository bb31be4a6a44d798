//! The activations that a program jumps out of with `longjmp` end there: a function entered afterwards is a
//! child of the function that was jumped to, and every count is exact.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::program::{Program, is_installed, project, succeeded, tree};
use treering_profile::{Function, Profile};

const TIMES: u64 = 100_000;

/// Builds and runs the program in one way; returns its profile and its tree with names.
fn run(compiler: &str, flags: &[&str]) -> Option<(Profile, String)> {
    if !is_installed(compiler) {
        return None;
    }
    let source = project().join("hooks/c/tests/end_to_end/jumps.c");
    let folder = format!("jumps/{compiler}{}", flags.join(""));
    let program = Program::build(&folder, compiler, flags, &source);
    succeeded(program.command().arg(TIMES.to_string()));
    let profile = program.profile("treering.trg");
    let symbols = program.symbols();
    let name = |function: &Function| match function.address {
        Some(address) => symbols.get(&address.0).cloned().unwrap_or_default(),
        None => profile.strings[function.name].to_owned(),
    };
    let text = tree(&profile, name);
    Some((profile, text))
}

const TREE: &str = "\
start 1
  after 1
    leaf 1
  many_jumps 1
    after 100000
      leaf 100000
    first 100000
      second 100000
        third 100000
  several 1
    after 100000
      leaf 100000
    one_jump 100000
      first 100000
        second 100000
          third 100000
";

/// Checks all counts, and that nothing went wrong but that three activations were jumped out of,
/// twice as often as the program was told.
fn is_exact((profile, text): &(Profile, String), expected: &str) {
    assert_eq!(text, expected);
    let losses = &profile.metadata.losses;
    assert_eq!(losses.unwound_activations, 6 * TIMES);
    let others = [losses.unbalanced_leaves, losses.open_activations, losses.dropped_events];
    assert_eq!(others, [0; 3], "{losses:?}");
}

/// Scopes of the macros; the frame of what is entered after the jump stands above, at or below that
/// of what was jumped out of.
fn scopes_are_exact(compiler: &str, flags: &[&str]) {
    for roomy in ["-DROOMY", "-UROOMY"] {
        let Some(outcome) = run(compiler, &[flags, &[roomy]].concat()) else { return };
        is_exact(&outcome, TREE);
    }
}

/// Functions that the compiler has report themselves.
fn functions_are_exact(compiler: &str, optimisation: &str) {
    let flags = [optimisation, "-DBY_COMPILER", "-finstrument-functions"];
    let Some(outcome) = run(compiler, &flags) else { return };
    let below_main: String = TREE.lines().map(|line| format!("  {line}\n")).collect();
    is_exact(&outcome, &format!("main 1\n{below_main}"));
}

#[test]
fn scopes_of_gcc() {
    scopes_are_exact("gcc", &["-O0"]);
    scopes_are_exact("gcc", &["-O2"]);
}

#[test]
fn scopes_of_clang() {
    scopes_are_exact("clang", &["-O0"]);
    scopes_are_exact("clang", &["-O2"]);
}

#[test]
fn functions_instrumented_by_gcc() {
    functions_are_exact("gcc", "-O0");
    functions_are_exact("gcc", "-O2");
}

#[test]
fn functions_instrumented_by_clang() {
    functions_are_exact("clang", "-O0");
    functions_are_exact("clang", "-O2");
}

/// `__longjmp_chk` instead of `longjmp`.
#[test]
fn checked_jumps() {
    scopes_are_exact("gcc", &["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"]);
}

/// `siglongjmp`, which gives the signal mask back; the program checks that.
#[test]
fn jumps_with_a_signal_mask() {
    scopes_are_exact("gcc", &["-O2", "-DWITH_MASK"]);
}

/// There the library's own function makes the jump.
#[test]
fn jumps_in_a_program_that_is_linked_statically() {
    scopes_are_exact("gcc", &["-O2", "-static"]);
    scopes_are_exact("gcc", &["-O2", "-static", "-DWITH_MASK"]);
}
