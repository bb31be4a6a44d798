//! The wakers that ended waits: `record --off-cpu` and `report --wakers`.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use treering_testing::programs::installed;

use crate::session::{Session, program};
use crate::skip;

/// How often each wait of the program happens, in each thread.
const ROUNDS: u64 = 40;

fn waits(session: &Session) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command_line/programs/waits.c");
    let path = session.path("waits");
    let made = Command::new("cc").args(["-g", "-O1", source, "-lpthread", "-o"]).arg(&path).status();
    assert!(made.is_ok_and(|made| made.success()), "the compiler is installed");
    path
}

/// Records one course of the program; gives where it waited, or nothing where the kernel does not tell who ended that.
fn places(session: &Session, which: &str) -> Option<Value> {
    session.record(&["--off-cpu"], &program(&waits(session), &[which, &ROUNDS.to_string()]));
    let outcome = session.run(&["report", "--wakers", "--json", "--min", "0"]);
    if !outcome.status.success() {
        assert!(outcome.stderr.contains("does not know who ended waits"), "{outcome:#?}");
        assert!(outcome.stderr.contains("hint: who ended waits is not recorded: "), "{outcome:#?}");
        skip("the kernel does not tell this user who wakes threads");
        return None;
    }
    let report: Value = serde_json::from_str(&outcome.stdout).expect("it is JSON");
    let places = report["places"].clone();
    adds_up(&places, report["run"]["run_cost"].as_u64().expect("a number"));
    Some(places)
}

fn number(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap_or_else(|| panic!("{key} is a number: {of:#}"))
}

fn list(of: &Value) -> &[Value] {
    of.as_array().expect("a list")
}

/// Wakers and what is not known add up to their place, and places to the run.
fn adds_up(places: &Value, run_cost: u64) {
    for place in list(places) {
        for (sum, unknown) in [("waits", "unknown_waits"), ("time_ns", "unknown_time_ns")] {
            let known: u64 = list(&place["ended_by"]).iter().map(|waker| number(waker, sum)).sum();
            assert_eq!(known + number(place, unknown), number(place, sum), "{place:#}");
        }
    }
    assert_eq!(list(places).iter().map(|place| number(place, "time_ns")).sum::<u64>(), run_cost);
}

/// The waits of a function, of whatever kind: how many there are, and how many were ended by what `is_it` says.
fn ended(places: &Value, function: &str, is_it: impl Fn(&Value) -> bool) -> (u64, u64) {
    let of = list(places).iter().filter(|place| place["function"] == function);
    of.fold((0, 0), |(all, by), place| {
        let wakers = list(&place["ended_by"]).iter().filter(|waker| is_it(waker));
        (all + number(place, "waits"), by + wakers.map(|waker| number(waker, "waits")).sum::<u64>())
    })
}

fn by_thread_in(function: &str) -> impl Fn(&Value) -> bool {
    move |waker| waker["waker"] == "thread" && waker["place"]["function"] == function
}

#[test]
fn waits_for_a_lock_are_ended_by_those_who_held_it() {
    let session = Session::new();
    let Some(places) = places(&session, "convoy") else { return };
    let locked: Vec<_> = list(&places).iter().filter(|place| place["waiting_for"] == "lock").collect();
    assert!(locked.iter().all(|place| place["function"] == "hold_lock"), "{places:#}");
    let locked = Value::Array(locked.into_iter().cloned().collect());
    let (all, by_holder) = ended(&locked, "hold_lock", by_thread_in("hold_lock"));
    assert!(all > ROUNDS && by_holder * 10 >= all * 9, "{by_holder} of {all}: {places:#}");
    let text = session.output(&["report", "--wakers"]);
    assert!(text.contains("hold_lock [waits], for a lock"), "{text}");
    assert!(text.contains("    hold_lock in 4 threads waits"), "{text}");
}

#[test]
fn an_empty_queue_is_waited_at_until_the_producer_signals() {
    let session = Session::new();
    let Some(places) = places(&session, "queue") else { return };
    let (all, by_producer) = ended(&places, "consume", by_thread_in("produce"));
    assert!(all >= ROUNDS && by_producer * 10 >= all * 9, "{by_producer} of {all}: {places:#}");
}

#[test]
fn a_pipe_is_read_until_the_other_process_writes() {
    let session = Session::new();
    let Some(places) = places(&session, "pipe") else { return };
    let (all, by_sender) = ended(&places, "receive", by_thread_in("send_late"));
    assert!(all >= ROUNDS && by_sender * 10 >= all * 9, "{by_sender} of {all}: {places:#}");
}

