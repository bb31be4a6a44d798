//! Programs that profile themselves, from the compiler to every view and format.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::profile::Flat;
use crate::runtime::{Program, Running, compile_for_gprof, run_in};
use crate::session::Session;

/// How often each function was called, by name; `main`, whose caller is not instrumented, left out.
type Calls = BTreeMap<String, u64>;

/// How often each caller called each callee.
type Arcs = BTreeMap<(String, String), u64>;

const ROUNDS: &str = "200";

/// The calls of `programs/calls.c` in a round, and 200 times.
fn expected_calls(rounds: u64) -> Calls {
    // is_even(n) and is_odd(n) call each other n times, n from 0 to 8.
    let evens: u64 = (0..rounds).map(|round| round % 9 / 2 + 1).sum();
    let odds: u64 = (0..rounds).map(|round| (round % 9).div_ceil(2)).sum();
    let calls = [
        ("solve", rounds),
        ("fibonacci", 177 * rounds),
        ("leaf", (89 + 1 + 7) * rounds),
        ("by_pointer", rounds),
        ("is_even", evens),
        ("is_odd", odds),
    ];
    calls.map(|(name, calls)| (name.to_owned(), calls)).into()
}

fn calls(flat: &Value) -> Calls {
    let functions = flat["functions"].as_array().expect("it lists functions");
    let row = |row: &Value| {
        let name = row["function"].as_str().expect("a function has a name").to_owned();
        (name, row["calls"].as_u64().expect("calls were counted"))
    };
    functions.iter().map(row).filter(|(name, calls)| name != "main" && *calls > 0).collect()
}

fn arcs(graph: &Value) -> Arcs {
    let mut arcs = Arcs::new();
    for arc in graph["arcs"].as_array().expect("it lists arcs") {
        let name = |key: &str| arc[key]["function"].as_str().or(arc[key].as_str()).map(str::to_owned);
        let (Some(caller), Some(callee)) = (name("caller"), name("callee")) else { continue };
        arcs.insert((caller, callee), arc["calls"].as_u64().expect("calls were counted"));
    }
    arcs
}

