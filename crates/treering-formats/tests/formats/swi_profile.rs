//! Data of SWI-Prolog's own profiler, in all notations.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::collections::BTreeMap;

use common::{canonical, fixture};
use treering_formats::{Format, read_any};
use treering_formats::{Position, Problem, swi_profile};
use treering_profile::Profile;

fn name(profile: &Profile, function: treering_profile::FunctionId) -> String {
    profile.strings[profile.functions[function].name].to_owned()
}

/// Self costs by predicate.
fn self_costs(profile: &Profile, metric: &str) -> BTreeMap<String, u64> {
    let metric = profile.find_metric(metric).unwrap();
    let nodes = profile.tree.nodes().skip(1);
    nodes
        .map(|node| (name(profile, profile.tree.function(node)), profile.tree.self_cost(metric, node)))
        .collect()
}

/// Calls by predicate, and those by the predicate itself.
fn calls(profile: &Profile) -> BTreeMap<String, (u64, u64)> {
    let mut calls = BTreeMap::new();
    for arc in &profile.arcs {
        let (all, recursive): &mut (u64, u64) = calls.entry(name(profile, arc.callee)).or_default();
        *all += arc.calls;
        *recursive += if arc.caller == arc.callee { arc.calls } else { 0 };
    }
    calls
}

#[test]
fn all_notations_have_the_same_numbers() {
    let (format, printed, report) = read_any(&fixture("swi-profile/data.txt")).unwrap();
    assert_eq!(format, Format::SwiProfile);
    assert!(
        report.notes.iter().any(|note| note.contains("in a cycle leave out the cycle's others")),
        "{report:?}"
    );
    for other in ["swi-profile/canonical.txt", "swi-profile/data.json"] {
        let (format, read, _) = read_any(&fixture(other)).unwrap();
        assert_eq!((format, canonical(&read)), (Format::SwiProfile, canonical(&printed)), "{other}");
        assert_eq!((calls(&read), read.arcs.len()), (calls(&printed), printed.arcs.len()), "{other}");
    }
}

/// A row as `show_profile/1` prints it: calls without recursive ones, and percent.
fn table() -> BTreeMap<String, (u64, f64)> {
    let text = String::from_utf8(fixture("swi-profile/table.txt")).unwrap();
    let row = |row: &str| {
        let (entry, rest) = row.split_once('=')?;
        let (name, _) = entry.trim_end().rsplit_once(' ')?;
        let (calls, rest) = rest.split_once('+')?;
        let percent = rest.split_whitespace().nth(1)?.strip_suffix('%')?.parse().ok()?;
        Some((name.trim().to_owned(), (calls.trim().replace(',', "").parse().ok()?, percent)))
    };
    text.lines().filter_map(row).collect()
}

#[test]
fn calls_and_times_are_those_that_show_profile_prints() {
    let (profile, _) = swi_profile::read(&fixture("swi-profile/data.txt")).unwrap();
    let (times, calls, table) = (self_costs(&profile, "time"), calls(&profile), table());
    let run = profile.run_cost(profile.find_metric("time").unwrap()) as f64;
    assert_eq!(table.len(), 13);
    for (predicate, (entered, percent)) in &table {
        // Its names have neither quotes nor parentheses.
        let ours = times.keys().find(|name| name.replace(['\'', '(', ')'], "") == *predicate).unwrap();
        let (all, recursive) = calls[ours];
        assert_eq!(all - recursive, *entered, "{predicate}");
        // The time of `even/1` was within itself, which show_profile/1 does not add.
        let share = if ours == "even/1" { 0.0 } else { times[ours] as f64 * 100.0 / run };
        assert!((share - percent).abs() < 0.06, "{predicate}: {share} and {percent}");
    }
    // 105 of 741 ticks: with them all percents add up.
    assert_eq!((times["even/1"] as f64 * 741.0 / run).round(), 105.0);
    assert_eq!((calls["fib/2"], calls["odd/1"]), ((392_835, 392_834), (4_510_000, 4_509_849)));
    assert!((run - 914_743_603.0).abs() < 1000.0, "{run}");
    assert_eq!(profile.run_cost(profile.find_metric("samples").unwrap()), 187);
}

#[test]
fn arcs_have_the_time_of_the_outermost_activations() {
    let (profile, _) = swi_profile::read(&fixture("swi-profile/data.txt")).unwrap();
    let tick = self_costs(&profile, "time")["odd/1"] / 74;
    let arc = |caller: &str, callee: &str| {
        let arc = |arc: &&treering_profile::Arc| {
            name(&profile, arc.caller) == caller && name(&profile, arc.callee) == callee
        };
        let arc = profile.arcs.iter().find(arc).unwrap();
        (arc.calls, arc.total_costs.first().map(|(_, cost)| cost / tick))
    };
    assert_eq!(arc("main/0", "even/1"), (150, Some(179)));
    assert_eq!(arc("even/1", "odd/1"), (151, Some(179)));
    assert_eq!(arc("odd/1", "even/1"), (4_510_000, Some(0)));
    assert_eq!(arc("fib/2", "fib/2"), (392_834, None));
}

