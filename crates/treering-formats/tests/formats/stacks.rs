//! Formats whose files are stacks or trees of functions of other languages: pyinstrument, stackprof, `jfr print`, logs of
//! V8, and `.cpuprofile` of old versions.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::collections::BTreeMap;

use common::{fixture, totals};
use treering_formats::{Format, cpuprofile, jfr_text, pyinstrument, read_any, stackprof, v8_log};
use treering_profile::{FunctionKind, Profile, RecursionRule};

/// The own cost of every function that has one.
fn own(profile: &Profile, metric: &str) -> BTreeMap<String, u64> {
    let all = totals(profile).into_iter().filter(|((_, known), _)| known == metric);
    all.map(|((name, _), cost)| (name, cost)).collect()
}

fn map(entries: &[(&str, u64)]) -> BTreeMap<String, u64> {
    entries.iter().map(|(name, cost)| ((*name).to_owned(), *cost)).collect()
}

/// Microseconds as Python's json module adds them up: each time without those of the functions in it.
#[test]
fn times_of_pyinstrument_are_those_of_its_tree() {
    let (format, profile, report) = read_any(&fixture("pyinstrument/work.json")).unwrap();
    assert_eq!((format, report.is_complete()), (Format::Pyinstrument, true), "{report:?}");
    let own =
        own(&profile, "time").into_iter().map(|(name, ns)| (name, ns / 1000)).collect::<BTreeMap<_, _>>();
    assert_eq!(own, map(&[("leaf", 859_562), ("main", 11_697)]));
    assert_eq!(profile.run_cost(profile.find_metric("time").unwrap()), 871_259_000);
    assert_eq!(
        (profile.runs[0].command.as_slice(), profile.metadata.losses.samples),
        (&["work.py".to_owned()][..], 63)
    );
    // As deep as a program recurses.
    let depth = 2000;
    let deep = format!(
        "{{\"sample_count\":1,\"root_frame\":{}{}}}",
        "{\"function\":\"f\",\"file_path\":\"a.py\",\"line_no\":1,\"time\":1.0,\"children\":[".repeat(depth),
        "]}".repeat(depth)
    );
    let (profile, _) = pyinstrument::read(deep.as_bytes()).unwrap();
    assert_eq!(
        (profile.tree.len(), profile.run_cost(profile.find_metric("time").unwrap())),
        (depth + 1, 1_000_000_000)
    );
}

const STACKPROF: &str = r#"{"version":1.2,"mode":"wall","interval":1000,"samples":6,"gc_samples":1,"missed_samples":2,
    "frames":{
    "11":{"name":"<main>","file":"a.rb","line":null,"total_samples":5,"samples":1,"edges":{"12":4},"lines":{"9":[5,1]}},
    "12":{"name":"Object#work","file":"a.rb","line":2,"total_samples":4,"samples":4,"lines":{"3":[3,3],"4":[1,1]}},
    "13":{"name":"(garbage collection)","file":"","total_samples":1,"samples":1}}
    RAW}"#;

#[test]
fn stackprof_is_read_with_and_without_stacks() {
    let raw = STACKPROF.replace("RAW", ",\"raw\":[2,11,12,4,1,11,1,1,13,1]");
    let (format, profile, report) = read_any(raw.as_bytes()).unwrap();
    assert_eq!((format, report.is_complete()), (Format::Stackprof, true));
    let expected = map(&[("(garbage collection)", 1), ("<main>", 1), ("Object#work", 4)]);
    assert_eq!(own(&profile, "samples"), expected);
    assert_eq!(profile.run_cost(profile.find_metric("time").unwrap()), 6_000_000);
    assert_eq!((profile.metadata.losses.lost_samples, profile.is_arcs_only()), (2, false));
    let (_, flat, report) = read_any(STACKPROF.replace("RAW", "").as_bytes()).unwrap();
    assert!(report.notes[0].starts_with("the file has no stacks"), "{report:?}");
    assert_eq!((own(&flat, "samples"), flat.is_arcs_only()), (expected, true));
    let samples = flat.find_metric("samples").unwrap();
    assert_eq!(flat.arcs[0].total_costs.iter().find(|(metric, _)| *metric == samples).unwrap().1, 4);
    let of_samples = flat.line_costs.iter().filter(|part| part.metric == samples);
    let lines: BTreeMap<u32, u64> = of_samples.map(|part| (flat.lines[part.line].line, part.cost)).collect();
    assert_eq!(lines, [(3, 3), (4, 1), (9, 1)].into());
    for (cut, at) in [("[2,11,12]", "number 0"), ("[1,11,1,9,11]", "number 3"), ("[1,77,1]", "number 0")] {
        let text = STACKPROF.replace("RAW", &format!(",\"raw\":{cut}"));
        assert!(stackprof::read(text.as_bytes()).unwrap_err().to_string().contains(at), "{cut}");
    }
    let large = STACKPROF.replace("RAW", ",\"raw\":[1,11,18446744073709551615]");
    let error = stackprof::read(large.as_bytes()).unwrap_err().to_string();
    assert_eq!(error, "number 2 of `raw`: a sum of costs below 2^64 is expected");
    (0..raw.len()).for_each(|end| drop(stackprof::read(&raw.as_bytes()[..end])));
}