/// The calls and arcs of gprof's call graph.
fn gprof(session: &Session, program: &Path) -> (Calls, Arcs) {
    let mut command = Command::new("gprof");
    command.args(["-q", "-b"]).arg(program).arg(session.path("gmon.out"));
    let output = command.output().expect("gprof is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("gprof writes text");
    let (mut calls, mut arcs) = (Calls::new(), Arcs::new());
    for entry in text.split("-----------------------------------------------\n") {
        read_entry(entry, &mut calls, &mut arcs);
    }
    (calls, arcs)
}

/// Reads an entry: callers, the function with its number in front, callees.
fn read_entry(entry: &str, calls: &mut Calls, arcs: &mut Arcs) {
    if entry.contains("as a whole") {
        return;
    }
    let lines: Vec<&str> = entry.lines().collect();
    let Some(at) = lines.iter().position(|line| line.starts_with('[')) else { return };
    let Some((name, own, recursive)) = counted(lines[at]) else { return };
    calls.insert(name.clone(), own + recursive);
    for (caller, count, _) in lines[..at].iter().filter_map(|line| counted(line)) {
        arcs.insert((caller, name.clone()), count);
    }
    for (callee, count, _) in lines[at + 1..].iter().filter_map(|line| counted(line)) {
        arcs.insert((name.clone(), callee), count);
    }
}

/// The name in a line, and the count before it, as `8`, as `8/20` or as `8+4`; nothing for a line
/// of another kind, such as that of a function that was not called by one that is counted.
fn counted(line: &str) -> Option<(String, u64, u64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_name = |word: &&str| word.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let at = words.iter().position(is_name)?;
    let mut numbers = words.get(at.checked_sub(1)?)?.split(['/', '+']);
    let count = numbers.next()?.parse().ok()?;
    let recursive = numbers.next().filter(|_| words[at - 1].contains('+'));
    Some((words[at].to_owned(), count, recursive.and_then(|number| number.parse().ok()).unwrap_or(0)))
}

fn instrumented(rounds: &str) -> Option<Session> {
    let session = Session::new();
    let program = Program::Calls.compile(&session)?;
    run_in(&session, &program, &[rounds]);
    Some(session)
}

#[test]
fn calls_and_arcs_are_those_that_gprof_counts() {
    let Some(session) = instrumented(ROUNDS) else { return };
    let ours = (calls(&session.json("--flat", &[])), arcs(&session.json("--callgraph", &[])));
    assert_eq!(ours.0, expected_calls(200));
    let Some(counted) = compile_for_gprof(&session) else { return };
    run_in(&session, &counted, &[ROUNDS]);
    assert_eq!(ours, gprof(&session, &counted));
}

#[test]
fn views_name_functions_without_a_warning() {
    let Some(session) = instrumented("20") else { return };
    for view in ["--flat", "--callgraph", "--tree", "--callers"] {
        let outcome = session.run(&["report", view, "--min", "0"]);
        assert!(outcome.status.success(), "{outcome:#?}");
        assert_eq!(outcome.stderr, "", "names are looked up as usual");
        for name in ["solve", "fibonacci", "by_pointer"] {
            assert!(outcome.stdout.contains(name), "{view} has no {name}: {}", outcome.stdout);
        }
    }
    let flat = session.json("--flat", &[]);
    let leaf = flat["functions"].as_array().and_then(|all| all.iter().find(|row| row["function"] == "leaf"));
    let leaf = leaf.expect("static functions have names too");
    assert!(leaf["file"].as_str().is_some_and(|file| file.ends_with("calls.c")), "{leaf}");
    assert!(leaf["line"].as_u64().is_some_and(|line| line > 10), "{leaf}");
}

#[test]
fn a_program_without_symbols_keeps_its_functions_apart() {
    let session = Session::new();
    let Some(program) = Program::Calls.compile(&session) else { return };
    let status = Command::new("strip").arg(&program).status();
    assert!(status.is_ok_and(|status| status.success()), "binutils come with the compiler");
    run_in(&session, &program, &["3"]);
    let outcome = session.run(&["report", "--flat", "--json"]);
    assert!(outcome.stderr.contains("stripped"), "{outcome:#?}");
    let flat: Value = serde_json::from_str(&outcome.stdout).expect("it is JSON");
    let mut counts: Vec<u64> = calls(&flat).into_values().collect();
    let mut expected: Vec<u64> = expected_calls(3).into_values().chain([1]).collect();
    counts.sort_unstable();
    expected.sort_unstable();
    assert_eq!(counts, expected, "main has no name here, and is listed with its one call");
}

#[test]
fn a_merge_of_two_runs_has_the_calls_of_both() {
    let session = Session::new();
    let Some(program) = Program::Calls.compile(&session) else { return };
    for (rounds, file) in [("5", "first.trg"), ("7", "second.trg")] {
        run_in(&session, &program, &[rounds]);
        std::fs::rename(session.path("treering.trg"), session.path(file)).expect("it was just written");
    }
    session.output(&["merge", "first.trg", "second.trg", "-o", "treering.trg"]);
    let merged = calls(&session.json("--flat", &[]));
    let (five, seven) = (expected_calls(5), expected_calls(7));
    let sum: Calls = five.iter().map(|(name, calls)| (name.clone(), calls + seven[name])).collect();
    assert_eq!(merged, sum);
}

#[test]
fn a_killed_program_has_lost_no_call() {
    let session = Session::new();
    let Some(program) = Program::Calls.compile(&session) else { return };
    let mut running = Running::start(&session, &program, &["50", "wait"]);
    let outcome = session.run(&["report", "--flat", "--json"]);
    assert!(outcome.stderr.contains("still running"), "{outcome:#?}");
    assert!(outcome.stderr.contains(&format!("treering watch {}", running.pid())), "{outcome:#?}");
    running.kill();
    let outcome = session.run(&["report", "--flat", "--json"]);
    assert!(outcome.stderr.contains("no call is missing"), "{outcome:#?}");
    let flat = Flat(serde_json::from_str(&outcome.stdout).expect("it is JSON"));
    assert_eq!(calls(&flat.0), expected_calls(50));
    assert_eq!(flat.loss("open_activations"), 1, "main had not ended");
}

#[test]
fn open_functions_of_a_running_program_count_up_to_now() {
    let session = Session::new();
    let Some(program) = Program::Calls.compile(&session) else { return };
    let _running = Running::start(&session, &program, &["1", "wait"]);
    let total = |flat: Flat| flat.cost("main").total;
    let before = total(session.flat(&[]));
    // The time between the two readings, which a third one makes longer.
    let between = std::time::Instant::now();
    session.flat(&[]);
    let between = between.elapsed().as_nanos() as f64;
    let after = total(session.flat(&[]));
    // The length of a tick is known to some parts in ten thousand.
    let waited = after - before;
    assert!(waited >= 0.99 * between, "main waits for {between} ns: {before} ns, then {after} ns");
}

/// The calls of callees in a callgrind file, by name.
fn callgrind_calls(text: &str) -> Calls {
    let (mut names, mut calls, mut callee) = (BTreeMap::new(), Calls::new(), String::new());
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("cfn=").or(line.strip_prefix("fn=")) {
            let (number, name) = name.split_once(' ').unwrap_or((name, ""));
            let known = names.entry(number.to_owned()).or_insert_with(|| name.to_owned());
            callee.clone_from(known);
        } else if let Some(count) = line.strip_prefix("calls=") {
            let count = count.split(' ').next().and_then(|count| count.parse::<u64>().ok());
            *calls.entry(callee.clone()).or_default() += count.expect("a count is a number");
        }
    }
    calls
}

