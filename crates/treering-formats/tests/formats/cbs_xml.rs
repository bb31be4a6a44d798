//! XML of benchmarks: that of CBS, and that of Treering.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::collections::BTreeMap;

use common::{fixture, is_within};
use treering_formats::{Format, Position, cbs_xml, read_any};
use treering_profile::{MetricId, Profile};

/// Self costs by task.
fn self_costs(profile: &Profile, metric: &str) -> BTreeMap<String, u64> {
    let metric = profile.find_metric(metric).unwrap();
    let mut costs = BTreeMap::new();
    for node in profile.tree.nodes().skip(1) {
        let name = &profile.strings[profile.functions[profile.tree.function(node)].name];
        *costs.entry(name.to_owned()).or_default() += profile.tree.self_cost(metric, node);
    }
    costs
}

/// Calls by caller and callee, and their total cost in the first metric.
fn arcs(profile: &Profile) -> BTreeMap<(String, String), (u64, Option<u64>)> {
    let name = |function| profile.strings[profile.functions[function].name].to_owned();
    let cost = |arc: &treering_profile::Arc| {
        let first = |(metric, _): &&(MetricId, u64)| metric.index() == 0;
        arc.total_costs.iter().find(first).map(|(_, cost)| *cost)
    };
    profile.arcs.iter().map(|arc| ((name(arc.caller), name(arc.callee)), (arc.calls, cost(arc)))).collect()
}

/// The list of tasks in the text of CBS: charge in percent, and calls.
fn listed() -> BTreeMap<String, (f64, u64)> {
    let text = String::from_utf8_lossy(&fixture("cbs-xml/cbs.txt")).into_owned();
    let list = text.split("[Task list:]").nth(1).unwrap().split("____").next().unwrap();
    let row = |row: &str| {
        let (charge, rest) = row.trim().split_once('%')?;
        let mut words = rest.split_whitespace().skip(1);
        let name = words.next()?.to_owned();
        // Costs end with their unit, and a mark of cycles may stand for one.
        let calls =
            words.find_map(|word| word.parse().ok().filter(|_| !rest.contains(&format!("(C:  {word})"))));
        Some((name, (charge.trim().parse().ok()?, calls?)))
    };
    list.lines().filter_map(row).collect()
}

#[test]
fn a_file_of_cbs_has_the_charges_and_calls_of_its_own_text() {
    let (format, profile, report) = read_any(&fixture("cbs-xml/cbs.xml")).unwrap();
    assert_eq!(format, Format::CbsXml);
    assert!(report.notes.iter().any(|note| note.starts_with("CBS wrote whole milliseconds")), "{report:?}");
    assert!(report.notes.iter().any(|note| note.starts_with("3 tasks call themselves")), "{report:?}");
    let note = "total costs of tasks in a cycle leave out the cycle's other tasks";
    assert!(report.notes.iter().any(|said| said.ends_with(note)), "{report:?}");
    let (costs, run) = (self_costs(&profile, "cpu"), profile.run_cost(profile.find_metric("cpu").unwrap()));
    assert_eq!((run, listed().len()), (52_000_000, 6));
    let calls = |task: &str| -> u64 {
        arcs(&profile).iter().filter(|((_, callee), _)| callee == task).map(|(_, (calls, _))| calls).sum()
    };
    for (task, (charge, count)) in listed().into_iter().filter(|(task, _)| task != "_program") {
        let share = costs[&task] as f64 * 100.0 / run as f64;
        assert!((share - charge).abs() < 0.06, "{task}: {share} and {charge}");
        assert_eq!(calls(&task), count, "{task}");
    }
    // CBS gives it the whole run as its own.
    assert!((3_000_000..4_000_000).contains(&costs["_program"]), "{costs:?}");
    let benchmark = profile.metadata.benchmark.as_ref().unwrap();
    assert_eq!((benchmark.name.as_str(), &benchmark.parameters[0].1), ("known shares", &"20".to_owned()));
    let large = &profile.strings[profile.points[3].description];
    assert_eq!(large, "large <&> \"block\"");
}

#[test]
fn totals_that_cbs_counts_several_times_are_not_taken() {
    let (profile, _) = cbs_xml::read(&fixture("cbs-xml/cbs.xml")).unwrap();
    let arcs = arcs(&profile);
    let arc = |caller: &str, callee: &str| arcs[&(caller.to_owned(), callee.to_owned())];
    let (calls, cost) = arc("solve", "leaf");
    assert_eq!(calls, 20);
    assert!(cost.unwrap() > 30_000_000);
    assert_eq!(arc("solve", "even"), (2, None));
    assert_eq!(arc("solve", "deep"), (1, None));
    assert_eq!(arc("deep", "deep"), (6, None));
}