const JFR: &str = "jdk.ExecutionSample {\n  startTime = 10:11:12.131 (2026-11-27)\n  sampledThread = \"main\" (javaThreadId = 1)\n  \
    state = \"STATE_RUNNABLE\"\n  stackTrace = [\n    Main.work(int) line: 12\n    Main.main(String[]) line: 5\n  ]\n}\n\n\
    jdk.ExecutionSample {\n  startTime = 10:11:12.151 (2026-11-27)\n  sampledThread = \"pool-1\" (javaThreadId = 22)\n  \
    stackTrace = [\n    Main$1.run() line: 30\n    java.lang.Thread.run() line: 840\n    ...\n  ]\n}\n\n\
    jdk.CPULoad {\n  startTime = 10:11:13.000 (2026-11-27)\n  jvmUser = 4.51%\n}\n\n\
    jdk.ObjectAllocationSample {\n  startTime = 10:11:12.151 (2026-11-27)\n  weight = 1.2 MB\n  \
    eventThread = \"main\" (javaThreadId = 1)\n  stackTrace = [\n    Main.work(int) line: 13\n  ]\n}\n\n";

#[test]
fn text_of_jfr_print_is_read_by_kind_of_event() {
    let (format, profile, report) = read_any(JFR.as_bytes()).unwrap();
    assert_eq!(format, Format::JfrText);
    assert_eq!(own(&profile, "samples"), map(&[("Main$1.run()", 1), ("Main.work(int)", 1)]));
    assert_eq!(own(&profile, "jdk.ObjectAllocationSample"), map(&[("Main.work(int)", 1)]));
    assert_eq!(profile.metadata.losses.truncated_stacks, 1);
    let notes = report.notes.join("\n");
    assert!(
        notes.contains("without a stack trace are not read: 1") && notes.contains("are cut: 1"),
        "{notes}"
    );
    let threads: Vec<_> = profile.threads.iter().map(|thread| (thread.name.as_str(), thread.tid)).collect();
    assert_eq!(threads, [("main", 1), ("pool-1", 22)]);
    let kinds = |at: u32| format!("jdk.E{at} {{\n  stackTrace = [\n    a.b() line: 1\n  ]\n}}\n\n");
    let many: String = (0..129).map(kinds).collect();
    let error = jfr_text::read(many.as_bytes()).unwrap_err().to_string();
    assert_eq!(error, "there are more types of events than the 128 that can be read");
    for end in 0..JFR.len() {
        let Ok((cut, report)) = jfr_text::read(&JFR.as_bytes()[..end]) else { continue };
        assert_eq!(cut.validate(), Ok(()));
        let in_event =
            !JFR[..end].ends_with("}\n\n") && !JFR[..end].ends_with("}\n") && !JFR[..end].ends_with('}');
        // A cut within the name of an event has not begun it.
        assert!(
            report.unfinished || !in_event || !JFR[..end].rsplit('\n').next().unwrap().ends_with(" {"),
            "{end}"
        );
    }
}

