//! Profiles of SWI-Prolog.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::fixture;
use treering_formats::Position;
use treering_formats::prolog::read;
use treering_formats::{Format, read_any};
use treering_profile::{FunctionKind, Profile, RecursionRule};

const START: &str = "treering prolog profile\t1\nclock\tcpu\nunit\tticks\ntime\t1000000007\nsamples\t200\n\
    ticks\t805\naccounting\t5\nrule\tswi-classic\npredicate\tuser\t3\tgo/1\tgo.pl\n\
    predicate\tforeign\t0\t(<)/2\t\n";

fn profile(text: &str) -> Profile {
    let (profile, report) = read(text.as_bytes()).unwrap();
    assert!(report.is_complete(), "{report:?}");
    profile
}

fn cost(profile: &Profile, metric: &str) -> Vec<u64> {
    profile.tree.self_costs(profile.find_metric(metric).unwrap()).to_vec()
}

#[test]
fn the_time_is_shared_out_by_ticks_to_the_last_nanosecond() {
    let read = profile(&format!("{START}node\t0\t1\t7\t6\t300\nnode\t1\t2\t9\t0\t500\nend\t2\n"));
    assert_eq!(cost(&read, "cpu"), [0, 375_000_002, 625_000_005]);
    assert_eq!(cost(&read, "samples"), [0, 75, 125]);
    let nodes: Vec<_> = read.tree.nodes().collect();
    assert_eq!((read.tree.calls(nodes[1]), read.tree.recursive_calls(nodes[1])), (7, 6));
    assert_eq!(read.recursion, RecursionRule::SwiClassic);
    let kinds: Vec<_> = read.functions.entries().iter().map(|function| function.kind).collect();
    assert_eq!(kinds[1..], [FunctionKind::Interpreted, FunctionKind::Extension]);
    assert_eq!(read.runs[0].cpu_ns, Some(1_000_000_007));
    assert!(read.metadata.notes[0].0.starts_with("805 ticks of 200 samples"), "{:?}", read.metadata.notes);
}

#[test]
fn few_samples_and_none_are_said() {
    let few = START.replace("samples\t200", "samples\t7");
    let read = profile(&format!("{few}node\t0\t1\t7\t6\t300\nend\t1\n"));
    assert!(read.metadata.notes[1].0.starts_with("7 samples are too few"), "{:?}", read.metadata.notes);
    let none = START.replace("samples\t200", "samples\t0");
    let read = profile(&format!("{none}node\t0\t1\t7\t6\t0\nnode\t1\t2\t9\t0\t0\nend\t2\n"));
    assert_eq!(cost(&read, "calls"), [0, 7, 9]);
    assert!(read.find_metric("cpu").is_none());
    assert!(read.metadata.notes[0].0.starts_with("0 samples"), "{:?}", read.metadata.notes);
}

#[test]
fn exact_times_and_ports_are_taken_as_they_are() {
    let exact = START.replace("unit\tticks", "unit\tns").replace("clock\tcpu", "clock\twall");
    let read = profile(&format!("{exact}node\t0\t1\t7\t6\t300\t4\t3\t2\t1\t0\nend\t1\n"));
    assert_eq!(cost(&read, "time"), [0, 300]);
    let node = read.tree.nodes().nth(1).unwrap();
    assert_eq!(read.ports.get(node).counts(), [4, 3, 2, 1, 0]);
}

#[test]
fn callers_without_chains_are_arcs() {
    let flat = START.replace("swi-classic", "flat");
    let read =
        profile(&format!("{flat}node\t0\t1\t7\t6\t300\nnode\t0\t2\t9\t0\t500\narc\t1\t2\t9\nend\t2\n"));
    assert!(read.is_arcs_only());
    assert_eq!((read.arcs.len(), read.arcs[0].calls), (1, 9));
}

#[test]
fn a_recorded_file_is_read() {
    let (format, read, report) = read_any(&fixture("prolog/queens.prolog")).unwrap();
    assert!(report.is_complete() && format == Format::Prolog, "{report:?}");
    let name = |node| &read.strings[read.functions.entries()[read.tree.function(node).index()].name];
    let nodes = read.tree.nodes().skip(1);
    let calls: Vec<_> = nodes.map(|node| (name(node), read.tree.calls(node))).collect();
    // As many as exact ports count.
    assert!(calls.contains(&("boxes:queens/3", 35_539)), "{calls:?}");
    assert!(calls.contains(&("boxes:not_attack/3", 464_874)), "{calls:?}");
}

#[test]
fn lines_that_make_no_sense_are_refused_with_their_place() {
    for (lines, line, problem) in [
        ("what\t1\n", 11, "the line starts with `what`, which is not known"),
        ("node\t0\t3\t1\t0\t0\n", 11, "it names predicate 3, which did not come before"),
        ("node\t1\t1\t1\t0\t0\n", 11, "it names node 1, which did not come before"),
        ("node\t0\t1\t-1\t0\t0\n", 11, "`-1` for the calls is not a number from 0 to 2^64 - 1"),
        ("node\t0\t1\t1\n", 11, "there is no column of recursive calls"),
        ("predicate\tgoal\t0\n", 11, "there is no column of name"),
        ("rule\tany\n", 11, "`any` for the rule is not known"),
    ] {
        let error = read(format!("{START}{lines}").as_bytes()).unwrap_err();
        assert!(matches!(error.position, Position::Line { number, .. } if number == line), "{error}");
        assert_eq!(error.problem.to_string(), problem, "{lines}");
    }
    let version = read(b"treering prolog profile\t2\n").unwrap_err();
    assert_eq!(version.problem.to_string(), "it is of version `2`; version 1 is known");
    let other = read(b"something else\n").unwrap_err().problem.to_string();
    assert_eq!(other, "it does not say that this is a profile of SWI-Prolog");
}

#[test]
fn a_file_without_an_end_is_said_to_be_unfinished() {
    let (_, report) = read(format!("{START}node\t0\t1\t7\t6\t300\n").as_bytes()).unwrap();
    assert!(report.unfinished);
}