#[test]
fn sleeps_are_ended_by_the_timer() {
    let session = Session::new();
    let Some(places) = places(&session, "sleep") else { return };
    let by_interrupt = |waker: &Value| waker["waker"] == "interrupt" && list(&waker["threads"]).is_empty();
    let (all, by_timer) = ended(&places, "pause_for", by_interrupt);
    let (_, known) = ended(&places, "pause_for", |_| true);
    assert!(all >= ROUNDS && by_timer == known, "{by_timer} of {known}: {places:#}");
    let timers =
        |waker: &Value| waker["through"]["function"].as_str().is_some_and(|name| name.contains("timer"));
    let (_, through_timer) = ended(&places, "pause_for", timers);
    assert_eq!(through_timer, by_timer, "{places:#}");
    if known * 10 < all * 9 {
        skip("the kernel hands over no events of an idle processor");
    }
}

#[test]
fn wakers_of_two_parts_of_a_run_add_up_to_those_of_the_whole() {
    let session = Session::new();
    if places(&session, "convoy").is_none() {
        return;
    }
    let of = |options: &[&str]| {
        let text = session.output(&[&["report", "--wakers", "--json", "--min", "0"], options].concat());
        let report: Value = serde_json::from_str(&text).expect("it is JSON");
        let mut sums = std::collections::BTreeMap::new();
        for place in list(&report["places"]) {
            for waker in list(&place["ended_by"]) {
                let key = format!("{} {} {}", place["function"], waker["waker"], waker["place"]["function"]);
                let sum: &mut (u64, u64) = sums.entry(key).or_default();
                *sum = (sum.0 + number(waker, "waits"), sum.1 + number(waker, "time_ns"));
            }
        }
        sums
    };
    let mut halves = of(&["--to", "40%"]);
    for (key, (waits, time)) in of(&["--from", "40%"]) {
        let sum = halves.entry(key).or_default();
        *sum = (sum.0 + waits, sum.1 + time);
    }
    assert_eq!(halves, of(&[]));
}

#[test]
fn wakings_are_those_that_perf_sees() {
    let Some(perf) = installed("perf") else { return skip("perf is not installed") };
    let session = Session::new();
    // Perf watches our recording, so both see the same wakings.
    let file = session.path("perf.data");
    let ours = session.command(&["record", "--off-cpu", "--force"]);
    let record = Command::new(&perf)
        .args(["record", "-q", "-a", "-e", "sched:sched_waking", "-o"])
        .arg(&file)
        .arg("--")
        .arg(ours.get_program())
        .args(ours.get_args())
        .arg("--")
        .arg(waits(&session))
        .args(["sleep", &ROUNDS.to_string()])
        .current_dir(session.path("."))
        .env("XDG_CACHE_HOME", session.path("cache"))
        .output();
    if !record.is_ok_and(|output| output.status.success()) {
        return skip("perf may not record sched:sched_waking");
    }
    let script = Command::new(&perf).args(["script", "-i"]).arg(&file).output().expect("perf runs");
    let script = String::from_utf8_lossy(&script.stdout).into_owned();
    let outcome = session.run(&["report", "--wakers", "--json", "--min", "0"]);
    if !outcome.status.success() {
        return skip("the kernel does not tell this user who wakes threads");
    }
    let report: Value = serde_json::from_str(&outcome.stdout).expect("it is JSON");
    let (all, known) = ended(&report["places"], "pause_for", |_| true);
    // Of the program itself; a few are of its start, or of sleeps whose timer ended before they began.
    let by_perf = script.lines().filter(|line| line.contains("comm=waits ")).count() as u64;
    assert!((ROUNDS..ROUNDS + 5).contains(&all), "{report:#}");
    assert!(known.abs_diff(by_perf) <= ROUNDS / 10 + 2, "{known} and {by_perf}: {report:#}");
}

#[test]
fn a_profile_without_wakers_is_told_so() {
    let session = Session::new();
    session.record(&[], &program(&waits(&session), &["sleep", "3"]));
    let outcome = session.run(&["report", "--wakers"]);
    assert!(outcome.error().contains("the profile has no waits"), "{outcome:#?}");
    assert!(outcome.stderr.contains("hint: treering record --off-cpu"), "{outcome:#?}");
    session.record_any(&["--off-cpu", "--user-only"], &program(&waits(&session), &["sleep", "3"]));
    let outcome = session.run(&["report", "--wakers"]);
    assert!(outcome.error().contains("the profile does not know who ended waits"), "{outcome:#?}");
    assert!(outcome.stderr.contains("hint: who ended waits is not recorded: "), "{outcome:#?}");
}
