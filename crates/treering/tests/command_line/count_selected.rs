//! `treering count` of a part of a run.

use std::process::{Command, Stdio};

use treering_testing::programs::{RUST_MARKED, SELECTED, installed};

use crate::session::{Outcome, Session, program, words};
use crate::skip;

fn count(session: &Session, options: &[&str]) -> Outcome {
    let path = SELECTED.build().expect("the compiler is installed");
    let mut all = words(&["count"]);
    all.extend(words(options));
    all.extend(words(&["--"]));
    all.extend(program(&path, &[]));
    let outcome = session.run(&all);
    assert_eq!(outcome.shell_status(), 0, "{outcome:#?}");
    outcome
}

/// Instructions as the summary states them.
fn instructions(outcome: &Outcome) -> u64 {
    let line = outcome.stderr.lines().find(|line| line.contains("instructions executed"));
    let digits: String = line.unwrap_or_default().chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("instructions are stated: {outcome:#?}"))
}

#[test]
fn callgrind_counts_the_same_within_a_function() {
    let Some(valgrind) = installed("valgrind") else { return skip("valgrind is not installed") };
    let session = Session::new();
    let own = count(&session, &["--toggle", "wanted", "--no-children"]);
    assert!(own.stderr.contains("counted only within wanted"), "{own:#?}");
    let path = SELECTED.build().expect("the compiler is installed");
    let mut theirs = Command::new(valgrind);
    theirs.args(["--tool=callgrind", "--toggle-collect=wanted", "--callgrind-out-file=out.%p"]).arg(path);
    let theirs = theirs.current_dir(session.path("")).stdin(Stdio::null()).output().expect("valgrind runs");
    let text = String::from_utf8_lossy(&theirs.stderr);
    let collected = text.lines().rev().find_map(|line| line.split_once("Collected : "));
    let (_, collected) = collected.unwrap_or_else(|| panic!("callgrind tells what it collected: {text}"));
    assert_eq!(collected.trim(), instructions(&own).to_string());
}

#[test]
fn profiles_state_the_selection() {
    let session = Session::new();
    let outcome = count(&session, &["--marked"]);
    assert!(outcome.stderr.contains("between the program's own marks"), "{outcome:#?}");
    assert!(!outcome.stderr.contains("every instruction"), "{outcome:#?}");
    let report = session.run(&words(&["report", "--flat"]));
    assert!(report.stdout.contains("between the program's own marks"), "{report:#?}");
    let missing = count(&session, &["--only", "nonesuch"]);
    assert!(missing.stderr.contains("the code of this run has no function nonesuch"), "{missing:#?}");
}

#[test]
fn a_run_without_marks_says_so() {
    let session = Session::new();
    let outcome = session.run(&words(&["count", "--marked", "--", "true"]));
    assert!(outcome.stderr.contains("no thread passed a mark"), "{outcome:#?}");
    assert!(!count(&session, &["--marked"]).stderr.contains("no thread passed a mark"));
}

#[test]
fn the_program_goes_on_when_counting_has_stopped() {
    let session = Session::new();
    let outcome = count(&session, &["--stop-after", "0.001"]);
    assert!(!outcome.stdout.is_empty(), "{outcome:#?}");
    let all = words(&["count", "--stop-after", "0", "--", "true"]);
    assert!(session.run(&all).stderr.contains("must be more than 0"));
}

#[test]
fn marks_of_rust_programs_are_those_of_the_runtime() {
    let session = Session::new();
    let path = RUST_MARKED.build().expect("the compiler is installed");
    let mut all = words(&["count", "--marked", "--"]);
    all.extend(program(&path, &["700"]));
    let outcome = session.run(&all);
    assert_eq!(outcome.shell_status(), 0, "{outcome:#?}");
    let report = session.run(&words(&["report", "--flat", "--json"]));
    let report: serde_json::Value = serde_json::from_str(&report.stdout).expect("valid JSON");
    let functions = report["functions"].as_array().expect("a list");
    let leaf = functions.iter().find(|row| row["function"] == "marked::leaf");
    assert_eq!(leaf.expect("it was called")["calls"], 700, "{report:#}");
    // Nothing but `main`'s loop and `leaf`.
    assert_eq!(functions.len(), 2, "{report:#}");
}

/// The resolver was counted, which runs once, when the program is loaded.
#[test]
fn indirect_functions_are_to_be_selected_by_their_implementations() {
    let session = Session::new();
    let source = "APART long one(long x) { return x + 1; }\n\
        __attribute__((no_instrument_function)) static long (*choose(void))(long) { return one; }\n\
        long chosen(long) __attribute__((ifunc(\"choose\")));\n\
        int main(void) { long sum = 0; for (int i = 0; i < 500; i++) sum += chosen(i); return sum == 0; }\n";
    let Some(path) = crate::gprof::compile(&session, source, "indirect", &["-O1"]) else { return };
    let count = |function: &str| {
        let all = [words(&["count", "--toggle", function, "--"]), program(&path, &[])].concat();
        session.run(&all)
    };
    let resolver = count("chosen");
    assert!(resolver.stderr.contains("chosen of "), "{resolver:#?}");
    assert!(resolver.stderr.contains("it is an indirect function"), "{resolver:#?}");
    assert_eq!(instructions(&resolver), 0, "{resolver:#?}");
    let implementation = count("one");
    assert!(!implementation.stderr.contains("an indirect function"), "{implementation:#?}");
    assert!(instructions(&implementation) >= 500, "{implementation:#?}");
    // A resolver may have a name of its own.
    assert!(instructions(&count("choose")) > 0);
}

/// All that ran between its first enter and its last leave was counted.
#[test]
fn a_coroutine_is_counted_only_while_its_stack_is_in_use() {
    let session = Session::new();
    let source = "#include <ucontext.h>\n\
        static ucontext_t outside, inside;\n\
        static char stack[65536];\n\
        APART long leaf(long x) { __asm__ volatile(\"\"); return x + 1; }\n\
        APART long other(long x) { __asm__ volatile(\"\"); return x + 2; }\n\
        APART void rooms(int n) { for (int i = 1; i < n; i++) { char room[i * 64]; room[leaf(0)] = 1;\n\
          __asm__ volatile(\"\" : : \"r\"(room) : \"memory\"); } }\n\
        APART void co(void) { for (int i = 0; i < 100; i++) { leaf(i); swapcontext(&inside, &outside); } }\n\
        static void start(void) { co(); }\n\
        int main(void) { getcontext(&inside); inside.uc_stack.ss_sp = stack; inside.uc_stack.ss_size = sizeof stack;\n\
          inside.uc_link = &outside; makecontext(&inside, start, 0);\n\
          for (int i = 0; i < 101; i++) { for (int k = 0; k < 10; k++) other(k); swapcontext(&outside, &inside); }\n\
          rooms(50); return 0; }\n";
    let Some(path) = crate::gprof::compile(&session, source, "coroutine", &["-O1"]) else { return };
    let count = |function: &str| {
        let all = [words(&["count", "--toggle", function, "--"]), program(&path, &[])].concat();
        let outcome = session.run(&all);
        let calls = |name: &str| {
            let report = session.json("--flat", &[]);
            let functions = report["functions"].as_array().expect("functions are listed").iter();
            functions
                .filter(|one| one["function"] == name)
                .filter_map(|one| one["calls"].as_u64())
                .sum::<u64>()
        };
        ((calls("leaf"), calls("other")), outcome.stderr.contains("left for another stack"))
    };
    assert_eq!(count("co"), ((100, 0), true));
    // An array takes its room by a register too.
    assert_eq!(count("rooms"), ((49, 0), false));
}
