//! V8's `.cpuprofile` and the traces of Chrome, which may hold the same.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::{fixture, totals};
use treering_formats::cpuprofile;
use treering_formats::{Format, chrome_trace, read_any};
use treering_profile::{FunctionKind, MetricId, Profile};
use treering_testing::synthetic::{Shape, synthetic};

/// The self cost of a function in microseconds.
fn own(profile: &Profile, name: &str) -> u64 {
    let time = "time".to_owned();
    totals(profile).get(&(name.to_owned(), time)).map_or(0, |cost| cost / 1000)
}

#[test]
fn times_are_those_that_speedscope_shows() {
    let (profile, report) = cpuprofile::read(&fixture("cpuprofile/shapes.cpuprofile")).unwrap();
    assert!(report.is_complete(), "{report:?}");
    for (name, expected) in
        [("sum", 552_991), ("square", 7834), ("text", 177_726), ("(garbage collector)", 145_629)]
    {
        assert_eq!(own(&profile, name), expected, "{name}");
    }
    // Speedscope gives the last sample no time; it lasts until the end.
    assert_eq!(profile.run_cost(profile.find_metric("time").unwrap()), (1_014_985 + 670) * 1000);
    assert_eq!(profile.run_cost(profile.find_metric("samples").unwrap()), 152);
    let mut functions = profile.functions.entries().iter();
    let sum = functions.find(|function| &profile.strings[function.name] == "sum").unwrap();
    assert_eq!((sum.line, sum.kind), (3, FunctionKind::Interpreted));
    assert!(profile.strings[sum.file].ends_with("shapes.js"));
}

#[test]
fn lines_have_the_samples_that_ran_in_them() {
    let (profile, _) = cpuprofile::read(&fixture("cpuprofile/shapes.cpuprofile")).unwrap();
    let samples = profile.find_metric("samples").unwrap();
    assert!(profile.line_costs.iter().all(|cost| cost.metric == samples));
    let lines: u64 = profile.line_costs.iter().map(|cost| cost.cost).sum();
    assert!(lines > 100 && lines <= 152, "{lines}");
}

#[test]
fn idle_time_costs_nothing_and_times_may_step_back() {
    let text = br#"{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"},"children":[2,3]},
        {"id":2,"callFrame":{"functionName":"f","url":"a.js","lineNumber":0}},
        {"id":3,"callFrame":{"functionName":"(idle)","url":"","lineNumber":-1}}],
        "startTime":0,"endTime":100,"samples":[2,3,2],"timeDeltas":[40,20,-30]}"#;
    let (profile, report) = cpuprofile::read(text).unwrap();
    // In order: f at 30, f at 40, idle from 60 to 100.
    assert_eq!(own(&profile, "f"), 30);
    assert_eq!(profile.run_cost(profile.find_metric("samples").unwrap()), 2);
    assert_eq!(report.notes, ["time in which nothing ran, (idle), is no cost: 0.040 ms"]);
}

/// The cost of a function with this name was lost when a file of Treering was read.
#[test]
fn a_function_called_idle_keeps_its_cost() {
    let profile = read_any(b"main;(idle) 5\nmain;f 3\n").unwrap().1;
    let mut file = Vec::new();
    let _ = cpuprofile::write(&profile, MetricId::new(0), &mut file).unwrap();
    let (_, read, report) = read_any(&file).unwrap();
    assert_eq!((totals(&read), report.notes), (totals(&profile), Vec::new()));
}

#[test]
fn written_profiles_are_read_back() {
    let (profile, _) = cpuprofile::read(&fixture("cpuprofile/shapes.cpuprofile")).unwrap();
    let mut file = Vec::new();
    let dropped = cpuprofile::write(&profile, profile.find_metric("time").unwrap(), &mut file).unwrap();
    assert_eq!(dropped.notes, ["when costs arose", "source lines and call sites"]);
    let (format, read, _) = read_any(&file).unwrap();
    assert_eq!(format, Format::CpuProfile);
    assert_eq!(totals(&read), totals(&profile));

    let profile = synthetic(&Shape::SMALL);
    let mut file = Vec::new();
    let dropped = cpuprofile::write(&profile, MetricId::new(1), &mut file).unwrap();
    assert!(dropped.notes.iter().any(|note| note.starts_with("threads")), "{dropped:?}");
    let read = cpuprofile::read(&file).unwrap().0;
    assert_eq!(read.run_cost(MetricId::new(0)), profile.run_cost(MetricId::new(1)));
}

