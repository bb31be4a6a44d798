//! `treering stat`: counts of events, compared with those of `perf stat`.

use std::collections::HashMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;
use treering_testing::programs::installed;

use crate::session::{Outcome, Session, words};
use crate::skip;

/// Runs `stat --json` and returns the document with the outcome.
fn stat(session: &Session, options: &[&str], program: &[&str]) -> (Value, Outcome) {
    let mut all = words(&["stat", "--json"]);
    all.extend(words(options));
    all.push("--".into());
    all.extend(words(program));
    let outcome = session.run(&all);
    let document = serde_json::from_str(&outcome.stderr);
    (document.unwrap_or_else(|error| panic!("not JSON: {error}\n{outcome:#?}")), outcome)
}

/// An event's row.
fn event<'a>(document: &'a Value, name: &str) -> &'a Value {
    let events = document["events"].as_array().expect("a list of events");
    events.iter().find(|event| event["event"] == name).unwrap_or_else(|| panic!("no {name}: {document:#}"))
}

/// The mean of an event by the kernel's own count; nothing if this user may not count it.
fn counted(document: &Value, name: &str) -> Option<f64> {
    let event = event(document, name);
    (event["source"] == "perf").then(|| event["value"]["mean"].as_f64().expect("a number"))
}

/// The counts of `perf stat`, by event; nothing if it does not count here.
fn perf_stat(events: &str, program: &[&str]) -> Option<HashMap<String, f64>> {
    let perf = installed("perf")?;
    let run = Command::new(perf).args(["stat", "-x", ";", "-e", events, "--"]).args(program).output().ok()?;
    let text = String::from_utf8_lossy(&run.stderr).into_owned();
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split(';').collect();
        Some(((*cells.get(2)?).to_owned(), cells[0].parse().ok()?))
    });
    let counts: HashMap<String, f64> = rows.collect();
    (run.status.success() && !counts.is_empty()).then_some(counts)
}

/// Starts three programs and writes four lines: system calls of four processes, always the same number.
const SHELL: [&str; 3] = ["sh", "-c", "for word in a b c; do /bin/echo $word; done; echo d"];

#[test]
fn perf_stat_counts_the_same_events() {
    let session = Session::new();
    let events =
        "raw_syscalls:sys_enter,syscalls:sys_enter_write,syscalls:sys_enter_execve,page-faults,minor-faults";
    let Some(theirs) = perf_stat(events, &SHELL) else { return skip("perf counts no tracepoints here") };
    let (ours, _) = stat(&session, &["-e", events], &SHELL);
    // The program does these whatever the machine does: each word is written by a child, but for the last.
    for (name, least) in [("syscalls:sys_enter_write", 4.0), ("syscalls:sys_enter_execve", 3.0)] {
        assert_eq!(counted(&ours, name), Some(theirs[name]), "{name}: {ours:#}");
        assert!(theirs[name] >= least, "{name}: {theirs:?}");
    }
    // Signals of children come at any time, and have calls of their own.
    // Addresses are random, and so is the number of pages by a few.
    for name in ["raw_syscalls:sys_enter", "page-faults", "minor-faults"] {
        let count = counted(&ours, name).expect("perf counts it too");
        assert!((count - theirs[name]).abs() <= 0.1 * theirs[name], "{name}: {count}, perf {}", theirs[name]);
    }
}

#[test]
fn an_event_that_this_machine_lacks_has_no_number() {
    let session = Session::new();
    let (document, _) = stat(&session, &["-e", "page-faults,rffffffffffffffff"], &["true"]);
    let lacking = event(&document, "rffffffffffffffff");
    assert!(lacking["state"] == "not supported here" || lacking["state"] == "not permitted", "{lacking:#}");
    assert_eq!((&lacking["value"], &lacking["rate"]), (&Value::Null, &Value::Null));
    assert_ne!(event(&document, "page-faults")["value"], Value::Null);
}

#[test]
fn a_switch_that_occurs_in_the_kernel_only_is_not_0_in_user_mode() {
    let session = Session::new();
    let (document, _) = stat(&session, &["-e", "context-switches:u"], &["sleep", "0.01"]);
    assert_eq!(event(&document, "context-switches:u")["state"], "occurs in the kernel only");
}

#[test]
fn several_runs_have_a_mean_between_its_bounds() {
    let session = Session::new();
    let (document, _) = stat(&session, &["-r", "4", "-e", "task-clock"], &["true"]);
    let clock = event(&document, "task-clock");
    let samples: Vec<f64> =
        clock["samples"].as_array().expect("samples").iter().filter_map(Value::as_f64).collect();
    let mean = clock["value"]["mean"].as_f64().expect("a mean");
    assert_eq!(samples.len(), 4);
    assert!((samples.iter().sum::<f64>() / 4.0 - mean).abs() < 1.0, "{clock:#}");
    let [low, high] = ["low", "high"].map(|bound| clock["value"][bound].as_f64().expect("a bound"));
    assert!(low <= mean && mean <= high, "{clock:#}");
    assert_eq!((&document["runs"], &document["ends"][3]), (&Value::from(4), &Value::from("exit 0")));
}