#[test]
fn exports_hold_the_costs_of_reports_or_those_as_measured_and_say_so() {
    let Some(session) = instrumented("20") else { return };
    for (option, said) in [(None, "is subtracted"), (Some("--raw"), "is not subtracted")] {
        let options: Vec<&str> = option.into_iter().collect();
        let reported = session.flat(&options);
        for (format, file) in [("folded", "x.folded"), ("pprof", "x.pb.gz"), ("callgrind", "x.callgrind")] {
            let all = [&["export", "treering.trg", "--to", format, "-o", file], &options[..]].concat();
            let outcome = session.run(&all);
            assert!(outcome.status.success(), "{outcome:#?}");
            assert!(outcome.stderr.contains(said), "{outcome:#?}");
            let back = session.output(&["report", file, "--flat", "--json"]);
            let back = Flat(serde_json::from_str(&back).expect("it is JSON"));
            assert_eq!(back.run_cost(), reported.run_cost(), "{format} {option:?}");
            for name in ["leaf", "fibonacci", "solve"] {
                assert_eq!(back.cost(name).own, reported.cost(name).own, "{format} {option:?}: {name}");
            }
        }
    }
    let text = std::fs::read_to_string(session.path("x.callgrind")).expect("names here are UTF-8");
    assert_eq!(callgrind_calls(&text), expected_calls(20));
}

#[test]
fn memory_points_are_not_exported_as_costs() {
    let session = Session::new();
    let Some(program) = Program::Names.compile(&session) else { return };
    run_in(&session, &program, &[]);
    let outcome = session.run(&["export", "treering.trg", "--to", "folded", "--metric", "resident memory"]);
    assert!(outcome.error().contains("it has: time"), "{outcome:#?}");
}

/// Names that the program gave, as they should be read back: what is no UTF-8 is replaced.
const NAMES: [&str; 11] = [
    "\"quoted\" and 'quoted'",
    "two\nlines",
    "not UTF-8: \u{fffd}\u{fffd}\u{fffd}",
    "back\\slash \\n",
    "semi;colon 42",
    "calls=7 0\nfn=(1) forged\n0 99999999999",
    "\u{1b}[31mred\u{1b}[0m\r\u{7}",
    "<b>&amp;</b>",
    "(3) compressed",
    "  blanks  ",
    "naïve ☃",
];

fn names(flat: &Value) -> Vec<&str> {
    let functions = flat["functions"].as_array().expect("it lists functions");
    functions.iter().filter_map(|row| row["function"].as_str()).collect()
}

#[test]
fn names_of_any_bytes_are_shown_safely() {
    let session = Session::new();
    let Some(program) = Program::Names.compile(&session) else { return };
    run_in(&session, &program, &[]);
    let flat = session.json("--flat", &[]);
    for name in NAMES {
        assert!(names(&flat).contains(&name), "{name:?} is not in {:?}", names(&flat));
    }
    for view in ["--flat", "--callgraph", "--tree", "--callers"] {
        let text = session.output(&["report", view, "--min", "0"]);
        let control = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(control), "{view}: {text:?}");
        assert!(!text.lines().any(|line| line.starts_with("fn=") || line == "lines"), "{view}: {text}");
    }
    let watched = session.output(&["watch"]);
    assert!(watched.contains("two\\nlines") && !watched.contains('\u{1b}'), "{watched:?}");
}

#[test]
fn names_of_any_bytes_do_not_change_what_exports_say() {
    let session = Session::new();
    let Some(program) = Program::Names.compile(&session) else { return };
    run_in(&session, &program, &[]);
    let reported = session.flat(&[]);
    let functions = reported.rows().len();
    for (format, file) in [("folded", "x.folded"), ("pprof", "x.pb.gz"), ("callgrind", "x.callgrind")] {
        session.output(&["export", "treering.trg", "--to", format, "-o", file]);
        let back: Value =
            serde_json::from_str(&session.output(&["report", file, "--flat", "--json"])).expect("it is JSON");
        let back = Flat(back);
        assert_eq!(back.run_cost(), reported.run_cost(), "{format}");
        assert_eq!(back.rows().len(), functions, "{format}: {:?}", names(&back.0));
        assert_eq!(back.cost("naïve ☃").own, reported.cost("naïve ☃").own, "{format}");
        assert!(!names(&back.0).contains(&"forged"), "{format}");
    }
    let folded = std::fs::read_to_string(session.path("x.folded")).expect("it is UTF-8");
    for line in folded.lines() {
        let weight = line.rsplit_once(' ').and_then(|(_, weight)| weight.parse::<u64>().ok());
        assert!(weight.is_some(), "{line:?}");
    }
}