#[test]
fn a_report_of_ours_has_the_numbers_of_its_profile() {
    let (format, report, said) = read_any(&fixture("cbs-xml/treering.xml")).unwrap();
    assert_eq!((format, said.notes.len()), (Format::CbsXml, 1), "{said:?}");
    let (_, recorded, _) = read_any(&fixture("cbs-xml/treering.trg")).unwrap();
    for metric in ["cpu", "user", "time"] {
        let (ours, theirs) = (self_costs(&report, metric), self_costs(&recorded, metric));
        for (task, cost) in &theirs {
            // The clock of the profile was calibrated once more, at the end.
            assert!(
                ours[task].abs_diff(*cost) <= 1 + cost / 1_000_000,
                "{metric} of {task}: {ours:?}, {theirs:?}"
            );
        }
        assert_eq!(ours.len(), theirs.len() + 1);
    }
    let total = report.run_cost(report.find_metric("time").unwrap());
    assert_eq!((total, report.runs[0].duration_ns), (142_732_121, 142_732_121));
    let arcs = arcs(&report);
    let solve = arcs[&("_program".to_owned(), "solve".to_owned())];
    assert_eq!(solve, (1, Some(48_726_000)));
    assert_eq!(report.points.len(), recorded.points.len());
    let levels = |profile: &Profile| -> Vec<Vec<u64>> {
        let values = |point: &treering_profile::Point| point.values.iter().map(|(_, value)| *value).collect();
        profile.points.iter().map(values).collect()
    };
    assert_eq!(levels(&report), levels(&recorded));
}

#[test]
fn processor_time_that_was_not_measured_is_unknown() {
    let text = String::from_utf8(fixture("cbs-xml/treering.xml")).unwrap();
    let cpu_ns = |text: &str| read_any(text.as_bytes()).unwrap().1.runs[0].cpu_ns;
    assert!(cpu_ns(&text).is_some());
    let note = "<notes><note>0 stands for what was not measured: cpu, user, system</note></notes></bench>";
    assert_eq!(cpu_ns(&text.replace("</bench>", note)), None);
}

#[test]
fn every_prefix_is_an_error_or_a_profile() {
    for name in ["cbs-xml/cbs.xml", "cbs-xml/treering.xml"] {
        let whole = fixture(name);
        let timer = whole.windows(8).position(|window| window == b"</timer>").unwrap() + 8;
        for end in 0..whole.len() {
            match cbs_xml::read(&whole[..end]) {
                Ok((profile, _)) => {
                    assert_eq!(profile.validate(), Ok(()));
                    assert!(end >= timer, "{name} {end}");
                }
                Err(error) => assert!(is_within(&error, end), "{name} {end}: {error}"),
            }
        }
    }
}

/// A report of two tasks.
fn two(task: &str, call: &str) -> String {
    format!(
        "<timer base=\"cpu\"><time name=\"total\" cpu=\"9\" /><taskList><task id=\"0\" name=\"_program\" />{task}\
         </taskList><callList>{call}</callList></timer>"
    )
}

#[test]
fn elements_that_make_no_sense_are_refused_with_their_place() {
    let error = |text: &str| cbs_xml::read(text.as_bytes()).unwrap_err();
    let element = "the element before it has";
    let task = "<task id=\"1\" name=\"a\"><time name=\"self\" cpu=\"4\" /></task>";
    let call = "<call source=\"0\" target=\"1\" count=\"2\"><time name=\"total\" cpu=\"4\" /></call>";
    assert!(cbs_xml::read(two(task, call).as_bytes()).is_ok());
    for (file, problem) in [
        (two(&task.replace("id=\"1\"", "id=\"0\""), call), "the task before it has the id 0 of another task"),
        (two(&task.replace("name=\"a\"", ""), call), &format!("{element} no name")),
        (
            two(task, &call.replace("target=\"1\"", "target=\"7\"")),
            "a call is of task 7, which is not in the list",
        ),
        (
            two(task, &call.replace("\"2\"", "\"-2\"")),
            &format!("{element} `-2` for the count, and a number is expected"),
        ),
        (
            two(&task.replace("\"4\"", "\"x\""), call),
            &format!("{element} `x` for the cpu, and a number is expected"),
        ),
        (
            two(&task.replace("\"4\"", "\"1e13\"").repeat(2).replacen("\"1\"", "\"2\"", 1), call),
            "a sum of costs below 2^64 ns is expected",
        ),
        (
            "<bench><name>a</name></bench>".to_owned(),
            "it holds no call graph: it was saved without CO_CALLGRAPH",
        ),
        ("<bench><name>a".to_owned(), "the file is cut short"),
        ("<bench><name".to_owned(), "the file is cut short"),
        ("<a>".repeat(100), "values are nested too deeply"),
    ] {
        assert_eq!(error(&file).problem.to_string(), problem, "{file}");
    }
    // Ends of elements whose lines between are missing, or of none.
    for file in
        [two(task, "<call source=\"0\" target=\"1\" count=\"2\">"), two("</task>", ""), "</bench>".to_owned()]
    {
        assert!(error(&file).problem.to_string().starts_with("it is no XML: "), "{file}");
    }
    let bad = two(task, &call.replace("count=\"2\"", "count=2"));
    let place = bad.find("<call source").unwrap();
    let at = error(&bad);
    let Position::Byte(offset) = at.position else { panic!("{at}") };
    assert!(offset > place as u64, "{at}");
    assert!(at.to_string().starts_with(&format!("byte {offset:#x}: it is no XML: ")), "{at}");
}