#[test]
fn nodes_that_are_no_tree_are_refused() {
    let read = |nodes: &str| {
        let text = format!("{{\"nodes\":[{nodes}],\"samples\":[1],\"timeDeltas\":[1]}}");
        cpuprofile::read(text.as_bytes()).unwrap_err().to_string()
    };
    let tangled = |id| format!("node {id}: it has two callers or calls itself, so the nodes are no tree");
    let node =
        |id: u32, children: &str| format!("{{\"id\":{id},\"callFrame\":{{}},\"children\":[{children}]}}");
    assert_eq!(read(&node(1, "1")), tangled(1));
    assert_eq!(read(&[node(1, "3"), node(2, "3"), node(3, "")].join(",")), tangled(3));
    assert_eq!(read(&[node(1, "2"), node(2, "1")].join(",")), tangled(1));
    assert_eq!(read(&node(2, "")), "node 1: a sample or node names it, and it is missing");
    let error = cpuprofile::read(b"{\"nodes\":[{\"id\":1,\"callFrame\":{}}]}").unwrap_err();
    assert_eq!(error.to_string(), "it holds no samples");
}

#[test]
fn calls_of_traces_have_the_times_that_speedscope_shows() {
    let (profile, report) = chrome_trace::read(&fixture("chrome-trace/events.json")).unwrap();
    for (name, expected) in [
        ("V8.DeserializeIsolate", 18_372),
        ("V8.DeserializeContext", 11_259),
        ("V8.GCScavenger", 145_787),
        ("MinorGC", 6951),
        ("V8.DeoptimizeCode", 48),
    ] {
        assert_eq!(own(&profile, name), expected, "{name}");
    }
    assert_eq!(profile.threads.iter().filter(|thread| thread.name == "JavaScriptMainThread").count(), 1);
    assert_eq!(profile.metadata.losses.unbalanced_leaves, 0, "{report:?}");
    // Every begin is a call.
    let text = String::from_utf8(fixture("chrome-trace/events.json")).unwrap();
    let calls: u64 = profile.tree.nodes().map(|node| profile.tree.calls(node)).sum();
    let begun = text.matches("\"ph\":\"B\"").count() + text.matches("\"ph\":\"X\"").count();
    assert_eq!(calls, begun as u64);
}

#[test]
fn samples_of_v8_in_traces_are_put_together() {
    let (profile, report) = chrome_trace::read(&fixture("chrome-trace/samples.json")).unwrap();
    for (name, expected) in
        [("sum", 951_915), ("text", 244_654), ("(garbage collector)", 108_445), ("(program)", 88_592)]
    {
        assert_eq!(own(&profile, name), expected, "{name}");
    }
    assert!(report.notes.iter().any(|note| note.starts_with("calls beside the samples")), "{report:?}");
}

#[test]
fn arrays_that_were_cut_short_are_read_as_far_as_they_go() {
    let text = "[{\"ph\":\"X\",\"name\":\"a\",\"ts\":10,\"dur\":8,\"pid\":1,\"tid\":1},\n{\"ph\":\"B\",\"na";
    let (format, profile, report) = read_any(text.as_bytes()).unwrap();
    assert_eq!((format, report.unfinished), (Format::ChromeTrace, true));
    assert_eq!(own(&profile, "a"), 8);
    let wrong = chrome_trace::read(b"[{\"ph\":\"X\",\"ts\":1,\"name\":\"a\"},\n {\"ph\":5}]").unwrap_err();
    assert!(wrong.to_string().contains("line 2, column"), "{wrong}");
    assert_eq!(
        chrome_trace::read(b"[{\"ph\":\"i\",\"ts\":1}]").unwrap_err().to_string(),
        "it holds no calls (B, E, X) and no samples"
    );
}

#[test]
fn samples_with_stack_frames_are_read() {
    let text = r#"{"traceEvents":[],"samples":[{"ts":"10","pid":1,"tid":"2","sf":2,"weight":"1"},{"ts":"14","pid":1,"tid":"2","sf":1},
        {"ts":"20","pid":1,"tid":"2","sf":1}],"stackFrames":{"1":{"name":"main"},"2":{"name":"f","parent":1}}}"#;
    let (profile, _) = chrome_trace::read(text.as_bytes()).unwrap();
    assert_eq!((own(&profile, "f"), own(&profile, "main")), (4, 6));
}

