//! Results of Octave's own profiler, in both notations.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::collections::BTreeMap;

use common::{canonical, fixture};
use treering_formats::octave;
use treering_formats::{Format, read_any};
use treering_profile::{NodeId, Profile};

/// Chains of callers with calls and self cost in nanoseconds.
fn chains(profile: &Profile) -> BTreeMap<String, (u64, u64)> {
    let (time, tree) = (profile.find_metric("time").unwrap(), &profile.tree);
    let name = |node: NodeId| profile.strings[profile.functions[tree.function(node)].name].to_owned();
    let chain = |node: NodeId| {
        let up = std::iter::successors(Some(node), |&node| tree.parent(node));
        let mut names: Vec<String> = up.filter(|&node| tree.parent(node).is_some()).map(name).collect();
        names.reverse();
        names.join(";")
    };
    let nodes = tree.nodes().filter(|&node| tree.calls(node) > 0);
    nodes.map(|node| (chain(node), (tree.calls(node), tree.self_cost(time, node)))).collect()
}

#[test]
fn both_notations_have_the_calls_and_times_of_the_run() {
    let text = fixture("octave/info.txt");
    let (format, from_text, report) = read_any(&text).unwrap();
    assert_eq!(format, Format::Octave);
    assert!(report.notes.iter().any(|note| note.contains("no files and no lines")), "{report:?}");
    let (format, from_json, _) = read_any(&fixture("octave/info.json")).unwrap();
    assert_eq!(format, Format::Octave);
    assert_eq!(canonical(&from_json), canonical(&from_text));
    let chains = chains(&from_json);
    let calls = |chain: &str| chains.get(chain).unwrap_or_else(|| panic!("{chain}: {chains:?}")).0;
    assert_eq!((calls("outer"), calls("outer;inner"), calls("outer;inner;sqrt")), (1, 20, 4000));
    assert_eq!((calls("fact"), calls("fact;fact"), calls("fact;fact;fact;fact;fact")), (1, 1, 1));
    assert_eq!((calls("anonymous@profiled.m:0:0"), calls("anonymous@profiled.m:0:0;inner")), (1, 1));
    // The table of functions has the same self costs, under the name of TotalTime: Octave's own sums.
    let json = String::from_utf8(fixture("octave/info.json")).unwrap();
    let of = |name: &str| -> u64 {
        let row = json.split(&format!("\"FunctionName\":\"{name}\",\"TotalTime\":")).nth(1).unwrap();
        (row.split(',').next().unwrap().parse::<f64>().unwrap() * 1e9).round() as u64
    };
    for name in ["outer", "inner", "sqrt", "fact"] {
        let own = chains.iter().filter(|(chain, _)| chain.rsplit(';').next() == Some(name));
        let own: u64 = own.map(|(_, (_, cost))| cost).sum();
        assert!(own.abs_diff(of(name)) <= 5, "{name}: {own} and {}", of(name));
    }
}

#[test]
fn every_prefix_is_an_error_or_a_profile() {
    for name in ["octave/info.json", "octave/info.txt"] {
        let whole = fixture(name);
        for end in 0..whole.len() {
            if let Ok((profile, _)) = octave::read(&whole[..end]) {
                assert_eq!(profile.validate(), Ok(()));
                assert!(whole[end..].iter().all(|byte| byte.is_ascii_whitespace()), "{name} {end}");
            }
        }
    }
}

#[test]
fn single_structs_are_read_as_jsonencode_writes_them() {
    let one = br#"{"FunctionTable":{"FunctionName":"f"},"Hierarchical":{"Index":1,"SelfTime":2e-9,"TotalTime":1,"NumCalls":3,"Children"}}"#;
    let (profile, _) = octave::read(one).unwrap();
    assert_eq!(chains(&profile), BTreeMap::from([("f".to_owned(), (3, 2))]));
}

#[test]
fn a_file_that_is_no_profile_is_refused() {
    let problem = |bytes: &[u8]| octave::read(bytes).unwrap_err().problem.to_string();
    assert_eq!(
        problem(b"{\"FunctionTable\":[]}"),
        "it is not what profile (\"info\") returns: Hierarchical is missing"
    );
    let call =
        |fields: &str| format!("{{\"FunctionTable\":[],\"Hierarchical\":[{{{fields}}}]}}").into_bytes();
    assert_eq!(
        problem(&call("\"Index\":1,\"NumCalls\":1,\"SelfTime\":0")),
        "a call is of function 1, which is not in the table"
    );
    assert_eq!(
        problem(&call("\"Index\":1")),
        "it is not what profile (\"info\") returns: a call has no NumCalls"
    );
    assert_eq!(problem(&b"[".repeat(5000)), "values are nested too deeply");
    let text = b"# Created by Octave 7\n# name: x\n# type: int8 scalar\n1\n";
    assert_eq!(problem(text), "the type \"int8 scalar\" is in no profile of Octave");
}