const NODE: &str = "node{call:1,callees:[],callers:[node('<spontaneous>',0,4,0,1,0,1)],exit:1,predicate:user:go/0,\
    redo:0,ticks_self:4,ticks_siblings:0}";

fn whole(nodes: &str, summary: &str) -> Vec<u8> {
    format!("profile{{nodes:[{nodes}],summary:summary{{{summary}}}}}").into_bytes()
}

#[test]
fn costs_that_the_list_lacks_are_at_the_root_and_contradictions_are_noted() {
    let file = whole(NODE, "accounting:1,nodes:1,samples:2,ticks:11,time:0.02");
    let (profile, report) = swi_profile::read(&file).unwrap();
    assert!(report.notes[0].starts_with("6 ticks are of predicates"), "{report:?}");
    let time = profile.find_metric("time").unwrap();
    assert_eq!((self_costs(&profile, "time")["go/0"], profile.run_cost(time)), (8_000_000, 20_000_000));
    let other = NODE.replace("ticks_self:4", "ticks_self:5");
    let file = whole(&other, "accounting:1,nodes:1,samples:2,ticks:5,time:0.02");
    let (_, report) = swi_profile::read(&file).unwrap();
    assert!(report.notes[0].starts_with("predicates have other ticks than their callers"), "{report:?}");
}

#[test]
fn without_ticks_there_are_calls() {
    let none = NODE.replace(",4,0,", ",0,0,").replace("ticks_self:4", "ticks_self:0");
    let file = whole(&none, "accounting:0,nodes:1,samples:0,ticks:0,time:0.0");
    let (profile, _) = swi_profile::read(&file).unwrap();
    assert_eq!(self_costs(&profile, "calls"), BTreeMap::from([("go/0".to_owned(), 1)]));
    assert!(profile.find_metric("time").is_none());
}

#[test]
fn every_prefix_is_an_error_or_a_profile() {
    for name in ["swi-profile/data.txt", "swi-profile/canonical.txt", "swi-profile/data.json"] {
        let whole = fixture(name);
        for end in 0..whole.len() {
            let read = swi_profile::read(&whole[..end]);
            assert!(read.is_err() || whole[end..].trim_ascii().is_empty(), "{name} {end}");
        }
    }
}

fn shape(text: &str) -> Problem {
    Problem::Malformed(format!("it is not what profile_data/1 gives: {text}").into())
}

#[test]
fn other_data_is_refused_with_its_place() {
    let error = |bytes: &[u8]| swi_profile::read(bytes).unwrap_err();
    let summary = "accounting:1,nodes:1,samples:2,ticks:5,time:0.02";
    let of_node = |node: &str| error(&whole(node, summary)).problem;
    assert_eq!(of_node("node{a:1}"), shape("node 1 has no predicate"));
    assert_eq!(of_node(&NODE.replace("ticks_self", "self")), shape("node 1 has no ticks"));
    assert_eq!(of_node(&NODE.replace(",4,0,1,", ",4,1,")), shape("node 1 has an invalid caller"));
    assert_eq!(of_node(&NODE.replace(",4,0,1,", ",-4,0,1,")), shape("node 1 has an invalid caller"));
    assert_eq!(error(&whole(NODE, "samples:1")).problem, shape("its summary has no number of ticks"));
    assert_eq!(error(b"profile{nodes:[]}").problem, shape("it has no summary"));
    let (most, two) = (u64::MAX.to_string(), format!("{NODE},{NODE}"));
    let large = of_node(&two.replace(",4,0,1,", &format!(",{most},0,1,")));
    assert_eq!(large.to_string(), "a sum of costs below 2^64 is expected");
    let at = error(b"profile{nodes:[node{predicate:user:my pred/1}]}");
    assert_eq!((&at.position, &at.problem), (&Position::Byte(0x26), &Problem::Expected("',' or '}'")));
    assert_eq!(at.to_string(), "byte 0x26: ',' or '}' is expected");
    assert_eq!(error(&b"[".repeat(5000)).problem, Problem::TooDeep);
    assert_eq!(error("a/".repeat(5000).as_bytes()).problem, Problem::TooDeep);
    assert_eq!(error(b"{\"nodes\": [}").position, Position::Byte(11));
}
