//! The output of gprof.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::collections::BTreeMap;

use common::fixture;
use treering_formats::{Format, detect, gprof, read_any};
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

/// `gprof -b -p` prints nothing behind the rows, and its whole table was said to be cut short.
#[test]
fn a_brief_flat_profile_ends_with_its_last_row() {
    let text = String::from_utf8(fixture("gprof/brief.txt")).unwrap();
    let flat = &text[..=text.find("const\n").unwrap() + 5];
    let (_, report) = gprof::read(flat.as_bytes()).unwrap();
    assert!(!report.unfinished, "{flat}");
    assert!(gprof::read(flat.trim_end().as_bytes()).unwrap().1.unfinished, "the last line is cut");
    let cut = &text[..=text.find("(long)\n").unwrap() + 6];
    assert!(gprof::read(cut.as_bytes()).unwrap().1.unfinished, "time is missing: {cut}");
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
fn a_line_that_is_no_row_of_its_table_is_refused_with_its_place() {
    let error = |text: &str| gprof::read(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(error("Flat profile:\n"), "it holds no rows of a flat profile or of a call graph");
    let flat = "  %   cumulative   self\n time   seconds   seconds    calls  name\n";
    let damaged = error(&format!("{flat}  0.00  x  0.00  f\n"));
    assert_eq!(damaged, "line 3 at byte 0x41: it is no row of gprof's flat profile");
    let graph = "\t\t\tCall graph\n\nindex % time    self  children    called     name\n[1] f\n";
    assert_eq!(error(graph), "line 4 at byte 0x41: it is no row of gprof's call graph");
    let large = error(&format!("{flat}  0.00  0.00  {}.00  f\n", "9".repeat(40)));
    assert_eq!(large, "a time below 32 years is expected");
}

/// As gprof prints the same run by function: spin 0.19 s, called twice by main and five times by odd.
#[test]
fn costs_and_calls_by_line_are_those_of_the_functions() {
    let (format, profile, report) = read_any(&fixture("gprof/lines.txt")).unwrap();
    assert_eq!((format, report.unfinished), (Format::Gprof, false));
    let expected = [("spin", 200_000_000, 7), ("leaf", 0, 10), ("even", 0, 5), ("odd", 0, 5), ("main", 0, 0)];
    assert_eq!(table(&profile), expected.map(|(name, ns, calls)| (name.to_owned(), (ns, calls))).into());
    let time = profile.find_metric("cpu-time").unwrap();
    let of_time = profile.line_costs.iter().filter(|part| part.metric == time);
    let lines: BTreeMap<_, _> = of_time.map(|part| (profile.lines[part.line].line, part.cost)).collect();
    assert_eq!(lines, [(3, 50_000_000), (4, 150_000_000)].into());
    let names = |arc: &&treering_profile::Arc| {
        [arc.caller, arc.callee].map(|function| profile.strings[profile.functions[function].name].to_owned())
    };
    let from_main = profile.arcs.iter().find(|arc| names(arc) == ["main", "spin"]).unwrap();
    assert_eq!((from_main.calls, from_main.call_site.map(|line| profile.lines[line].line)), (2, Some(8)));
    assert!(profile.functions.entries().iter().skip(1).all(|f| &profile.strings[f.file] == "lines.c"));
}

#[test]
fn the_style_of_bsd_is_read_as_the_other_one() {
    let (format, profile, report) = read_any(&fixture("gprof/bsd.txt")).unwrap();
    assert_eq!((format, report.unfinished), (Format::Gprof, false));
    let expected = [("spin", 190_000_000, 7), ("leaf", 0, 10), ("even", 0, 5), ("odd", 0, 5), ("main", 0, 0)];
    assert_eq!(table(&profile), expected.map(|(name, ns, calls)| (name.to_owned(), (ns, calls))).into());
}

/// Rows alone tell nothing of their columns.
#[test]
fn rows_without_a_header_are_of_no_format() {
    let rows = "                                       1             resume <cycle 1> [145]\n\
        \x20                                   1017             luaD_callnoyield <cycle 1> [115]\n\
        \x20                                 182055             luaV_execute <cycle 1> [18]\n";
    assert_eq!(detect(rows.as_bytes()), None);
}

/// Wherever the text ends, all of the flat profile is read or the loss is said.
#[test]
fn no_cut_loses_anything_without_a_word() {
    for name in ["brief", "lines", "bsd"] {
        let text = fixture(&format!("gprof/{name}.txt"));
        let (whole, _) = gprof::read(&text).unwrap();
        let index = text.windows(5).position(|at| at == b"Index").unwrap();
        for end in 1..index - 1 {
            let Ok((profile, report)) = gprof::read(&text[..end]) else { continue };
            let same = table(&profile) == table(&whole) && profile.arcs.len() == whole.arcs.len();
            let without_graph = report.notes.iter().any(|note| note.starts_with("it is a flat profile"));
            assert!(same || report.unfinished || without_graph, "{name} cut at {end}");
        }
    }
}
