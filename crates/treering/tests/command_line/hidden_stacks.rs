//! `treering record`: stacks that the kernel's copy does not reach, as it stops at memory that is not there, or is of
//! another stack than a goroutine's.

use std::path::PathBuf;
use std::process::Command;

use treering_testing::programs::{STACK_HOLE, fixture, installed};

use crate::profile::Flat;
use crate::session::{Session, program};
use crate::skip;

/// Records `stack_hole`.
fn record(session: &Session, options: &[&str], kind: &str, rounds: &str) -> Flat {
    session
        .record(options, &program(&STACK_HOLE.build().expect("the compiler is installed"), &[kind, rounds]))
}

/// The share of stacks that were cut short.
fn cut(flat: &Flat) -> f64 {
    flat.loss("truncated_stacks") as f64 / flat.samples() as f64
}

#[test]
fn a_local_array_that_was_never_touched_cuts_no_stack() {
    for (kind, outer) in [("first", "outermost"), ("threads", "thread_body")] {
        let session = Session::new();
        let flat = record(&session, &[], kind, "200");
        assert!(cut(&flat) < 0.02, "{kind}: {:#}", flat.0["run"]);
        let (below, above) = (flat.cost("hot").total, flat.cost(outer).total);
        assert!(above > 0.97 * below, "{kind}: {above} for {below}");
    }
}

#[test]
fn an_array_at_the_stack_pointer_cuts_only_the_first_stacks() {
    let session = Session::new();
    let flat = record(&session, &["-F", "2000"], "bottom", "2000");
    let few = 100.0 / flat.samples() as f64;
    assert!(cut(&flat) < 0.02 + few, "{:#}", flat.0["run"]);
    let (below, above) = (flat.cost("bottom").total, flat.cost("calls_bottom").total);
    assert!(above > (0.96 - few) * below, "{above} for {below}");
}

/// On a loaded machine `record` comes to a stack when the program has long gone on, and more stacks are cut: each is
/// counted.
#[test]
fn outer_frames_that_may_have_changed_are_said_to_be_read_later() {
    let session = Session::new();
    let flat = record(&session, &[], "fresh", "400");
    let (one, other) = (flat.cost("one_way").total, flat.cost("other_way").total);
    let whole = flat.cost("hot").total - cut(&flat) * flat.run_cost();
    let notes = flat.0["run"]["notes"].to_string();
    let told = notes.contains("some milliseconds later") || notes.contains("could not be read reliably");
    assert!(one + other > 0.97 * whole, "{one} and {other} for {whole}: {:#}", flat.0["run"]);
    assert!(told || cut(&flat) < 0.02, "{:#}", flat.0["run"]);
}

#[test]
fn callers_beyond_the_copy_are_those_of_the_sampled_stack() {
    let session = Session::new();
    let flat = record(&session, &[], "large", "40");
    assert!(cut(&flat) < 0.05, "{:#}", flat.0["run"]);
    session.output(&["export", "--to", "folded", "-o", "stacks.folded", "treering.trg"]);
    let folded = std::fs::read_to_string(session.path("stacks.folded")).expect("it was written");
    // The cost of a function behind the array below a way to it.
    let cost = |way: &str, behind: &str| -> f64 {
        let costs = folded.lines().filter_map(|line| line.rsplit_once(' ')).filter_map(|(stack, cost)| {
            let has = |name: &str| stack.split(';').any(|frame| frame == name);
            (has(way) && has(behind)).then(|| cost.parse::<f64>().expect("a number"))
        });
        costs.sum()
    };
    for (way, right, wrong) in
        [("large_one", "behind_one", "behind_other"), ("large_other", "behind_other", "behind_one")]
    {
        let (right, wrong) = (cost(way, right), cost(way, wrong));
        assert!(right > 0.4 * flat.run_cost() && wrong < 0.01 * right, "{way}: {right}, {wrong}\n{folded}");
    }
}

/// Compiles the fixture with Go and with its C; nothing, and a word about it, where that is missing.
fn goroutine_stacks(session: &Session) -> Option<PathBuf> {
    let Some(go) = installed("go") else {
        skip("go is not installed");
        return None;
    };
    let program = session.path("goroutine_stacks");
    let mut command = Command::new(go);
    command.env("GOCACHE", session.path("go-cache")).env("CGO_ENABLED", "1").args(["build", "-o"]);
    let output = command.arg(&program).arg(fixture("goroutine_stacks.go")).output().expect("go runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

#[test]
fn stacks_of_go_go_on_in_the_goroutine() {
    let session = Session::new();
    let Some(goroutine_stacks) = goroutine_stacks(&session) else { return };
    for (kind, rounds, inner, outer) in [
        ("large", "6000", "runtime.newstack", "main.large"),
        ("large", "6000", "main.large", "main.callsLarge"),
        ("allocates", "1000", "runtime.mallocgc", "main.allocates"),
        ("foreign", "15", "in_c", "main.callsC"),
        ("foreign", "15", "in_c", "runtime.goexit"),
    ] {
        let all = program(&goroutine_stacks, &[kind, rounds]);
        let flat = session.record(&["--force", "--user-only", "-F", "2000"], &all);
        let (below, above) = (flat.cost(inner).total, flat.cost(outer).total);
        assert!(below > 0.1 * flat.run_cost(), "{kind}: {inner} is {below}: {:#}", flat.0["run"]);
        // A goroutine that has gone on before its stack is read leaves a stack that is cut, and counted as such.
        let cut = flat.loss("truncated_stacks") as f64 / flat.samples() as f64;
        let whole = below - cut * flat.run_cost();
        assert!(
            cut < 0.3 && above > 0.9 * whole,
            "{kind}: {outer} is {above}, {inner} {below}: {:#}",
            flat.0["run"]
        );
    }
}

#[test]
fn costs_of_goroutines_whose_stacks_grow_are_their_own() {
    let session = Session::new();
    let Some(goroutine_stacks) = goroutine_stacks(&session) else { return };
    let all = program(&goroutine_stacks, &["deep", "20000"]);
    let flat = session.record(&["--user-only", "-F", "2000"], &all);
    let (deep, grown) = (flat.cost("main.deep").total, flat.cost("runtime.copystack").total);
    assert!(deep >= 0.95 * grown && deep > 0.0, "main.deep is {deep}, copystack {grown}");
    assert!(flat.total_share("runtime.newproc") < 0.5, "{:#}", flat.0["run"]);
}
