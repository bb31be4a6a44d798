//! Profiles of OpenTelemetry, by all schemas, as protobuf and JSON.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::collections::BTreeMap;

use common::{fixture, totals};
use treering_formats::{Format, Position, Problem, otlp, pprof, read_any};
use treering_profile::{FunctionKind, Profile};

const ALL: [&str; 4] = ["otlp/1.7.0.otlp", "otlp/1.8.0.otlp", "otlp/1.11.0.otlp", "otlp/1.11.0.json"];

/// Costs of chains of callers, by the names of functions.
fn stacks(profile: &Profile, metric: &str) -> BTreeMap<String, u64> {
    let metric = profile.find_metric(metric).unwrap();
    let mut costs = BTreeMap::new();
    for node in profile.tree.nodes().filter(|&node| profile.tree.self_cost(metric, node) > 0) {
        let up = std::iter::successors(Some(node), |&node| profile.tree.parent(node));
        let name = |node| {
            let function = &profile.functions[profile.tree.function(node)];
            match function.address {
                Some(address) => format!("{address}"),
                None => profile.strings[function.name].to_owned(),
            }
        };
        let mut names: Vec<_> = up.filter(|&node| profile.tree.parent(node).is_some()).map(name).collect();
        names.reverse();
        *costs.entry(names.join(";")).or_default() += profile.tree.self_cost(metric, node);
    }
    costs
}

#[test]
fn every_schema_has_the_stacks_that_the_script_wrote() {
    let expected = BTreeMap::from(
        [
            ("main;work", 7),
            ("main;work;inner", 5),
            ("main;work;do_syscall_64", 3),
            ("main;0x1300", 2),
            ("main;work;work", 4),
        ]
        .map(|(stack, count)| (stack.to_owned(), count)),
    );
    for name in ALL {
        let (format, profile, report) = read_any(&fixture(name)).unwrap();
        assert_eq!((format, &stacks(&profile, "samples")), (Format::Otlp, &expected), "{name}");
        let times = expected.iter().map(|(stack, count)| (stack.clone(), count * 50_000_000)).collect();
        assert_eq!(stacks(&profile, "cpu"), times, "{name}");
        let sampling =
            profile.metrics[profile.find_metric("cpu").unwrap().index()].sampling.as_ref().unwrap();
        assert_eq!(sampling.period, Some(50_000_000), "{name}");
        let threads: Vec<_> = profile.threads.iter().map(|thread| thread.name.as_str()).collect();
        let has_more = name != "otlp/1.7.0.otlp";
        assert_eq!(threads, if has_more { vec!["first", "second", ""] } else { vec!["first", "second"] });
        assert_eq!(profile.processes[0].pid, 42, "{name}");
        let kinds: BTreeMap<_, _> = profile
            .functions
            .entries()
            .iter()
            .map(|function| (profile.strings[function.name].to_owned(), function.kind))
            .collect();
        assert_eq!(kinds["do_syscall_64"], FunctionKind::Kernel, "{name}");
        assert_eq!(kinds["inner"], FunctionKind::Inlined, "{name}");
        let build_ids: Vec<_> = profile.modules.iter().map(|(_, module)| module.build_id.clone()).collect();
        assert!(build_ids.iter().any(|id| **id == [0, 0xff, 0x10]), "{name}: {build_ids:?}");
        assert!(report.notes.iter().any(|note| note.starts_with("labels other than")), "{report:?}");
        if has_more {
            assert_eq!(stacks(&profile, "allocated"), BTreeMap::from([("main;work;inner".to_owned(), 4096)]));
            assert!(report.notes.iter().any(|note| note.starts_with("when single samples")), "{report:?}");
        }
    }
}

#[test]
fn attributes_are_labels() {
    let label = |key: &str, value: &str| vec![(key.to_owned(), value.to_owned())];
    for name in ALL {
        let file = fixture(name);
        let read = |key, value| otlp::read_labelled(&file, &label(key, value));
        let count = |key, value| -> u64 { stacks(&read(key, value).unwrap().0, "samples").values().sum() };
        assert_eq!(count("cpu.logical_number", "1"), 5 + 2, "{name}");
        assert_eq!(count("thread.name", "first"), 7 + 3 + 4, "{name}");
        assert_eq!((count("process.pid", "42"), count("service.name", "shop")), (21, 21), "{name}");
        let error = read("process.pid", "41").unwrap_err();
        assert!(matches!(error.problem, Problem::Missing(_)), "{error}");
        assert!(error.to_string().starts_with("no sample has the label pid=41; there are: "), "{error}");
    }
}

