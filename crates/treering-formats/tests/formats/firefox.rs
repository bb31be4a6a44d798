//! Processed profiles of the Firefox Profiler.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::{fixture, profile, step, totals};
use proptest::prelude::*;
use treering_formats::{Format, Problem, firefox, read_any};
use treering_profile::{FunctionKind, Mark, MarkKind, MetricId, Profile};
use treering_testing::synthetic::{Shape, synthetic};

fn written(profile: &Profile, metric: u32) -> Vec<u8> {
    let mut file = Vec::new();
    let _ = firefox::write(profile, MetricId::new(metric), &mut file).unwrap();
    file
}

/// A profile with the tables of version 49, in each thread.
const OLD: &str = r#"{"meta":{"interval":2,"preprocessedProfileVersion":49,"product":"x","sampleUnits":{"threadCPUDelta":"µs"}},
    "libs":[{"name":"a","path":"/bin/a"}],"threads":[{"name":"main","processName":"a","pid":"7","tid":8,
    "samples":{"stack":[2,2,1,null],"weight":null,"weightType":"samples","threadCPUDelta":[null,5,6,1],"time":[0,1,2,3],"length":4},
    "stackTable":{"frame":[0,1,2],"prefix":[null,0,1],"length":3},
    "frameTable":{"func":[0,1,2],"line":[4,9,3],"inlineDepth":[0,0,1],"address":[16,32,32],"length":3},
    "funcTable":{"name":[0,1,2],"resource":[0,0,0],"fileName":[3,3,3],"lineNumber":[1,null,2],"isJS":[false,false,false],"length":3},
    "resourceTable":{"lib":[0],"name":[4],"length":1},"stringArray":["main","f","g","a.c","a"]}]}"#;

/// The same with the tables of version 70, which threads share.
const NEW: &str = r#"{"meta":{"interval":2,"preprocessedProfileVersion":70,"product":"x","sampleUnits":{"threadCPUDelta":"µs"}},
    "libs":[{"name":"a","path":"/bin/a"}],"threads":[{"name":"main","processName":"a","pid":"7","tid":8,
    "samples":{"stack":[2,2,1,null],"weight":null,"weightType":"samples","threadCPUDelta":[null,5,6,1],"time":[0,1,2,3],"length":4}}],
    "shared":{"stackTable":{"frame":[0,1,2],"prefixOffset":[0,1,1],"length":3},
    "frameTable":{"func":[0,1,2],"line":[4,9,3],"inlineDepth":[0,0,1],"address":[16,32,32],"lib":[0,0,0],"length":3},
    "funcTable":{"name":[0,1,2],"resource":[-1,-1,-1],"source":[0,0,0],"lineNumber":[1,null,2],"isJS":[false,false,false],"length":3},
    "resourceTable":{"name":[],"length":0},"sources":{"filename":[3],"length":1},"stringArray":["main","f","g","a.c","a"]}}"#;

#[test]
fn tables_of_old_and_new_versions_say_the_same() {
    for text in [OLD, NEW] {
        let (format, profile, report) = read_any(text.as_bytes()).unwrap();
        assert_eq!((format, report.is_complete()), (Format::Firefox, true), "{report:?}");
        let cost =
            |name: &str, metric: &str| totals(&profile).get(&(name.to_owned(), metric.to_owned())).copied();
        assert_eq!(
            (cost("g", "samples"), cost("g", "time"), cost("g", "cpu time")),
            (Some(2), Some(4_000_000), Some(5000))
        );
        // The thread itself, outside of all functions.
        assert_eq!((cost("f", "samples"), cost("", "samples")), (Some(1), Some(1)));
        let g = profile
            .functions
            .entries()
            .iter()
            .find(|function| &profile.strings[function.name] == "g")
            .unwrap();
        assert_eq!((g.kind, g.line, &profile.strings[g.file]), (FunctionKind::Inlined, 2, "a.c"));
        assert_eq!(&profile.strings[profile.modules[g.module.unwrap()].path], "/bin/a");
        let sites: Vec<_> = profile.tree.nodes().filter_map(|node| profile.tree.call_site(node)).collect();
        assert_eq!(sites.iter().map(|&line| profile.lines[line].line).collect::<Vec<_>>(), [4, 9]);
        let thread = &profile.threads[0];
        assert_eq!((thread.tid, profile.processes[0].pid, thread.name.as_str()), (8, 7, "main"));
    }
}

