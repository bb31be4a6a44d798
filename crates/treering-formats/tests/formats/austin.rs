//! Files of Austin.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::collections::BTreeMap;

use common::{fixture, totals};
use treering_formats::{Format, Problem, austin, read_any};
use treering_profile::Profile;

/// The cost of each stack in a metric, by `function@line` of its frames, the innermost last.
fn stacks(profile: &Profile, metric: &str) -> BTreeMap<String, u64> {
    let metric = profile.find_metric(metric).unwrap();
    let mut stacks = BTreeMap::new();
    for node in profile.tree.nodes() {
        let frame = |node| {
            let function = profile.functions[profile.tree.function(node)];
            let site = profile.tree.call_site(node).map_or(0, |line| profile.lines[line].line);
            let [name, file] = [function.name, function.file].map(|text| profile.strings[text].to_owned());
            format!("{site}>{file}:{name}")
        };
        let mut names: Vec<_> = profile.tree.path(node).map(frame).collect();
        names.reverse();
        *stacks.entry(names.join(";")).or_default() += profile.tree.self_cost(metric, node);
    }
    stacks.retain(|_, cost| *cost > 0);
    stacks
}

/// The texts were made of the binary files by Austin's own library.
#[test]
fn both_formats_hold_what_austins_library_reads() {
    for (name, metrics) in
        [("wall", &["time", "samples"][..]), ("full", &["time", "cpu time", "memory", "samples"])]
    {
        let [(format, binary, report), (_, text, _)] =
            ["mojo", "txt"].map(|end| read_any(&fixture(&format!("austin/{name}.{end}"))).unwrap());
        assert_eq!((format, report.is_complete()), (Format::Austin, true), "{report:?}");
        for metric in metrics {
            assert_eq!(stacks(&binary, metric), stacks(&text, metric), "{name} {metric}");
        }
        assert_eq!(binary.threads[0].name, text.threads[0].name);
        // The last number of every line.
        let lines = String::from_utf8(fixture(&format!("austin/{name}.txt"))).unwrap();
        let numbers =
            lines.lines().filter(|line| line.starts_with('P')).map(|line| line.rsplit(' ').next().unwrap());
        let microseconds: u64 =
            numbers.map(|number| number.split(',').next().unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(binary.run_cost(binary.find_metric("time").unwrap()), microseconds * 1000);
    }
}

#[test]
fn austins_header_is_no_function_and_gives_the_unit() {
    let text = "# austin: 3.4.0\n# interval: 100\n# mode: wall\n\nP1;T1;app.py:main:3;app.py:work:7 500\n\
                P1;T1;app.py:main:3 20\n\n# duration: 1000\n";
    let (format, profile, report) = read_any(text.as_bytes()).unwrap();
    assert_eq!((format, report.is_complete()), (Format::Austin, true));
    let mut own = totals(&profile);
    own.retain(|(_, metric), _| metric == "time");
    let own: Vec<_> = own.iter().map(|((name, _), cost)| (name.as_str(), *cost)).collect();
    assert_eq!(own, [("main", 20_000), ("work", 500_000)]);
    assert_eq!(profile.runs[0].duration_ns, 1_000_000);
    let memory = text.replace("mode: wall", "mode: memory").replace(" 20\n", " -20\n");
    let (_, profile, _) = read_any(memory.as_bytes()).unwrap();
    let cost = |metric| profile.run_cost(profile.find_metric(metric).unwrap());
    assert_eq!((cost("memory"), cost("freed"), profile.find_metric("time")), (500, 20, None));
}

#[test]
fn cuts_and_damage_are_said() {
    for name in ["wall.mojo", "full.mojo", "wall.txt"] {
        let file = fixture(&format!("austin/{name}"));
        let step = if name.ends_with("mojo") { 1 } else { 97 };
        for end in (0..file.len()).step_by(step) {
            let Ok((profile, _)) = austin::read(&file[..end]) else { continue };
            assert_eq!(profile.validate(), Ok(()));
        }
        assert!(austin::read(&file[..file.len() - 1]).unwrap().1.unfinished, "{name}");
    }
    let error = |bytes: &[u8]| austin::read(bytes).unwrap_err();
    assert_eq!(error(b"MOJ\x03").problem, Problem::Empty("samples"));
    assert!(error(b"MOJ\x03\x63\x00").to_string().starts_with("byte 0x4: "));
    assert_eq!(error(b"# austin: 3\n").problem, Problem::Empty("samples"));
}

/// It was said to take more memory than it may.
#[test]
fn a_time_that_is_too_large_is_told_with_its_line() {
    let text = "# mode: wall\nP1;T1;app.py:main:3 20\nP1;T1;app.py:main:3 9223372036854775807\n";
    let error = austin::read(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(error, "line 3 at byte 0x24: a time below 2^64 nanoseconds is expected");
}