/// The profile of a trace, and the share of the whole that a function has in the metric, in thousandths.
fn shares(text: &str, metric: &str, name: &str) -> (Profile, u64) {
    let (profile, _) = chrome_trace::read(text.as_bytes()).unwrap();
    let run = profile.run_cost(profile.find_metric(metric).unwrap());
    let own = totals(&profile).get(&(name.to_owned(), metric.to_owned())).copied().unwrap_or(0);
    (profile, own * 1000 / run)
}

#[test]
fn weights_of_samples_are_what_they_cost() {
    let trace = |samples: &str| {
        format!(
            "{{\"traceEvents\":[],\"stackFrames\":{{\"1\":{{\"name\":\"hot\"}},\"2\":{{\"name\":\"rare\"}}}},\"samples\":[{samples}]}}"
        )
    };
    let sample = |ts: u64, frame: u32, name: &str, weight: &str| {
        format!("{{\"tid\":1,\"ts\":{ts},\"name\":\"{name}\",\"sf\":{frame},\"weight\":{weight}}}")
    };
    // A pause of the program is no cost of the function that was seen before it.
    let cycles = [(0, 1, "90"), (10, 1, "90"), (20, 2, "5"), (5000, 1, "90")];
    let text = trace(&cycles.map(|(ts, frame, weight)| sample(ts, frame, "cycles", weight)).join(","));
    let (profile, share) = shares(&text, "cycles", "rare");
    assert_eq!((share, profile.run_cost(profile.find_metric("cycles").unwrap())), (18, 275));
    assert_eq!(profile.run_cost(profile.find_metric("samples").unwrap()), 4);
    assert!(profile.find_metric("time").is_none());
    // Nor where all weights are equal, or have decimals, or are of two events.
    let equal = trace(&cycles.map(|(ts, frame, _)| sample(ts, frame, "cycles", "\"1\"")).join(","));
    assert_eq!(shares(&equal, "cycles", "rare").1, 250);
    let parts = trace(&cycles.map(|(ts, frame, _)| sample(ts, frame, "load", "0.25")).join(","));
    assert_eq!(shares(&parts, "milliload", "rare").0.run_cost(MetricId::new(0)), 1000);
    let two = trace(&[sample(0, 1, "a", "3"), sample(1, 2, "b", "7"), sample(2, 2, "a", "1")].join(","));
    assert_eq!((shares(&two, "a", "rare").1, shares(&two, "b", "rare").1), (250, 1000));
    let below = chrome_trace::read(trace(&sample(0, 1, "a", "-3")).as_bytes()).unwrap_err();
    assert_eq!(below.to_string(), "the weight -3 of a sample is below 0 or too large");
}

#[test]
fn a_chunk_may_give_its_times_twice() {
    let chunk = |inner: &str, outer: &str| {
        format!(
            "[{{\"ph\":\"P\",\"name\":\"ProfileChunk\",\"pid\":1,\"tid\":1,\"id\":\"1\",\"ts\":1,\"args\":{{\"data\":{{\"endTime\":400,\
             \"cpuProfile\":{{\"startTime\":0,\"nodes\":[{{\"id\":1,\"callFrame\":{{\"functionName\":\"hot\"}}}}],\"samples\":[1,1,1]{inner}}}\
             {outer}}}}}}}]"
        )
    };
    let times = ",\"timeDeltas\":[100,100,100]";
    for (inner, outer) in [(times, times), (times, ""), ("", times)] {
        let (profile, _) = chrome_trace::read(chunk(inner, outer).as_bytes()).unwrap();
        assert_eq!(own(&profile, "hot"), 300, "{inner} {outer}");
    }
}

#[test]
fn callees_that_are_not_told_are_counted() {
    let nodes = "\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"(root)\"},\"children\":[2,9]},\
        {\"id\":2,\"callFrame\":{\"functionName\":\"hot\"}}],\"startTime\":0,\"endTime\":300,\"samples\":[2,2,2],\
        \"timeDeltas\":[0,100,100]";
    let trace = format!(
        "[{{\"ph\":\"I\",\"name\":\"CpuProfile\",\"ts\":1,\"args\":{{\"data\":{{\"cpuProfile\":{{{nodes}}}}}}}}}]"
    );
    for (profile, report) in [
        cpuprofile::read(format!("{{{nodes}}}").as_bytes()).unwrap(),
        chrome_trace::read(trace.as_bytes()).unwrap(),
    ] {
        assert_eq!(own(&profile, "hot"), 300);
        assert!(report.notes.iter().any(|note| note.ends_with("not in the file: 1")), "{report:?}");
    }
}
