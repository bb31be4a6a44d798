//! Hits of lines are exact, however many there are, in whatever order, in several threads and
//! profiles.

use std::collections::BTreeMap;
use std::path::PathBuf;

use treering_runtime::events::Forest;
use treering_runtime::{Function, Options, line, set_profiler, snapshot};

/// Hits by function and line.
type Hits = BTreeMap<(String, u32), u64>;

/// Runs statements on lines of some functions in an order that looks random; what was run.
fn run(name: &str, functions: u64, lines: u64, statements: u32, mut state: u64) -> Hits {
    let named: Vec<String> = (0..functions).map(|number| format!("{name}{number}")).collect();
    let known: Vec<Function> = named.iter().map(|name| Function::new(name.as_bytes(), b"", 1)).collect();
    let mut hits = Hits::new();
    for _ in 0..statements {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (function, number) = ((state >> 33) % functions, (state >> 45) % lines + 1);
        let call = known[function as usize].enter();
        line(number as u32, 2, 1);
        call.leave();
        *hits.entry((named[function as usize].clone(), number as u32)).or_default() += 1;
    }
    hits
}

/// The hits and times that the profile holds.
fn recorded() -> Hits {
    let snapshot = snapshot().expect("a profile");
    let view = snapshot.view().expect("records");
    let forest: Forest = snapshot.forest();
    let names: BTreeMap<u32, String> = view
        .functions()
        .map(|(_, record)| (record.id, String::from_utf8_lossy(view.text(record.name)).into_owned()))
        .collect();
    let mut hits = Hits::new();
    for (at, node) in forest.nodes.iter().enumerate() {
        for line in forest.lines(at, view.header()) {
            *hits.entry((names[&node.record.function].clone(), line.line)).or_default() += line.hits;
        }
    }
    hits
}

#[test]
fn every_statement_counts_for_its_own_line() {
    let output = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("lines.trg");
    for round in 0..3 {
        set_profiler(Options { output: Some(output.clone()), ..Options::default() });
        // Outside of all functions there is nothing that it would be a line of.
        line(1, 2, 1);
        // More lines than are found at once, and two threads with lines of the same functions.
        let other = std::thread::spawn(move || run("f", 40, 30, 100_000, 100 + round));
        let mut expected = run("f", 40, 30, 100_000, 200 + round);
        for (key, count) in other.join().expect("it ends") {
            *expected.entry(key).or_default() += count;
        }
        assert_eq!(recorded(), expected, "in round {round}");
        treering_runtime::discard();
        line(1, 1, 1);
    }
}
