//! `examples/stack_machine`: an interpreter that reports the functions of its language.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::process::{Command, Output};

use super::program::{Program, is_installed, project, succeeded, tree};
use treering_profile::{FunctionKind, Profile};

fn example(file: &str) -> PathBuf {
    project().join("examples/stack_machine").join(file)
}

/// The interpreter, built for one test; nothing if there is no compiler.
fn interpreter(test: &str, source: &str) -> Option<Program> {
    let flags = ["-std=c11", "-pedantic", "-O2"];
    let folder = format!("stack_machine/{test}");
    is_installed("cc").then(|| Program::build(&folder, "cc", &flags, &example(source)))
}

/// Runs a program of the language.
fn run(interpreter: &Program, text: &str) -> Output {
    std::fs::write(interpreter.folder.join("program.stack"), text).unwrap();
    interpreter.command().arg("program.stack").output().unwrap()
}

fn demo() -> String {
    std::fs::read_to_string(example("demo.stack")).unwrap()
}

fn tree_of(profile: &Profile) -> String {
    tree(profile, |function| profile.strings[function.name].to_owned())
}

#[test]
fn both_interpreters_print_the_same() {
    let (Some(hooked), Some(plain)) =
        (interpreter("prints", "hooked.c"), interpreter("prints-plain", "plain.c"))
    else {
        return;
    };
    let demo = demo();
    let without_commands: Vec<_> = demo.lines().filter(|line| !line.starts_with("profile-")).collect();
    let (hooked, plain) = (run(&hooked, &demo), run(&plain, &without_commands.join("\n")));
    assert!(hooked.status.success() && plain.status.success());
    assert_eq!(hooked.stdout, plain.stdout);
    assert_eq!(hooked.stdout, b"5\n55\n1\n12\n16\n25\n50\n0\n0\n6765\n");
}

#[test]
fn the_hooks_are_25_lines() {
    let mut diff = Command::new("diff");
    let output = diff.arg(example("plain.c")).arg(example("hooked.c")).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    assert_eq!(lines.lines().filter(|line| line.starts_with('>')).count(), 25, "{lines}");
}

#[test]
fn calls_callers_and_errors_are_exact() {
    let Some(interpreter) = interpreter("graph", "hooked.c") else { return };
    assert!(run(&interpreter, &demo()).status.success());
    let profile = interpreter.profile("treering.trg");
    let expected = "\
down-to-zero 5, 4 recursive, 5 exits
  careful 5, 5 exits
    half-of-inverse 5, 4 exits, 1 exceptions
      invert 5, 4 exits, 1 exceptions
even 1, 1 exits
  odd 1, 1 exits
    even 1, 1 exits
      odd 1, 1 exits
        even 1, 1 exits
          odd 1, 1 exits
            even 1, 1 exits
fib 177, 176 recursive, 177 exits
";
    assert_eq!(tree_of(&profile), expected);
    let losses = &profile.metadata.losses;
    assert_eq!([losses.unwound_activations, losses.unbalanced_leaves, losses.open_activations], [0; 3]);
}

#[test]
fn functions_have_their_names_files_and_lines() {
    let Some(interpreter) = interpreter("names", "hooked.c") else { return };
    assert!(run(&interpreter, &demo()).status.success());
    let profile = interpreter.profile("treering.trg");
    let functions = profile.functions.entries().iter().filter(|function| function.kind != FunctionKind::Root);
    let mut found: Vec<_> = functions
        .map(|function| {
            assert_eq!(function.kind, FunctionKind::Interpreted);
            assert_eq!(&profile.strings[function.file], "program.stack");
            (&profile.strings[function.name], function.line)
        })
        .collect();
    found.sort_unstable();
    let expected = [
        ("careful", 8),
        ("down-to-zero", 9),
        ("even", 3),
        ("fib", 2),
        ("half-of-inverse", 7),
        ("invert", 6),
        ("odd", 4),
    ];
    assert_eq!(found, expected);
}

#[test]
fn calls_are_sorted_by_the_size_of_their_argument() {
    let Some(interpreter) = interpreter("sizes", "hooked.c") else { return };
    assert!(run(&interpreter, &demo()).status.success());
    let profile = interpreter.profile("treering.trg");
    let name = |node| &profile.strings[profile.functions[profile.tree.function(node)].name];
    let mut calls = [0; 64];
    for row in &profile.activations.as_ref().unwrap().sizes {
        if name(row.node) == "fib" {
            calls[usize::from(row.bucket)] += row.calls;
        }
    }
    assert_eq!(calls[..5], [89, 55, 29, 4, 0]);
}

#[test]
fn a_flat_profile_has_a_record_for_each_function() {
    let Some(interpreter) = interpreter("flat", "hooked.c") else { return };
    assert!(run(&interpreter, &demo().replace("profile-graph", "profile-flat")).status.success());
    let expected = "\
careful 5, 5 exits
down-to-zero 5, 5 exits
even 4, 4 exits
fib 177, 177 exits
half-of-inverse 5, 4 exits, 1 exceptions
invert 5, 4 exits, 1 exceptions
odd 3, 3 exits
";
    assert_eq!(tree_of(&interpreter.profile("treering.trg")), expected);
}

#[test]
fn another_kind_of_profile_is_another_file() {
    let Some(interpreter) = interpreter("kinds", "hooked.c") else { return };
    let text = ": f ; : g f ; profile-graph g g profile-flat g profile-off g";
    assert!(run(&interpreter, text).status.success());
    assert_eq!(tree_of(&interpreter.profile("treering.trg.old")), "g 2\n  f 2\n");
    assert_eq!(tree_of(&interpreter.profile("treering.trg")), "f 1\ng 1\n");
}

#[test]
fn function_that_an_error_ends_the_program_in_is_in_the_profile() {
    let Some(interpreter) = interpreter("error", "hooked.c") else { return };
    let output = run(&interpreter, ": inner 0 / ;\n: outer inner ;\nprofile-graph 1 outer");
    assert_eq!(output.status.code(), Some(1));
    let expected = "error: division by zero\n  in inner, defined in line 1\n  in outer, defined in line 2\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), expected);
    let profile = interpreter.profile("treering.trg");
    assert_eq!(tree_of(&profile), "outer 1\n  inner 1\n");
    assert_eq!(profile.metadata.losses.open_activations, 2);
}

#[test]
fn filters_keep_functions_out_by_name() {
    let Some(interpreter) = interpreter("filter", "hooked.c") else { return };
    std::fs::write(interpreter.folder.join("program.stack"), demo()).unwrap();
    let mut command = interpreter.command();
    succeeded(command.arg("program.stack").env("TREERING_IGNORE", "fib,down-*").env("TREERING_DEPTH", "3"));
    let profile = interpreter.profile("treering.trg");
    let expected = "\
careful 5, 5 exits
  half-of-inverse 5, 4 exits, 1 exceptions
    invert 5, 4 exits, 1 exceptions
even 1, 1 exits
  odd 1, 1 exits
    even 1, 1 exits
";
    assert_eq!(tree_of(&profile), expected);
}
