//! Dumps of Python's pstats.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::collections::BTreeMap;

use common::fixture;
use treering_formats::pstats;
use treering_formats::{Format, read_any};
use treering_profile::{FunctionKind, MetricId, Profile};

/// Calls and own time by name and line, of functions that were called.
type Table = BTreeMap<(String, u32), (u64, u64)>;

fn table(profile: &Profile) -> Table {
    let mut table = Table::new();
    let key = |function| {
        let function = profile.functions[function];
        (profile.strings[function.name].to_owned(), function.line)
    };
    for arc in &profile.arcs {
        table.entry(key(arc.callee)).or_default().0 += arc.calls;
    }
    for node in profile.tree.nodes().skip(1) {
        table.entry(key(profile.tree.function(node))).or_default().1 +=
            profile.tree.self_cost(MetricId::new(0), node);
    }
    table
}

/// The numbers that Python's own module read.
fn python(name: &str) -> Table {
    let text = String::from_utf8(fixture(&format!("pstats/{name}.tsv"))).unwrap();
    let row = |line: &str| {
        let cells: Vec<_> = line.split('\t').collect();
        let number = |at: usize| cells[at].parse::<u64>().unwrap();
        ((cells[0].to_owned(), number(1) as u32), (number(2), number(3)))
    };
    let mut table = Table::new();
    for (key, (calls, own)) in text.lines().map(row) {
        let sums = table.entry(key).or_default();
        *sums = (sums.0 + calls, sums.1 + own);
    }
    table
}

#[test]
fn calls_and_times_are_those_that_python_reads() {
    for name in ["shapes", "profile"] {
        let (format, profile, _) = read_any(&fixture(&format!("pstats/{name}.pstats"))).unwrap();
        assert_eq!(format, Format::Pstats);
        assert_eq!(table(&profile), python(name), "{name}");
    }
}

#[test]
fn arcs_have_measured_times_where_the_file_has_them() {
    let (profile, report) = pstats::read(&fixture("pstats/shapes.pstats")).unwrap();
    assert!(report.is_complete(), "{report:?}");
    let name = |function| &profile.strings[profile.functions[function].name];
    let arc = |caller: &str, callee: &str| {
        profile.arcs.iter().find(|arc| name(arc.caller) == caller && name(arc.callee) == callee).unwrap()
    };
    assert_eq!(arc("even", "odd").calls, 120);
    let (calls, total) = (arc("fact", "area").calls, arc("fact", "area").total_costs[0].1);
    // As printed by `print_callers`: 310 calls of area from fact, most of its time.
    assert_eq!(calls, 310);
    assert!(total > 30_000_000, "{total}");
    // The recursive calls of a function are in those from others.
    assert!(arc("fact", "fact").total_costs.is_empty());
    let builtin = |name: &str| {
        let mut all = profile.functions.entries().iter();
        all.find(|function| &profile.strings[function.name] == name).unwrap().kind
    };
    assert_eq!(builtin("<built-in method builtins.sum>"), FunctionKind::Builtin);
    assert_eq!(builtin("area"), FunctionKind::Interpreted);
}

#[test]
fn arcs_of_the_module_profile_have_calls_only() {
    let (profile, report) = pstats::read(&fixture("pstats/profile.pstats")).unwrap();
    assert!(report.notes[0].starts_with("callers have calls and no times"), "{report:?}");
    assert!(profile.arcs.iter().all(|arc| arc.total_costs.is_empty()));
}

#[test]
fn calls_below_0_are_not_known() {
    let (profile, report) = pstats::read(&fixture("pstats/sampled.pstats")).unwrap();
    assert_eq!(report.notes, ["calls were not counted where they are below 0: 3"]);
    assert_eq!(profile.run_cost(profile.find_metric("time").unwrap()), 1_000_000_000);
    let of_work = profile.arcs.iter().find(|arc| arc.caller != Profile::ROOT).unwrap();
    assert_eq!((of_work.calls, of_work.total_costs[0].1), (0, 1_000_000_000));
}

#[test]
fn a_file_that_is_no_dump_is_refused_with_a_position() {
    let error = |bytes: &[u8]| pstats::read(bytes).unwrap_err().to_string();
    assert_eq!(error(b"{0"), "it holds no functions");
    assert_eq!(error(b"N"), "a dictionary is expected");
    assert_eq!(error(b"{NN0"), "entry 0: a function: file, line, name is expected");
    assert_eq!(error(b""), "byte 0x0: the file is cut short");
    assert!(error(b"{c").contains("a code object, as `python -m profile` writes"));
    let file = fixture("pstats/shapes.pstats");
    assert!(error(&file[..file.len() / 2]).ends_with("is cut short"));
}
