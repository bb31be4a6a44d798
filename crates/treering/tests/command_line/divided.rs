//! Functions that the compiler divided: what goes from one piece of a function to another is no call, by whatever way
//! calls are counted.
//!
//! The counts that the compiler itself puts into a program (gcov) are of functions as they are written.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::session::{Session, program, words};
use crate::skip;

/// With these, the function jumps to its piece, or calls it.
const WAYS: [&[&str]; 2] = [&[], &["-fno-optimize-sibling-calls"]];

const FILES: [&str; 2] = ["divided.c", "divided_main.c"];

/// Compiles the program; nothing if there is no gcc, which is said.
fn compile(session: &Session, name: &str, options: &[&str]) -> Option<PathBuf> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command_line/programs"));
    let path = session.path(name);
    let mut gcc = Command::new("gcc");
    gcc.current_dir(session.path("")).arg("-g").args(options).arg("-o").arg(&path);
    let made = gcc.args(FILES.map(|file| folder.join(file))).output();
    let is_made = made.is_ok_and(|made| made.status.success());
    if !is_made {
        skip("there is no gcc that builds the program");
    }
    is_made.then_some(path)
}

/// The same, with the function divided; nothing if this gcc does not do so, which is said.
fn divided(session: &Session, name: &str, options: &[&str]) -> Option<PathBuf> {
    let path = compile(session, name, &[&["-O2"], options].concat())?;
    let binary = std::fs::read(&path).expect("the program is there");
    let is_divided = contains(&binary, b"visit.part.0");
    if !is_divided {
        skip("this gcc does not divide the function");
    }
    is_divided.then_some(path)
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// How often a function is called, and by which functions, itself included.
fn calls(session: &Session, name: &str) -> (u64, Vec<(String, u64)>) {
    let graph = session.json("--callgraph", &["--min", "0"]);
    let row = row(&graph, name);
    let number = |row: &Value, key: &str| row[key].as_u64().unwrap_or(0);
    let caller = |row: &Value| (row["caller"].as_str().unwrap_or_default().to_owned(), number(row, "calls"));
    let callers = row["callers"].as_array().expect("callers").iter().map(caller);
    let mut callers: Vec<_> = callers.filter(|(_, calls)| *calls > 0).collect();
    callers.sort();
    (all_calls(row), callers)
}

/// The only row of a function in a call graph.
fn row<'v>(graph: &'v Value, name: &str) -> &'v Value {
    let functions = graph["functions"].as_array().expect("functions");
    let mut found = functions.iter().filter(|row| row["function"] == name);
    let row = found.next().unwrap_or_else(|| panic!("no {name}: {graph:#}"));
    assert!(found.next().is_none(), "{name} has two entries: {graph:#}");
    row
}

/// How often a function was called, by itself as well.
fn all_calls(row: &Value) -> u64 {
    row["calls"].as_u64().expect("calls were counted")
}

/// Counts of gcc itself for the function of the source; nothing without gcov, which is said.
fn of_compiler(session: &Session) -> Option<u64> {
    let covered = compile(session, "covered", &["--coverage", "-O0"])?;
    let ran = Command::new(&covered).current_dir(session.path("")).status().expect("it runs");
    assert!(ran.success());
    let gcov =
        Command::new("gcov").current_dir(session.path("")).args(["-t", "covered-divided.gcda"]).output();
    let Ok(gcov) = gcov else {
        skip("there is no gcov");
        return None;
    };
    let text = String::from_utf8_lossy(&gcov.stdout).into_owned();
    let line = text.lines().find(|line| line.ends_with(":void visit(int n)"));
    let count = line.and_then(|line| line.split(':').next()?.trim().parse().ok());
    Some(count.unwrap_or_else(|| panic!("no count of visit: {text}")))
}

#[test]
fn counts_of_calls_are_those_of_the_source() {
    let session = Session::new();
    let Some(expected) = of_compiler(&session) else { return };
    assert_eq!(expected, 2250);
    for (at, way) in WAYS.iter().enumerate() {
        let Some(divided) = divided(&session, &format!("divided{at}"), way) else { return };
        for tree in [false, true] {
            let mut all = words(&["count", "--force"]);
            all.extend(words(if tree { &["--tree"][..] } else { &[] }));
            all.push("--".into());
            all.extend(program(&divided, &["1000"]));
            session.output(&all);
            let (calls, callers) = calls(&session, "visit");
            let told = callers.iter().map(|(_, calls)| calls).sum::<u64>();
            assert_eq!((calls, told), (expected, expected), "{way:?}, tree: {tree}: {callers:?}");
            if !tree {
                let expected = [("main", 1000), ("pass_on", 1000), ("visit", 250)];
                let callers: Vec<_> = callers.iter().map(|(name, calls)| (name.as_str(), *calls)).collect();
                assert_eq!(callers, expected, "{way:?}");
                check_exports(&session);
            }
        }
    }
}

/// Files for other programs say the same of the function.
fn check_exports(session: &Session) {
    let export = |format: &str| session.output(&["export", "--to", format, "-o", "-", "treering.trg"]);
    let lcov = export("lcov");
    assert!(lcov.lines().any(|line| line == "FNDA:2250,visit"), "{lcov}");
    let gcov: Value = serde_json::from_str(&export("gcov-json")).expect("valid JSON");
    let files = gcov["files"].as_array().expect("files");
    let functions = files.iter().flat_map(|file| file["functions"].as_array().expect("functions"));
    let visits: Vec<_> = functions.filter(|function| function["name"] == "visit").collect();
    assert!(visits.len() == 1 && visits[0]["execution_count"] == 2250, "{visits:#?}");
}

#[test]
fn calls_that_the_program_reports_itself_are_those_of_the_source() {
    let session = Session::new();
    for (at, way) in WAYS.iter().enumerate() {
        let name = format!("reporting{at}");
        let Some(_) = divided(&session, &name, &[&["-pg"], *way].concat()) else { return };
        let ran = Command::new(session.path(&name)).current_dir(session.path("")).status();
        assert!(ran.expect("it runs").success());
        let all = ["report", "--callgraph", "--json", "--min", "0", "--program", &name, "gmon.out"];
        let graph: Value = serde_json::from_str(&session.output(&all)).expect("valid JSON");
        assert_eq!(all_calls(row(&graph, "visit")), 2250, "{way:?}: {graph:#}");
    }
}

#[test]
fn a_sampled_function_is_not_its_own_caller() {
    let session = Session::new();
    let Some(divided) = divided(&session, "divided", WAYS[1]) else { return };
    session.record(&["--no-inlines"], &program(&divided, &["20000000"]));
    let tree = session.json("--tree", &["--min", "0"]);
    let nodes = tree["nodes"].as_array().expect("nodes");
    let is_visit = |row: &Value| row["function"] == "visit";
    let total = |row: &Value| row["total_cost"].as_u64().expect("a cost");
    let (mut within, mut all) = (0, 0);
    for pair in nodes.windows(2).filter(|pair| is_visit(&pair[1])) {
        // The first child stands behind its caller.
        match is_visit(&pair[0]) && pair[0]["depth"].as_u64() < pair[1]["depth"].as_u64() {
            true => within += total(&pair[1]),
            false => all += total(&pair[1]),
        }
    }
    // It calls itself in a quarter of the calls by `main`, for less work than `main` wants, and never for `pass_on`.
    assert!(all > 0 && within * 3 < all, "{within} of {all}: {tree:#}");
}
