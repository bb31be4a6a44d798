//! Speedscope's JSON.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::collections::BTreeMap;

use common::{canonical, fixture, profile, step, totals};
use proptest::prelude::*;
use treering_formats::speedscope;
use treering_formats::{Format, read_any};
use treering_profile::{FunctionKind, Profile, RecursionRule};
use treering_testing::synthetic::{Shape, synthetic};

fn written(profile: &Profile) -> Vec<u8> {
    let mut file = Vec::new();
    let _ = speedscope::write(profile, &mut file).unwrap();
    file
}

/// The self costs of functions, in milliseconds.
fn milliseconds(profile: &Profile) -> BTreeMap<String, u64> {
    let costs = totals(profile).into_iter();
    costs.map(|((name, _), cost)| (name, (cost + 500_000) / 1_000_000)).collect()
}

#[test]
fn totals_are_those_that_speedscope_shows() {
    let read = |name: &str| speedscope::read(&fixture(&format!("speedscope/{name}"))).unwrap().0;
    let expected =
        [("area", 1860), ("area.<locals>.<genexpr>", 3030), ("fact", 40), ("work.<locals>.<genexpr>", 60)];
    let expected = expected.map(|(name, cost)| (name.to_owned(), cost));
    assert_eq!(milliseconds(&read("py-spy.speedscope.json")), BTreeMap::from(expected));
    let expected = [("<genexpr>", 154), ("area", 199), ("fact", 7982)];
    let expected = expected.map(|(name, cost)| (name.to_owned(), cost));
    assert_eq!(milliseconds(&read("pyinstrument.speedscope.json")), BTreeMap::from(expected));
}

#[test]
fn lines_that_ran_are_call_sites_and_not_parts_of_functions() {
    let (profile, report) = speedscope::read(&fixture("speedscope/py-spy.speedscope.json")).unwrap();
    assert!(report.is_complete(), "{report:?}");
    let name = |function: &treering_profile::Function| profile.strings[function.name].to_owned();
    let names: Vec<_> = profile.functions.entries().iter().map(name).collect();
    assert_eq!(names.iter().filter(|name| *name == "fact").count(), 1, "{names:?}");
    assert!(profile.tree.nodes().any(|node| profile.tree.call_site(node).is_some()));
    let lines: u64 = profile.line_costs.iter().map(|cost| cost.cost).sum();
    assert_eq!(lines, profile.run_cost(profile.find_metric("time").unwrap()));
}

#[test]
fn events_are_calls() {
    let text = r#"{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"a"},{"name":"b","file":"b.c","line":7}]},
        "profiles":[{"type":"evented","name":"t","unit":"milliseconds","startValue":100,"endValue":112,"events":[
        {"type":"O","frame":0,"at":100},{"type":"O","frame":1,"at":101.5},{"type":"C","frame":1,"at":103},
        {"type":"O","frame":1,"at":103},{"type":"C","frame":1,"at":104},{"type":"C","frame":0,"at":110}]}]}"#;
    let (profile, _) = speedscope::read(text.as_bytes()).unwrap();
    let time = profile.find_metric("time").unwrap();
    let rows: Vec<_> = profile
        .tree
        .nodes()
        .map(|node| (profile.tree.calls(node), profile.tree.self_cost(time, node)))
        .collect();
    assert_eq!(rows, [(0, 0), (1, 7_500_000), (2, 2_500_000)]);
    assert_eq!(profile.functions.entries()[2].line, 7);
}

#[test]
fn numbers_without_a_unit_may_have_decimals() {
    let text = r#"{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"a"}]},
        "profiles":[{"type":"sampled","name":"t","unit":"none","startValue":0,"endValue":1,"samples":[[0],[]],"weights":[0.25,1]}]}"#;
    let (profile, _) = speedscope::read(text.as_bytes()).unwrap();
    assert_eq!(profile.run_cost(profile.find_metric("millisamples").unwrap()), 1250);
}

/// A small number became 0 without a word.
#[test]
fn numbers_that_are_rounded_are_said_to_be() {
    let read = |unit: &str, weight: &str| {
        let text = format!(
            r#"{{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{{"frames":[{{"name":"a"}}]}},
            "profiles":[{{"type":"sampled","name":"t","unit":"{unit}","startValue":0,"endValue":1,"samples":[[0],[0]],"weights":[{weight},1]}}]}}"#
        );
        let (profile, report) = speedscope::read(text.as_bytes()).unwrap();
        (
            profile.metrics[0].name.clone(),
            profile.run_cost(treering_profile::MetricId::new(0)),
            !report.notes.is_empty(),
        )
    };
    assert_eq!(read("none", "1e-12"), ("samples".to_owned(), 1, true));
    assert_eq!(read("none", "1e-7"), ("nanosamples".to_owned(), 1_000_000_100, false));
    assert_eq!(read("seconds", "1e-12"), ("time".to_owned(), 1_000_000_000, true));
    assert_eq!(read("bytes", "1e-12"), ("bytes".to_owned(), 1, true));
    assert_eq!(read("seconds", "0.1"), ("time".to_owned(), 1_100_000_000, false));
}

#[test]
fn weights_below_a_nanosecond_add_up() {
    let weights = |weight: &str| [weight; 10].join(",");
    let text = format!(
        r#"{{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{{"frames":[{{"name":"a"}},{{"name":"b"}}]}},
        "profiles":[{{"type":"sampled","name":"t","unit":"nanoseconds","startValue":0,"endValue":7,
        "samples":[{},{}],"weights":[{},{}]}}]}}"#,
        weights("[0]"),
        weights("[0,1]"),
        weights("0.4"),
        weights("1.3"),
    );
    let (profile, report) = speedscope::read(text.as_bytes()).unwrap();
    let expected = [(("a".to_owned(), "time".to_owned()), 4), (("b".to_owned(), "time".to_owned()), 13)];
    assert_eq!(totals(&profile), BTreeMap::from(expected));
    assert!(report.notes.iter().any(|note| note.contains("rounded")), "{report:?}");
}

