//! `treering count` of programs that go unusual ways.

use serde_json::Value;
use treering_testing::programs::{LEFT_AT_FAULTS, OWN_STEPS, RETURNS_AS_JUMPS, STOPPED_AT_EXEC};

use crate::session::{Outcome, Session, program, words};

fn count(session: &Session, options: &[&str], path: &std::path::Path, arguments: &[&str]) -> Outcome {
    let mut all = words(&["count"]);
    all.extend(words(options));
    all.extend(words(&["--"]));
    all.extend(program(path, arguments));
    session.run(&all)
}

/// The blocks of a function in `treering.trg`.
fn blocks(session: &Session, function: &str) -> Value {
    let text = session.output(&["report", "treering.trg", "--blocks", function, "--json"]);
    serde_json::from_str(&text).expect("JSON is printed")
}

/// Handlers go on behind the fault, or elsewhere.
#[test]
fn what_is_executed_of_a_block_before_a_fault_stands_in_the_file() {
    let session = Session::new();
    let path = LEFT_AT_FAULTS.build().expect("the compiler is installed");
    for options in [&["--no-cache"][..], &[], &[], &["--tree"]] {
        let outcome = count(&session, options, &path, &[]);
        assert_eq!(outcome.shell_status(), 0, "{outcome:#?}");
        assert!(outcome.stderr.contains("every instruction of theirs was counted"), "{outcome:#?}");
        for (function, instructions) in [("skips", 7002), ("get", 550)] {
            let all = blocks(&session, function);
            assert_eq!(all["instructions_executed"], instructions, "{function}: {options:?}");
        }
    }
}

#[test]
fn where_returns_are_jumps_branches_are_right_or_unknown() {
    let session = Session::new();
    let path = RETURNS_AS_JUMPS.build().expect("the compiler is installed");
    for options in [&["--no-cache"][..], &[], &[]] {
        let outcome = count(&session, options, &path, &[]);
        assert_eq!(outcome.shell_status(), 0, "{outcome:#?}");
        let all = blocks(&session, "step");
        let blocks = all["blocks"].as_array().expect("blocks are listed");
        let told: Vec<_> = blocks
            .iter()
            .filter_map(|block| Some((block["taken"].as_u64()?, block["not_taken"].as_u64()?)))
            .collect();
        // Where the switch is left at once, and in its first case.
        assert!(told.contains(&(0, 7000)) && told.contains(&(100, 900)), "{told:?}");
        assert_eq!(told.len(), 2, "{told:?}");
    }
}

#[test]
fn a_program_that_steps_itself_is_refused() {
    let session = Session::new();
    let path = OWN_STEPS.build().expect("the compiler is installed");
    let outcome = count(&session, &[], &path, &[]);
    assert_ne!(outcome.shell_status(), 0, "{outcome:#?}");
    assert!(outcome.stderr.contains("steps through its own instructions"), "{outcome:#?}");
}

#[test]
fn what_is_continued_while_it_becomes_another_program_does_not_stay_stopped() {
    let session = Session::new();
    let path = STOPPED_AT_EXEC.build().expect("the compiler is installed");
    for seed in ["1", "2", "3"] {
        let outcome = count(&session, &["-q"], &path, &[seed]);
        assert_eq!(outcome.shell_status(), 0, "{outcome:#?}");
    }
}

#[test]
fn a_limit_of_files_is_an_error_that_says_so() {
    let session = Session::new();
    let script = "ulimit -f 1000; exec \"$0\" count -- true";
    let treering = env!("CARGO_BIN_EXE_treering");
    let outcome = std::process::Command::new("sh")
        .args(["-c", script, treering])
        .current_dir(session.path("."))
        .output()
        .expect("there is a shell");
    let told = String::from_utf8_lossy(&outcome.stderr);
    assert_eq!(outcome.status.code(), Some(1), "{told}");
    assert!(told.contains("ulimit -f unlimited"), "{told}");
}
