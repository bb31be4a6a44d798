//! `treering record`: other events than the processor clock, and blocked time.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use treering_testing::programs::{KNOWN_SHARES, SLEEPER};

use crate::session::{Session, program, quoted};

#[test]
fn several_events_are_several_metrics() {
    let session = Session::new();
    let program = program(&KNOWN_SHARES.build().expect("the compiler is installed"), &["200"]);
    let flat = session.record(&["-e", "cpu-clock", "-e", "page-faults"], &program);
    let names: Vec<_> = metrics(&session);
    for event in ["cpu-clock", "page-faults"] {
        assert!(names.iter().any(|name| name == event), "{names:?}");
    }
    assert!(flat.run_cost() > 0.0);
    let faults = session.flat(&["--metric", "page-faults"]);
    assert!(faults.run_cost() > 0.0, "a program that starts has page faults: {:#}", faults.0["run"]);
}

/// Two runs of a program with 3000 faults in its first thread and 1000 in another.
#[test]
fn occurrences_are_counted_to_the_last_one_whatever_the_interval() {
    let session = Session::new();
    let faults = build(&session, "faults.c");
    let script = format!("{0}; {0}", quoted(&faults));
    let words = [OsString::from("sh"), "-c".into(), script.into()];
    for (options, samples) in [(&["-c", "10"][..], 600..1100), (&["-c", "7", "--fixed-intervals"], 900..1500)]
    {
        let mut all = vec!["-e", "page-faults", "--stack", "1k"];
        all.extend(options);
        session.record(&all, &words);
        let cost = session.flat(&["--metric", "page-faults"]);
        // Each run adds the faults of its loader, and the shell has some.
        let count = cost.run_cost();
        assert!((8000.0..9500.0).contains(&count), "{options:?}: {:#}", cost.0["run"]);
        let losses = &cost.0["run"]["losses"];
        assert_eq!(losses["unknown_threads"], 0, "{options:?}: {losses:#}");
        let taken = losses["samples"].as_u64().expect("a number");
        assert!(samples.contains(&taken), "{options:?}: {taken} samples of {count}");
    }
}

/// The names of the metrics of `treering.trg`, as `dump` tells them.
fn metrics(session: &Session) -> Vec<String> {
    let dump = session.output(&["dump", "treering.trg"]);
    let mut names = Vec::new();
    for line in dump.lines() {
        let frame: serde_json::Value = serde_json::from_str(line).expect("dump prints a JSON value a line");
        collect_metrics(&frame, &mut names);
    }
    names
}

/// Gathers `metrics[].name` wherever it stands.
fn collect_metrics(value: &serde_json::Value, names: &mut Vec<String>) {
    let Some(object) = value.as_object() else { return };
    for (key, value) in object {
        if key == "metrics" {
            let metrics = value.as_array().into_iter().flatten();
            names.extend(metrics.filter_map(|metric| metric["name"].as_str().map(str::to_owned)));
        }
        collect_metrics(value, names);
    }
}

#[test]
fn an_event_that_does_not_exist_is_refused_with_a_hint() {
    let session = Session::new();
    let outcome = session.run(&["record", "-e", "no-such-event", "--", "true"]);
    let said = outcome.error();
    assert!(said.contains("no-such-event") && said.contains("hint: "), "{said}");
}

#[test]
fn blocked_time_is_charged_to_where_the_program_waits() {
    let session = Session::new();
    let program = program(&SLEEPER.build().expect("the compiler is installed"), &[]);
    let outcome = session.record_any(&["--off-cpu"], &program);
    assert!(outcome.status.success(), "{outcome:#?}");
    let names = metrics(&session);
    let blocked = names.iter().find(|name| name.contains("off-cpu") || name.contains("blocked"));
    let blocked = blocked.unwrap_or_else(|| panic!("no metric of blocked time in {names:?}"));
    let flat = session.flat(&["--metric", blocked, "--thread", "sleeper"]);
    let totals = ["sleep_here", "wait_for_pipe", "wait_for_mutex"].map(|name| flat.cost(name).total);
    let all: f64 = totals.iter().sum();
    for (total, truth) in totals.iter().zip([0.5, 0.333, 0.167]) {
        assert!((total / all - truth).abs() < 0.12, "{totals:?}: {:#}", flat.0);
    }
    // Five rounds of 120 ms.
    assert!((0.4e9..2.0e9).contains(&all), "{all} ns blocked");
}

/// Compiles a program of this folder's.
fn build(session: &Session, name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command_line/programs").join(name);
    let program = session.path("program");
    let built = Command::new("cc").args(["-O0", "-pthread", "-o"]).arg(&program).arg(source).status();
    assert!(built.expect("a compiler").success());
    program
}
