//! `examples/profilers/demo.cc`, whose calls are known beforehand, under each profiler.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::program::{library, project, written};

/// Calls by caller and callee.
type Calls = BTreeMap<(String, String), u64>;

/// The calls that `examples/profilers/README.md` predicts.
fn predicted(n: u64) -> Calls {
    let call = |from: &str, to: &str, count| ((from.to_owned(), to.to_owned()), count);
    [
        call("parent", "new_integer", n),
        call("new_integer", "file_io", n * (n + 1)),
        call("file_io", "new_integer", n * n),
        call("parent", "list_push_back", n),
        call("list_push_back", "list_push_back", n * n),
    ]
    .into()
}

const FUNCTIONS: [&str; 4] = ["parent", "new_integer", "file_io", "list_push_back"];

/// Builds the demo in a folder of its own and returns that folder.
fn build(way: &str, flags: &[&str], library: Option<&Path>) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("profilers").join(way);
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).unwrap();
    let mut command = Command::new("c++");
    command.args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-fno-optimize-sibling-calls"]);
    command.args(flags).arg("-I").arg(project().join("hooks/c/include"));
    command.arg(project().join("examples/profilers/demo.cc")).args(library);
    command.args(["-lpthread", "-ldl", "-lm", "-lrt", "-o"]);
    written(command.arg(folder.join("demo")))?;
    Some(folder)
}

fn demo(folder: &Path, n: u64) -> Option<String> {
    written(Command::new(folder.join("demo")).args([&n.to_string(), "1"]).current_dir(folder))
}

/// The function that a C++ name is of, if it is one of the demo's.
fn function(name: &str) -> Option<String> {
    let plain = name.split(['(', '\'']).next().unwrap_or_default().trim();
    FUNCTIONS.contains(&plain).then(|| plain.to_owned())
}

#[test]
fn it_runs_without_a_profiler_and_leaves_nothing_behind() {
    let Some(folder) = build("none", &["-DBENCH_DISABLED"], None) else { return };
    assert_eq!(demo(&folder, 3).as_deref(), Some(""));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

/// The arcs in the listing of gprof: of each entry, the lines below that of the function itself.
fn gprof_calls(listing: &str) -> Calls {
    let mut calls = Calls::new();
    for entry in listing.split("-----------------------------------------------") {
        let mut caller = None;
        for line in entry.lines() {
            let own = line.starts_with('[');
            let name = line.split_whitespace().find_map(function);
            if own {
                caller = name;
            } else if let (Some(caller), Some(callee)) = (&caller, name) {
                let count =
                    line.split_whitespace().find(|word| word.parse::<f64>().is_err() || !word.contains('.'));
                let count = count.and_then(|word| word.split('/').next()).unwrap_or_default();
                calls.insert((caller.clone(), callee), count.parse().unwrap());
            }
        }
    }
    calls
}

#[test]
fn gprof_counts_the_predicted_calls() {
    let Some(folder) = build("gprof", &["-DBENCH_DISABLED", "-pg"], None) else { return };
    for n in [1, 4] {
        demo(&folder, n);
        let Some(listing) = written(Command::new("gprof").args(["-b", "-q", "demo"]).current_dir(&folder))
        else {
            return;
        };
        assert_eq!(gprof_calls(&listing), predicted(n), "{listing}");
    }
}

/// The arcs in callgrind's file, which gives each name once and then only its number.
fn callgrind_calls(file: &str) -> Calls {
    let mut names: HashMap<String, Option<String>> = HashMap::new();
    let mut name_of = |text: &str| {
        let (number, name) = text.split_once(')').unwrap();
        if !name.is_empty() {
            names.insert(number.to_owned(), function(name));
        }
        names[number].clone()
    };
    let (mut caller, mut callee) = (None, None);
    let mut calls = Calls::new();
    for line in file.lines() {
        if let Some(text) = line.strip_prefix("fn=") {
            caller = name_of(text);
        } else if let Some(text) = line.strip_prefix("cfn=") {
            callee = name_of(text);
        } else if let Some(text) = line.strip_prefix("calls=")
            && let (Some(caller), Some(callee)) = (&caller, callee.take())
        {
            let count: u64 = text.split(' ').next().unwrap().parse().unwrap();
            *calls.entry((caller.clone(), callee)).or_default() += count;
        }
    }
    calls
}

#[test]
fn callgrind_counts_the_predicted_calls() {
    let Some(folder) = build("callgrind", &["-DBENCH_DISABLED"], None) else { return };
    for n in [1, 4] {
        let mut valgrind = Command::new("valgrind");
        valgrind.args([
            "--tool=callgrind",
            "--callgrind-out-file=callgrind.out",
            "./demo",
            &n.to_string(),
            "1",
        ]);
        if written(valgrind.current_dir(&folder)).is_none() {
            return;
        }
        let file = std::fs::read_to_string(folder.join("callgrind.out")).unwrap();
        assert_eq!(callgrind_calls(&file), predicted(n));
    }
}

/// The arcs in the XML report, without those of the root task.
fn treering_calls(xml: &str) -> Calls {
    let attribute = |line: &str, name: &str| -> Option<String> {
        let (_, rest) = line.split_once(&format!(" {name}=\""))?;
        Some(rest.split_once('"')?.0.to_owned())
    };
    let lines = |start: &'static str| xml.lines().filter(move |line| line.trim_start().starts_with(start));
    let named = |line| (attribute(line, "id").unwrap(), attribute(line, "name").unwrap());
    let names: HashMap<String, String> = lines("<task ").map(named).collect();
    let call = |line: &str| {
        let name = |end| function(&names[&attribute(line, end).unwrap()]);
        let count = attribute(line, "count").unwrap().parse().unwrap();
        Some(((name("source")?, name("target")?), count))
    };
    lines("<call ").filter_map(call).collect()
}

#[test]
fn treering_counts_the_predicted_calls() {
    let Some(folder) = build("treering", &[], Some(&library("a"))) else { return };
    for n in [0, 1, 4, 12] {
        demo(&folder, n);
        let xml = std::fs::read_to_string(folder.join("demo.xml")).unwrap();
        let mut expected = predicted(n);
        expected.retain(|_, count| *count > 0);
        assert_eq!(treering_calls(&xml), expected, "{xml}");
        has_the_predicted_tasks(&xml, n);
    }
}

/// Checks the calls of every task, and of the cycle.
fn has_the_predicted_tasks(xml: &str, n: u64) {
    let of = |function: &str| if function == "parent" { 1 } else { n * (n + 1) };
    let lines: Vec<&str> = xml.lines().filter(|line| line.trim_start().starts_with("<task ")).collect();
    for name in FUNCTIONS {
        let line = lines.iter().find(|line| line.contains(&format!(" name=\"{name}\" ")));
        let calls = format!(" calls=\"{}\" ", of(name));
        assert!(line.map_or(of(name) == 0, |line| line.contains(&calls)), "{name} for {n}:\n{xml}");
    }
    let cycle = format!(
        "memberCount=\"2\" inboundCalls=\"{n}\" outgoingCalls=\"0\" internalCalls=\"{}\"",
        n * (2 * n + 1)
    );
    assert_eq!(xml.contains(&cycle), n > 0, "{xml}");
}