#[test]
fn profiles_of_old_versions_of_v8_have_a_head() {
    let text = r#"{"typeId":"CPU","uid":"1","title":"x","head":{"functionName":"(root)","url":"","lineNumber":0,"id":1,"hitCount":0,
        "children":[{"functionName":"(idle)","url":"","lineNumber":0,"id":4,"hitCount":1,"children":[]},
        {"functionName":"hot","url":"a.js","lineNumber":7,"id":2,"hitCount":2,"positionTicks":[{"line":8,"ticks":2}],
        "children":[{"functionName":"inner","url":"a.js","lineNumber":1,"id":3,"hitCount":1,"children":[]}]}]},
        "startTime":10,"endTime":10.0005,"samples":[2,3,4,2],"timestamps":[10000000,10000100,10000300,10000400]}"#;
    let (format, profile, report) = read_any(text.as_bytes()).unwrap();
    assert_eq!(format, Format::CpuProfile);
    assert_eq!(own(&profile, "time"), map(&[("hot", 100_000), ("inner", 200_000)]));
    assert_eq!(own(&profile, "samples"), map(&[("hot", 2), ("inner", 1)]));
    assert!(report.notes.iter().any(|note| note.contains("(idle), is no cost: 0.100 ms")), "{report:?}");
    let mut functions = profile.functions.entries().iter();
    let hot = functions.find(|function| &profile.strings[function.name] == "hot").unwrap();
    assert_eq!(
        (hot.line, profile.lines[profile.line_costs[0].line].line, profile.recursion),
        (7, 8, RecursionRule::Full)
    );
    // Without times, at equal intervals.
    let spread = text.replace(",\"timestamps\":[10000000,10000100,10000300,10000400]", "");
    let (profile, _) = cpuprofile::read(spread.as_bytes()).unwrap();
    let all = own(&profile, "time");
    assert_eq!(all["hot"], 2 * all["inner"]);
    let depth = 1000;
    let deep = format!(
        "{{\"head\":{}{},\"startTime\":0,\"endTime\":1,\"samples\":[{}],\"timestamps\":[5]}}",
        (1..=depth)
            .map(|id| format!("{{\"functionName\":\"f\",\"id\":{id},\"children\":["))
            .collect::<String>(),
        "]}".repeat(depth),
        depth
    );
    let (profile, _) = cpuprofile::read(deep.as_bytes()).unwrap();
    assert_eq!(
        (profile.tree.len(), profile.run_cost(profile.find_metric("samples").unwrap())),
        (depth + 1, 1)
    );
    (0..text.len()).for_each(|end| drop(cpuprofile::read(&text.as_bytes()[..end])));
}

/// Ticks in each function of JavaScript, and in it or in what it called, as the lines of `processed.txt`.
fn ticks(profile: &Profile) -> Vec<String> {
    let samples = profile.find_metric("samples").unwrap();
    let mut ticks: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for node in profile.tree.nodes() {
        let cost = profile.tree.self_cost(samples, node);
        let path: Vec<_> = profile.tree.path(node).collect();
        let mut functions: Vec<_> = path.iter().map(|&node| profile.tree.function(node)).collect();
        let own = functions[0];
        functions.sort_unstable();
        functions.dedup();
        for id in functions {
            let function = &profile.functions[id];
            if matches!(function.kind, FunctionKind::Interpreted | FunctionKind::Jit) && cost > 0 {
                let [name, file] = [function.name, function.file].map(|text| &profile.strings[text]);
                let sums = ticks.entry(format!("{name} {file}:{}", function.line)).or_default();
                sums[0] += if id == own { cost } else { 0 };
                sums[1] += cost;
            }
        }
    }
    ticks.into_iter().map(|(function, [own, total])| format!("{own} {total} {function}")).collect()
}

#[test]
fn ticks_of_v8_are_in_the_functions_of_its_own_processor() {
    let (format, profile, report) = read_any(&fixture("v8-log/work.log.gz")).unwrap();
    assert_eq!((format, report.unfinished), (Format::V8Log, false), "{report:?}");
    let processed = String::from_utf8(fixture("v8-log/processed.txt")).unwrap();
    let (all, functions) = processed.split_once('\n').unwrap();
    let samples = profile.find_metric("samples").unwrap();
    let name = |node| &profile.strings[profile.functions[profile.tree.function(node)].name];
    let in_garbage = |&node: &_| profile.tree.path(node).any(|above| name(above) == "(garbage collector)");
    let garbage: u64 =
        profile.tree.nodes().filter(in_garbage).map(|node| profile.tree.self_cost(samples, node)).sum();
    assert_eq!(format!("{} {garbage}", profile.run_cost(samples)), all);
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    assert_eq!(sorted(ticks(&profile)), sorted(functions.lines().map(str::to_owned).collect()));
    assert_eq!(profile.run_cost(profile.find_metric("time").unwrap()), 260_000_000);
    let node =
        profile.modules.entries().iter().any(|module| &profile.strings[module.path] == "/usr/bin/node");
    assert!(node, "native code has its file");
}