#[test]
fn written_profiles_are_read_back() {
    let profile = synthetic(&Shape::SMALL);
    let file = written(&profile);
    let (format, read, report) = read_any(&file).unwrap();
    assert_eq!((format, report.is_complete()), (Format::Speedscope, true));
    assert_eq!(totals(&read), totals(&profile));
    assert_eq!(read.threads.len(), profile.threads.len());
    assert_eq!(format!("{:?}", read.metrics), format!("{:?}", profile.metrics));
    let kinds = |profile: &Profile| {
        let mut kinds: Vec<_> = profile.functions.entries().iter().map(|function| function.kind).collect();
        kinds.retain(|kind| *kind == FunctionKind::Kernel);
        kinds.len()
    };
    assert_eq!(kinds(&read), kinds(&profile));
    // Once more, nothing changes.
    let again = written(&read);
    assert_eq!(canonical(&speedscope::read(&again).unwrap().0), canonical(&read));
}

#[test]
fn totals_that_no_stack_tells_stay_unknown() {
    let profile = read_any(&fixture("callgrind/plain.callgrind")).unwrap().1;
    let read = speedscope::read(&written(&profile)).unwrap().0;
    assert_eq!((read.recursion, totals(&read)), (RecursionRule::Flat, totals(&profile)));
}

#[test]
fn written_files_obey_the_schema() {
    // As `file-format-schema.json` of the npm package asks: the keys, types and sums.
    let file: serde_json::Value = serde_json::from_slice(&written(&synthetic(&Shape::SMALL))).unwrap();
    assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let frames = file["shared"]["frames"].as_array().unwrap();
    assert!(frames.iter().all(|frame| frame["name"].is_string()));
    let profiles = file["profiles"].as_array().unwrap();
    assert!(file["activeProfileIndex"].as_u64().unwrap() < profiles.len() as u64);
    for profile in profiles {
        assert_eq!(profile["type"], "sampled");
        assert!(profile["name"].is_string());
        let units = ["none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"];
        assert!(units.iter().any(|unit| profile["unit"] == *unit), "{}", profile["unit"]);
        let (samples, weights) =
            (profile["samples"].as_array().unwrap(), profile["weights"].as_array().unwrap());
        assert_eq!(samples.len(), weights.len());
        let sum: u64 = weights.iter().map(|weight| weight.as_u64().unwrap()).sum();
        assert_eq!((profile["startValue"].as_u64(), profile["endValue"].as_u64()), (Some(0), Some(sum)));
        for frame in samples.iter().flat_map(|sample| sample.as_array().unwrap()) {
            assert!(frame.as_u64().unwrap() < frames.len() as u64);
        }
    }
}

#[test]
fn errors_name_the_profile_and_the_sample() {
    let read = |profile: &str| {
        let text = format!(
            "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"shared\":{{\"frames\":[{{\"name\":\"a\"}},{{\"name\":\"b\"}}]}},\"profiles\":[{profile}]}}"
        );
        speedscope::read(text.as_bytes()).unwrap_err().to_string()
    };
    let sampled = |rest: &str| {
        read(&format!(
            "{{\"type\":\"sampled\",\"name\":\"t\",\"unit\":\"none\",\"startValue\":0,\"endValue\":1,{rest}}}"
        ))
    };
    let evented = |rest: &str| {
        read(&format!(
            "{{\"type\":\"evented\",\"name\":\"t\",\"unit\":\"none\",\"startValue\":0,\"endValue\":1,\"events\":[{rest}]}}"
        ))
    };
    assert_eq!(sampled("\"samples\":[[0]],\"weights\":[]"), "profile 0: it has 0 weights for 1 samples");
    assert_eq!(
        sampled("\"samples\":[[0,2]],\"weights\":[1]"),
        "sample or event 0 of profile 0: its frame 2 is missing"
    );
    assert_eq!(
        sampled("\"samples\":[[0]],\"weights\":[-1]"),
        "sample or event 0 of profile 0: its value is below 0 or too large"
    );
    let open = "{\"type\":\"O\",\"frame\":0,\"at\":5}";
    assert_eq!(
        evented(&format!("{open},{{\"type\":\"C\",\"frame\":1,\"at\":6}}")),
        "sample or event 1 of profile 0: it closes a frame that was not opened last"
    );
    assert_eq!(
        evented(&format!("{open},{{\"type\":\"C\",\"frame\":0,\"at\":4}}")),
        "sample or event 1 of profile 0: it is earlier than the event before it"
    );
    assert_eq!(
        speedscope::read(b"{\"shared\":{\"frames\":[]},\"profiles\":[]}").unwrap_err().to_string(),
        "it holds no profiles"
    );
    let cut = speedscope::read(b"{\"shared\":{\"frames\":[").unwrap_err();
    assert!(cut.to_string().contains("line 1, column 21: the file is cut short"), "{cut}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn costs_of_any_profile_survive(steps in prop::collection::vec(step(), 0..30)) {
        let profile = profile(&steps);
        let (read, _) = speedscope::read(&written(&profile)).unwrap();
        for (metric, description) in profile.cost_metrics() {
            let there = read.find_metric(&description.name).unwrap();
            prop_assert_eq!(read.run_cost(there), profile.run_cost(metric));
        }
    }
}