#[test]
fn written_profiles_are_read_back() {
    for name in ["pprof/cpu.pb.gz", "otlp/1.11.0.otlp", "folded/py-spy.folded", "perf-script/chains.txt"] {
        let (_, profile, _) = read_any(&fixture(name)).unwrap();
        let mut file = Vec::new();
        let dropped = otlp::write(&profile, &mut file).unwrap();
        assert!(treering_formats::is_ours(&file, Format::Otlp), "{name}");
        let (format, again, _) = read_any(&file).unwrap();
        assert_eq!((format, totals(&again)), (Format::Otlp, totals(&profile)), "{name}");
        // The same as by way of pprof, which it follows.
        let mut other = Vec::new();
        let also_dropped = pprof::write(&profile, &mut other).unwrap();
        assert!(also_dropped.notes.iter().all(|note| dropped.notes.contains(note)), "{dropped:?}");
        let by_pprof = pprof::read(&other).unwrap().0;
        assert_eq!(totals(&by_pprof), totals(&again), "{name}");
        // Costs that were estimated from samples still are.
        let sampled = |profile: &Profile| {
            let metrics = profile.metrics.iter().filter(|metric| metric.sampling.is_some());
            metrics.map(|metric| metric.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(sampled(&again), sampled(&by_pprof), "{name}");
    }
}

#[test]
fn lines_of_json_are_added_up() {
    let one = fixture("otlp/1.11.0.json");
    let two = [one.clone(), b"\n".to_vec(), one].concat();
    let (profile, _) = otlp::read(&two).unwrap();
    assert_eq!(stacks(&profile, "samples")["main;work"], 14);
}

#[test]
fn every_prefix_is_an_error_or_a_profile() {
    for name in ALL {
        let whole = fixture(name);
        for end in 0..whole.len() {
            if let Ok((profile, _)) = otlp::read(&whole[..end]) {
                assert_eq!(profile.validate(), Ok(()));
            }
            let _ = read_any(&whole[..end]);
        }
    }
}

#[test]
fn an_index_behind_its_table_is_refused_with_its_number() {
    let json = String::from_utf8(fixture("otlp/1.11.0.json")).unwrap();
    let error = |from: &str, to: &str| {
        assert!(json.contains(from), "{from}");
        otlp::read(json.replacen(from, to, 1).as_bytes()).unwrap_err()
    };
    let said = |from: &str, to: &str| error(from, to).to_string();
    assert_eq!(said("\"stackIndex\": 2", "\"stackIndex\": 99"), "sample 1: stack 99 is missing");
    assert_eq!(said("\"functionIndex\": 1", "\"functionIndex\": 9"), "location 1: function 9 is missing");
    assert_eq!(said("\"mappingIndex\": 1", "\"mappingIndex\": -1"), "location 1: mapping -1 is missing");
    assert_eq!(said("\"keyStrindex\": ", "\"keyStrindex\": 9"), "attribute 1: text 97 is missing");
    let no_number = error("\"values\": [\"5\"]", "\"values\": [\"x\"]");
    assert!(matches!(no_number.position, Position::Column { .. }), "{no_number}");
    assert!(no_number.to_string().ends_with(": x is no number here"), "{no_number}");
    let refused = |file: &[u8]| otlp::read(file).unwrap_err().to_string();
    assert_eq!(
        refused(b"{\"resourceProfiles\": []}"),
        "OTLP without a dictionary of profiles, by the schema of 2024 or of another signal, is not read"
    );
    assert_eq!(refused(b"{\"dictionary\": {}}"), "it holds no samples");
    let damaged = refused(b"\x0a\xff\x01");
    assert!(damaged.starts_with("it is no OTLP profile, or damaged or cut short: "), "{damaged}");
}