/// As the profiler wrote it before the format had versions: places are in the names of scripts, libraries have other keys.
const UNVERSIONED: &str = r#"{"meta":{"interval":1,"product":"Firefox"},"threads":[{"name":"GeckoMain",
    "libs":[{"name":"/opt/firefox","pdbName":"firefox","start":4096,"end":8192}],
    "samples":{"length":4,"stack":[1,2,2,3],"time":[0,1,2,3],"frameNumber":[null,null,null,null]},
    "stackTable":{"length":4,"prefix":[null,0,1,1],"frame":[0,1,2,3]},
    "frameTable":{"length":4,"func":[0,1,2,3],"line":[null,null,34,null],"address":[-1,10,-1,-1]},
    "funcTable":{"length":4,"name":[0,1,2,3],"resource":[-1,0,1,1],"address":[-1,10,-1,-1],"isJS":[false,false,true,true]},
    "resourceTable":{"length":2,"type":[1,5],"name":[4,5],"lib":[0]},
    "stringArray":["(root)","Startup::XRE_Main","frobnicate (load.js -> chrome://blargh:34)","a.js:7","firefox","chrome://blargh"]}]}"#;

#[test]
fn profiles_of_before_version_4_have_places_in_names() {
    let (format, profile, report) = read_any(UNVERSIONED.as_bytes()).unwrap();
    assert_eq!((format, report.is_complete()), (Format::Firefox, true), "{report:?}");
    let functions =
        profile.functions.entries().iter().filter(|function| function.kind == FunctionKind::Interpreted);
    let scripts: Vec<_> = functions
        .map(|function| (&profile.strings[function.name], &profile.strings[function.file], function.line))
        .collect();
    assert_eq!(scripts, [("frobnicate", "chrome://blargh", 34), ("a.js", "a.js", 7)]);
    assert_eq!(totals(&profile)[&("frobnicate".to_owned(), "samples".to_owned())], 2);
    let main = profile
        .functions
        .entries()
        .iter()
        .find(|function| &profile.strings[function.name] == "Startup::XRE_Main");
    assert_eq!(&profile.strings[profile.modules[main.unwrap().module.unwrap()].path], "/opt/firefox");
    // From version 4 on, a name is a name.
    let newer = UNVERSIONED.replace("\"interval\":1", "\"preprocessedProfileVersion\":4,\"interval\":1");
    let (_, profile, _) = read_any(newer.as_bytes()).unwrap();
    assert!(totals(&profile).keys().any(|(name, _)| name == "a.js:7"));
    (0..UNVERSIONED.len()).for_each(|length| drop(firefox::read(&UNVERSIONED.as_bytes()[..length])));
}

#[test]
fn the_profilers_own_file_of_perfs_samples_has_the_costs_that_it_shows() {
    let (format, profile, _) = read_any(&fixture("firefox/perf.json")).unwrap();
    assert_eq!(format, Format::Firefox);
    let mut samples = totals(&profile);
    samples.retain(|(_, metric), _| metric == "samples");
    let own: Vec<_> = samples.iter().map(|((name, _), count)| (name.as_str(), *count)).collect();
    let expected = [
        ("__GI___libc_read", 1),
        ("__GI___pthread_disable_asynccancel", 1),
        ("fdget_pos", 1),
        ("poly", 35),
        ("read_zero", 5),
    ];
    assert_eq!(own, expected);
    assert_eq!(profile.threads.len(), 2);
}

#[test]
fn written_profiles_are_read_back() {
    let profile = synthetic(&Shape::SMALL);
    for (metric, description) in profile.cost_metrics() {
        let (format, read, report) = read_any(&written(&profile, metric.raw())).unwrap();
        assert_eq!((format, report.is_complete()), (Format::Firefox, true));
        let there = totals(&read);
        let mut here = totals(&profile);
        here.retain(|(_, name), _| *name == description.name);
        assert_eq!(there, here);
        assert!(
            read.threads.iter().all(|thread| profile.threads.iter().any(|known| known.name == thread.name))
        );
    }
}