/// V8 starts to sample before it writes of it.
#[test]
fn a_tick_before_the_interval_of_v8_takes_as_long_as_the_others() {
    let tick = "tick,0x1000,600,0,0x0,0";
    let text = format!("v8-version,11,3,244,8,0\n{tick}\nprofiler,begin,1000\n{tick}\nprofiler,end\n");
    let (profile, report) = v8_log::read(text.as_bytes()).unwrap();
    let cost = |name: &str| profile.run_cost(profile.find_metric(name).unwrap());
    assert_eq!((cost("samples"), cost("time"), report.unfinished), (2, 2_000_000, false));
}

const V8_LOG: &str = "v8-version,11,3,244,8,0\ncode-creation,JS,10,5,0x1000,256,f /a.js:7:3,0x90,*\n\
    code-creation,Builtin,2,6,0x3000,256,ArrayMap\ncode-creation,RegExp,5,7,0x4000,16,a\\x2Cb\nprofiler,begin,500\n\
    tick,0x1010,900,0,0x0,0\ncode-move,0x1000,0x2000\ntick,0x1010,901,0,0x0,0,0x2001\ntick,0x2010,902,0,0x0,1,+0x1020,-0x20,overflow\n\
    tick,0x9999,903,1,0x3001,6,0x2004\ntick,0x4001,904,0,0x2002,0\ncode-creation,JS,10,8,0x20f0,64,g /a.js:9:1,0x91,~\n\
    tick,0x2010,905,0,0x0,0\nprofiler,end\n";

#[test]
fn code_of_v8_moves_and_is_replaced() {
    let (profile, report) = v8_log::read(V8_LOG.as_bytes()).unwrap();
    assert!(report.is_complete(), "{report:?}");
    // The second tick is where f was, below where it is now; the last one where f was before g covered its end.
    let expected = map(&[("*f", 2), ("ArrayMap", 1), ("RegExp: a,b", 1), ("[unknown]", 2)]);
    assert_eq!(own(&profile, "samples"), expected);
    assert_eq!(own(&profile, "time")["*f"], 1_000_000);
    let losses = &profile.metadata.losses;
    assert_eq!((losses.samples, losses.unresolved_samples, losses.truncated_stacks), (6, 2, 1));
    let of = |name: &str| {
        let all = profile.tree.nodes();
        let mut nodes =
            all.filter(|&node| &profile.strings[profile.functions[profile.tree.function(node)].name] == name);
        let path = profile.tree.path(nodes.next().unwrap());
        path.map(|node| profile.strings[profile.functions[profile.tree.function(node)].name].to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("RegExp: a,b")[1], "*f", "a function that has not made its frame yet");
    assert_eq!(of("(garbage collector)")[1], "ArrayMap");
    for end in 0..V8_LOG.len() {
        let Ok((cut, report)) = v8_log::read(&V8_LOG.as_bytes()[..end]) else { continue };
        assert_eq!(cut.validate(), Ok(()));
        assert!(report.unfinished || end + 2 > V8_LOG.len(), "{end}");
    }
    let damaged = V8_LOG.replace("tick,0x2010,902", "tick,zz,902");
    let error = v8_log::read(damaged.as_bytes()).unwrap_err().to_string();
    let at = damaged.find("tick,zz").unwrap();
    assert_eq!(error, format!("line 9 at byte {at:#x}: a tick is cut short"));
    // Before version 6.5, names were in quotes, and code had no times.
    let old = "v8-version,5,1,281,0\ncode-creation,LazyCompile,0,0x1000,256,\"f, \"\"g /a.js:7:3\",0x90,~\n\
        profiler,begin,1000\ntick,0x1010,900,0,0x0,0\nprofiler,end\n";
    let (profile, _) = v8_log::read(old.as_bytes()).unwrap();
    assert_eq!(own(&profile, "samples"), map(&[("~f,", 1)]));
}