#[test]
fn intervals_add_up_to_the_whole() {
    let session = Session::new();
    let script = "for word in a b c d; do /bin/true; sleep 0.06; done";
    let arguments = ["stat", "--json", "-I", "50", "-e", "page-faults,task-clock", "--", "sh", "-c", script];
    let outcome = session.run(&arguments);
    let lines: Vec<Value> =
        outcome.stderr.lines().map(|line| serde_json::from_str(line).expect("JSON lines")).collect();
    let (whole, parts) = lines.split_last().expect("a line for the whole run");
    if event(whole, "page-faults")["source"] != "perf" {
        return skip("the kernel lets this user count nothing");
    }
    assert!(parts.len() >= 2, "{outcome:#?}");
    for name in ["page-faults", "task-clock"] {
        let sum: f64 =
            parts.iter().map(|part| event(part, name)["value"]["mean"].as_f64().unwrap_or(0.0)).sum();
        let whole = event(whole, name)["value"]["mean"].as_f64().expect("counted");
        assert!((sum - whole).abs() < 0.5, "{name}: {sum} {whole}");
    }
    assert!(parts.windows(2).all(|pair| pair[0]["until_ns"] == pair[1]["from_ns"]), "{parts:#?}");
}

#[test]
fn the_programs_own_end_is_passed_on() {
    let session = Session::new();
    let (document, outcome) = stat(&session, &[], &["sh", "-c", "exit 3"]);
    assert_eq!((outcome.shell_status(), &document["ends"][0]), (3, &Value::from("exit 3")));
    let (document, outcome) = stat(&session, &["-r", "5"], &["sh", "-c", "kill -INT $$"]);
    assert_eq!((outcome.shell_status(), &document["ends"][0]), (130, &Value::from("SIGINT")));
    // Whoever interrupts wants no further run.
    assert_eq!(document["runs"], 1, "{document:#}");
}

#[test]
fn a_running_process_is_counted_with_the_children_that_it_makes() {
    let session = Session::new();
    let script = "read go; for word in a b c; do /bin/true; done; read end";
    let mut child = Command::new("sh");
    let mut child = child.args(["-c", script]).stdin(Stdio::piped()).spawn().expect("a shell");
    let pid = child.id().to_string();
    let mut input = child.stdin.take().expect("a pipe");
    let arguments = ["stat", "-p", &pid, "--json", "-I", "10", "-e", "page-faults,task-clock"];
    let mut counting = session.command(&arguments);
    let mut counting = counting.spawn().expect("treering runs");
    // Once an interval is there the counters are.
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(counting.stderr.take().expect("a pipe")));
    let first = lines.next().expect("a line").expect("text");
    input.write_all(b"go\nend\n").expect("the shell reads");
    drop(input);
    assert!(child.wait().expect("our child").success());
    let last = lines.map_while(Result::ok).last().unwrap_or(first);
    assert!(counting.wait().expect("our child").success());
    let whole: Value = serde_json::from_str(&last).expect("JSON");
    assert_eq!(whole["pid"].to_string(), pid, "{whole:#}");
    match counted(&whole, "page-faults") {
        // Each of the three programs has tens.
        Some(faults) => assert!(faults > 60.0, "{whole:#}"),
        None => skip("the kernel lets this user count nothing"),
    }
}

#[test]
fn bad_input_is_refused_with_a_hint() {
    let session = Session::new();
    let cases: &[(&[&str], i32, &str)] = &[
        (&["-e", "page-fualts", "--", "true"], 1, "did you mean page-faults?"),
        (&["-e", "{cs", "--", "true"], 1, "no closing brace"),
        (&["-e", "cs,,faults", "--", "true"], 1, "empty name"),
        (&["-I", "0", "--", "true"], 2, "--interval"),
        (&["-r", "0", "--", "true"], 2, "--repeat"),
        (&["--", "/no/such/program"], 127, "check the path"),
        (&["-p", "4194304"], 1, "there is no process"),
        (&["-o", "/no/such/folder/stat", "--", "true"], 1, "mkdir"),
    ];
    for (arguments, status, said) in cases {
        let all: Vec<&str> = ["stat"].iter().chain(*arguments).copied().collect();
        let outcome = session.run(&all);
        assert!(outcome.error().contains(said), "{arguments:?}: {outcome:#?}");
        assert_eq!(outcome.shell_status(), *status, "{arguments:?}");
    }
}

#[test]
fn a_file_of_something_else_is_not_replaced() {
    let session = Session::new();
    let run = |more: &[&str]| {
        session.run(&[&["stat", "-o", "out", "-e", "page-faults"], more, &["--", "true"]].concat())
    };
    std::fs::write(session.path("out"), "my letter").expect("a file");
    assert!(run(&[]).error().contains("--force"));
    assert_eq!(std::fs::read_to_string(session.path("out")).expect("a file"), "my letter");
    for form in [&["--force"][..], &["--csv"], &["--json"], &[]] {
        assert!(run(form).status.success(), "{form:?}");
    }
    let text = std::fs::read_to_string(session.path("out")).expect("a file");
    assert!(text.starts_with("treering stat: true") && text.contains("page-faults"), "{text}");
}