/// The marks of a profile: when, of which thread, of which kind, and their names.
fn marks(profile: &Profile) -> Vec<(u64, u32, MarkKind, &str)> {
    let mark = |mark: &Mark| {
        (mark.time_ns, profile.threads[mark.thread.index()].tid, mark.kind, &profile.strings[mark.name])
    };
    profile.timeline.as_ref().unwrap().marks.iter().map(mark).collect()
}

#[test]
fn marks_of_user_timing_are_read_and_written() {
    let timing =
        |kind: &str, name: &str| format!(r#"{{"type":"UserTiming","entryType":"{kind}","name":{name}}}"#);
    let data = [
        "null".to_owned(),
        timing("mark", "\"load\""),
        timing("measure", "\"all\""),
        r#"{"type":"Text","name":"page"}"#.to_owned(),
        // The number of a text.
        timing("mark", "3"),
        timing("mark", "\"late\""),
    ]
    .join(",");
    let markers = format!(r#""markers":{{"data":[{data}],"startTime":[0,1.5,1,1,2,99]}},"stackTable""#);
    let idle = format!(
        r#","threads":[{{"name":"idle","pid":"7","tid":9,"stringArray":[],"markers":{{"data":[{}],"startTime":[1]}}}},"#,
        timing("mark", "\"rest\"")
    );
    let text = OLD.replacen("\"stackTable\"", &markers, 1).replacen(",\"threads\":[", &idle, 1);
    let (_, profile, report) = read_any(text.as_bytes()).unwrap();
    let expected = [
        (1_000_000, 9, MarkKind::Mark, "rest"),
        (1_500_000, 8, MarkKind::Mark, "load"),
        (2_000_000, 8, MarkKind::Mark, "a.c"),
    ];
    assert_eq!(marks(&profile), expected);
    assert!(report.notes.iter().any(|note| note.contains("left out: 1")), "{report:?}");
    let metric = profile.cost_metrics().next().unwrap().0;
    let (_, again, _) = read_any(&written(&profile, metric.raw())).unwrap();
    assert_eq!(marks(&again), expected);
}

/// As Firefox wrote it before the profiler processed it, with a process of its own for a page.
const RAW: &str = r#"{"meta":{"version":9,"interval":1,"product":"Firefox"},
    "libs":[{"name":"firefox","path":"/opt/firefox","start":4096,"end":8192}],"pausedRanges":[],
    "threads":[{"name":"GeckoMain","tid":3,
        "samples":{"schema":{"stack":0,"time":1,"rss":3},"data":[[1,0,0],[2,1],[2,2],[3,3],[null,4]]},
        "markers":{"schema":{"name":0},"data":[]},
        "stackTable":{"schema":{"prefix":0,"frame":1},"data":[[null,0],[0,1],[1,2],[1,3]]},
        "frameTable":{"schema":{"location":0,"implementation":1,"optimizations":2,"line":3,"category":4},
            "data":[[0],[1],[2,null,null,4391,16],[3,4,null,36]]},
        "stringTable":["(root)","0x1a45","Startup::XRE_Main","frobnicate (chrome://blargh:34)","baseline"]}],
    "processes":[{"meta":{"version":9},"libs":[],"processes":[],"threads":[{"name":"Content","tid":5,
        "samples":{"schema":{"stack":0,"time":1},"data":[[0,0]]},
        "stackTable":{"schema":{"prefix":0,"frame":1},"data":[[null,0]]},
        "frameTable":{"schema":{"location":0,"line":1},"data":[[0]]},"stringTable":["paint (a.js:7:9)"]}]}]}"#;

#[test]
fn profiles_that_firefox_itself_wrote_are_read() {
    let (format, profile, _) = read_any(RAW.as_bytes()).unwrap();
    assert_eq!(format, Format::Firefox);
    let mut samples = totals(&profile);
    samples.retain(|(_, metric), _| metric == "samples");
    let own: Vec<_> = samples.iter().map(|((name, _), count)| (name.as_str(), *count)).collect();
    let expected = [("", 1), ("0x1a45", 1), ("Startup::XRE_Main", 2), ("frobnicate", 1), ("paint", 1)];
    assert_eq!(own, expected);
    // One sample of 1 ms each.
    assert_eq!(profile.run_cost(profile.find_metric("time").unwrap()), 6_000_000);
    let of = |name: &str| {
        let mut all = profile.functions.entries().iter();
        *all.find(|function| &profile.strings[function.name] == name).unwrap()
    };
    for (name, file, line) in [("frobnicate", "chrome://blargh", 34), ("paint", "a.js", 7)] {
        let function = of(name);
        let seen = (&profile.strings[function.file], function.line, function.kind);
        assert_eq!(seen, (file, line, treering_profile::FunctionKind::Interpreted));
    }
    let module = of("0x1a45").module.unwrap();
    assert_eq!(&profile.strings[profile.modules[module].path], "/opt/firefox");
    let names: Vec<_> = profile.threads.iter().map(|thread| (thread.name.as_str(), thread.tid)).collect();
    assert_eq!(names, [("GeckoMain", 3), ("Content", 5)]);
    (0..RAW.len()).for_each(|length| drop(firefox::read(&RAW.as_bytes()[..length])));
}

/// 1.5 bytes were 2 without a word.
#[test]
fn weights_that_are_rounded_are_said_to_be() {
    let read = |weights: &str, sort: &str| {
        let text = OLD.replace(
            "\"weight\":null,\"weightType\":\"samples\"",
            &format!("\"weight\":{weights},\"weightType\":\"{sort}\""),
        );
        firefox::read(text.as_bytes()).unwrap().1.notes.iter().any(|note| note.contains("are rounded"))
    };
    assert!(read("[1.5,2,3,4]", "bytes") && read("[1.5,2,3,4]", "samples"));
    assert!(!read("[1,2,3,4]", "bytes") && !read("[1.5,2,3,4]", "tracing-ms"));
}

#[test]
fn damage_is_told_by_thread_and_row() {
    let error =
        |from: &str, to: &str| firefox::read(OLD.replace(from, to).as_bytes()).unwrap_err().to_string();
    let row = |table: &str, row: usize| {
        format!("thread 0: row {row} of the {table} is missing or not before the row that refers to it")
    };
    assert_eq!(error("\"stack\":[2", "\"stack\":[9"), row("stackTable", 9));
    assert_eq!(error("\"prefix\":[null,0,1]", "\"prefix\":[null,0,2]"), row("stackTable", 2));
    assert_eq!(error("\"func\":[0,1,2]", "\"func\":[0,1,5]"), row("funcTable", 5));
    assert_eq!(error("\"name\":[0,1,2]", "\"name\":[0,1,50]"), row("stringArray", 50));
    assert_eq!(
        error("\"weight\":null", "\"weight\":[1,-1,1,1]"),
        "sample 1 of thread 0: its weight is below 0 or too large"
    );
    assert_eq!(error("\"stackTable\"", "\"x\""), "thread 0: it has samples and no stackTable");
    assert_eq!(error("\"stack\":[2,2,1,null]", "\"stack\":[]"), "it holds no samples");
    let rows = r#"{"meta":{"version":4},"libs":[],"threads":[{"samples":{"schema":{},"data":[]},"stackTable":{"schema":{"prefix":0},"data":[]}}]}"#;
    assert_eq!(firefox::read(rows.as_bytes()).unwrap_err(), Problem::Empty("samples").into());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn costs_of_any_profile_survive(steps in prop::collection::vec(step(), 0..30)) {
        let profile = profile(&steps);
        for metric in [0, 1] {
            let cost = profile.run_cost(MetricId::new(metric));
            match firefox::read(&written(&profile, metric)) {
                Ok((read, _)) => prop_assert_eq!(read.run_cost(MetricId::new(0)), cost),
                Err(error) => prop_assert_eq!((error, cost), (Problem::Empty("samples").into(), 0)),
            }
        }
    }
}
