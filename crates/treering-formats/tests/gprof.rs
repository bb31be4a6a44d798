//! The output of gprof.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;

use common::fixture;
use treering_formats::gprof::{self, Problem};
use treering_formats::{Format, read_any};
use treering_profile::{Profile, RecursionRule};

/// Nanoseconds in a function itself and its calls, those to itself left out, by name.
type Table = BTreeMap<String, (u64, u64)>;

fn table(profile: &Profile) -> Table {
    let mut table = Table::new();
    let name = |function| profile.strings[profile.functions[function].name].to_owned();
    let time = profile.find_metric("cpu-time").unwrap();
    for node in profile.tree.nodes().skip(1) {
        let row = table.entry(name(profile.tree.function(node))).or_default();
        row.0 += profile.tree.self_cost(time, node);
        row.1 += profile.tree.calls(node);
    }
    for arc in profile.arcs.iter().filter(|arc| arc.caller != arc.callee) {
        table.entry(name(arc.callee)).or_default().1 += arc.calls;
    }
    table
}

/// The columns `self` and `calls` of the flat profile, cut out by where the header has them.
fn printed() -> Table {
    let text = String::from_utf8(fixture("gprof/flat.txt")).unwrap();
    let rows = text.lines().skip(5).take_while(|line| !line.is_empty());
    let row = |line: &str| {
        let hundredths = line[18..27].trim().replace('.', "").parse::<u64>().unwrap();
        (line[54..].to_owned(), (hundredths * 10_000_000, line[27..36].trim().parse().unwrap()))
    };
    rows.map(row).collect()
}

#[test]
fn times_and_calls_are_those_of_the_flat_profile() {
    let mut expected = printed();
    assert_eq!(expected.len(), 6);
    let (format, profile, report) = read_any(&fixture("gprof/flat.txt")).unwrap();
    assert_eq!((format, profile.recursion), (Format::Gprof, RecursionRule::Flat));
    assert!(report.notes[0].starts_with("it is a flat profile"), "{report:?}");
    assert_eq!(table(&profile), expected);
    // Only the call graph has functions without time whose calls were not counted.
    expected.insert("main".to_owned(), (0, 0));
    for name in ["brief", "full"] {
        let (format, profile, report) = read_any(&fixture(&format!("gprof/{name}.txt"))).unwrap();
        assert_eq!((format, report.unfinished), (Format::Gprof, false));
        assert_eq!(table(&profile), expected, "{name}");
        assert_eq!(profile.run_cost(profile.find_metric("samples").unwrap()), 25);
        let recursive = profile.arcs.iter().find(|arc| arc.caller == arc.callee).unwrap();
        assert_eq!(recursive.calls, 540);
        assert_eq!(profile.arcs.len(), 11);
    }
}

#[test]
fn a_call_graph_alone_is_enough_and_one_that_is_cut_says_so() {
    let text = String::from_utf8(fixture("gprof/brief.txt")).unwrap();
    let graph = &text[text.find("\t\t\tCall graph").unwrap()..];
    let (profile, report) = gprof::read(graph.as_bytes()).unwrap();
    assert!(!report.unfinished);
    assert_eq!(profile.arcs.len(), 11);
    let cut = &graph[..graph.rfind("[7]      4.0").unwrap()];
    assert!(gprof::read(cut.as_bytes()).unwrap().1.unfinished);
}

#[test]
fn functions_of_one_name_stay_apart() {
    let entry = |index: u32, seconds: &str| {
        format!(
            "[{index}]     50.0    {seconds}    0.00       3         helper [{index}]\n-----------------------\n"
        )
    };
    let text = format!(
        "\t\t\tCall graph\n\nindex % time    self  children    called     name\n{}{}\n",
        entry(1, "0.02"),
        entry(2, "0.03")
    );
    let (profile, _) = gprof::read(text.as_bytes()).unwrap();
    let expected = [("helper [1]", 20_000_000), ("helper [2]", 30_000_000)];
    assert_eq!(table(&profile), expected.map(|(name, ns)| (name.to_owned(), (ns, 0))).into());
}

#[test]
fn what_is_no_table_is_refused_with_its_line() {
    let error = |text: &str| gprof::read(text.as_bytes()).unwrap_err();
    assert_eq!(error("Flat profile:\n").problem, Problem::Empty);
    let flat = "  %   cumulative   self\n time   seconds   seconds    calls  name\n";
    let damaged = error(&format!("{flat}  0.00  x  0.00  f\n"));
    assert_eq!((damaged.line, damaged.problem), (3, Problem::FlatRow));
    let large = error(&format!("{flat}  0.00  0.00  {}.00  f\n", "9".repeat(40)));
    assert_eq!(large.problem, Problem::LargeNumber);
}
