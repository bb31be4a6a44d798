//! `treering record` on threads and processes that live about as long as the interval between samples.
//!
//! The programs tell their true times by the clocks of their threads. The tests compare shares, with twice
//! the margin of the printed intervals.

use treering_testing::programs::{SHORT_LIVES, installed};

use crate::profile::Flat;
use crate::session::{Outcome, Session, program, treering};
use crate::skip;

/// The three parts of the program.
const PARTS: [&str; 3] = ["first_part", "second_part", "long_part"];

/// Records lives of `life_us` with `options`.
fn record(session: &Session, options: &[&str], kind: &str, count: &str, life_us: &str) -> (Outcome, Flat) {
    let short_lives = SHORT_LIVES.build().expect("the compiler is installed");
    let outcome = session.record_any(options, &program(&short_lives, &[kind, count, life_us]));
    assert!(outcome.status.success(), "{outcome:#?}");
    (outcome, session.flat(&[]))
}

/// The true time of a part.
fn truth(outcome: &Outcome, part: &str) -> f64 {
    let time = outcome.stdout.lines().find_map(|line| line.strip_prefix(part)?.trim().parse().ok());
    time.unwrap_or_else(|| panic!("no {part} in {outcome:#?}"))
}

/// Checks that every part has its true share of what the three and what was not sampled cost.
fn assert_parts(outcome: &Outcome, flat: &Flat, told: &str) {
    let truths: f64 = PARTS.iter().map(|part| truth(outcome, part)).sum();
    let cost = |name: &str| flat.cost(name).total;
    let known: f64 = PARTS.iter().map(|part| cost(part)).sum::<f64>() + cost("[not sampled]");
    for part in PARTS {
        let share = truth(outcome, part) / truths * known;
        let (low, high) = flat.total_bounds(part);
        let (below, above) = (2.0 * (cost(part) - low), 2.0 * (high - cost(part)));
        let holds = cost(part) - below <= share && share <= cost(part) + above;
        assert!(
            holds,
            "{told}: {part} cost {share}, not {} in {low}..{high}\n{:#}",
            cost(part),
            flat.0["run"]
        );
    }
}

#[test]
fn short_lives_have_their_share_of_the_run() {
    for (kind, count, life_us) in [
        ("thread", "100", "1000"),
        ("thread", "300", "300"),
        ("process", "100", "1000"),
        ("program", "60", "1000"),
    ] {
        for options in [&[][..], &["--user-only"]] {
            let session = Session::new();
            let (outcome, flat) = record(&session, options, kind, count, life_us);
            assert_parts(&outcome, &flat, &format!("{kind} {life_us} {options:?}"));
        }
    }
}

/// A thread of 1 ms was said to have cost between 3 and 17.
#[test]
fn intervals_of_single_short_threads_hold_no_cost_for_certain() {
    let session = Session::new();
    record(&session, &[], "thread", "300", "300");
    let listed = session.output(&["report", "--threads", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    let threads = listed["threads"].as_array().expect("a list");
    let is_made = |thread: &&serde_json::Value| thread["tid"] != thread["pid"];
    let made: Vec<_> = threads.iter().filter(is_made).collect();
    assert!(!made.is_empty() && made.iter().all(|thread| thread["total_low"] == 0), "{made:#?}");
    assert!(session.output(&["report", "--threads"]).contains("only the sum is known"));
    let one = session.output(&["report", "--thread", &made[0]["tid"].to_string()]);
    assert!(one.contains("the costs of one alone are not known"), "{one}");
    assert!(!session.output(&["report"]).contains("of one alone"));
}

#[test]
fn an_ordinary_user_gets_the_same() {
    let Some(setpriv) = installed("setpriv") else { return skip("setpriv is not installed") };
    let session = Session::new();
    let short_lives = SHORT_LIVES.build().expect("the compiler is installed");
    let file = std::env::temp_dir().join(format!("short-lives-{}.trg", std::process::id()));
    let mut command = std::process::Command::new(setpriv);
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.arg(treering()).args(["record", "-o"]).arg(&file).arg("--").arg(short_lives);
    let output = command.args(["thread", "100", "1000"]).current_dir(std::env::temp_dir()).output();
    let outcome = Outcome::of(output.expect("setpriv runs"));
    if !outcome.status.success() {
        return skip(&format!("another user cannot record here: {}", outcome.stderr));
    }
    let report = session.output(&["report".as_ref(), "--json".as_ref(), file.as_os_str()]);
    let _ = std::fs::remove_file(&file);
    let flat = Flat(serde_json::from_str(&report).expect("JSON"));
    assert_parts(&outcome, &flat, "as another user");
}

#[test]
fn costs_add_up_to_the_processor_time_where_the_kernel_may_be_sampled() {
    let session = Session::new();
    let (_, flat) = record(&session, &["-e", "cpu-clock"], "thread", "50", "1000");
    let run = &flat.0["run"];
    if run["notes"].to_string().contains("the kernel's own frames") {
        return skip("this user may not sample the kernel, whose time the kernel counts");
    }
    let cpu = run["cpu_ns"].as_u64().expect("the program was waited for") as f64;
    let told = flat.run_cost() + flat.loss("unseen_cpu_ns") as f64;
    assert!((told - cpu).abs() < 0.01 * cpu, "{told} is not {cpu}");
    let own: f64 = flat.rows().iter().filter_map(|row| row["self_cost"].as_f64()).sum();
    assert_eq!(own, flat.run_cost());
}

#[test]
fn time_without_a_sample_is_printed() {
    let session = Session::new();
    // A tenth of an interval each: most are not sampled, and none may be.
    let (outcome, flat) = record(&session, &["-F", "100"], "thread", "100", "1000");
    assert!(flat.loss("unsampled_threads") > 50, "{:#}", flat.0["run"]);
    let lives = truth(&outcome, "first_part") + truth(&outcome, "second_part");
    assert!(flat.loss("unsampled_cost") as f64 > 0.5 * lives, "{:#}", flat.0["run"]);
    assert!(outcome.stderr.contains("without a sample"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("a function without a sample may cost up to"), "{}", outcome.stderr);
    let unlisted = flat.0["run"]["unlisted_high"].as_f64().expect("it is sampled");
    assert!(unlisted > 0.2 * lives, "{:#}", flat.0["run"]);
}

#[test]
fn weights_are_no_metric_to_choose_and_survive_merging() {
    let session = Session::new();
    let (_, one) = record(&session, &[], "thread", "60", "1000");
    let merged = session.path("merged.trg").to_string_lossy().into_owned();
    session.output(&["merge", "-o", &merged, "treering.trg", "treering.trg"]);
    let text = session.output(&["report", "--json", &merged]);
    let both = Flat(serde_json::from_str(&text).expect("JSON"));
    assert_eq!(both.run_cost(), 2.0 * one.run_cost());
    let width = |flat: &Flat| {
        let (low, high) = flat.total_bounds("long_part");
        (high - low) / flat.run_cost()
    };
    assert!(width(&both) < width(&one), "twice the samples: {} for {}", width(&both), width(&one));
    let refused = session.run(&["report", "--metric", "cpu-clock unseen"]);
    assert!(refused.error().contains("it has: cpu-clock, samples\n"), "{}", refused.stderr);
}
