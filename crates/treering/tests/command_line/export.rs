//! `treering export`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use treering_testing::programs::{KNOWN_SHARES, RECURSION, installed};

use crate::session::{Session, program, words};
use crate::skip;

fn recording() -> Session {
    let session = Session::new();
    session.record(&[], &program(&KNOWN_SHARES.build().expect("the compiler is installed"), &["200"]));
    session
}

#[test]
fn folded_stacks_hold_every_sample() {
    let session = recording();
    let folded = session.output(&["export", "treering.trg", "--to", "folded"]);
    let weights: u64 = folded
        .lines()
        .map(|line| line.rsplit_once(' ').and_then(|(_, weight)| weight.parse::<u64>().ok()))
        .map(|weight| weight.expect("each line ends with a space and a weight"))
        .sum();
    let flat = session.flat(&[]);
    let possible = [flat.samples() as f64, flat.run_cost()];
    assert!(possible.contains(&(weights as f64)), "{weights}, but the run has {possible:?}");
    let stack = folded.lines().find(|line| line.contains("forty_percent")).expect("its stack is there");
    assert!(stack.contains("main;first_half;forty_percent"), "{stack}");
}

#[test]
fn callgrind_annotate_reads_what_is_written() {
    let session = recording();
    session.output(&["export", "treering.trg", "--to", "callgrind", "-o", "callgrind.out"]);
    let Some(annotate) = installed("callgrind_annotate") else {
        return skip("callgrind_annotate is not installed");
    };
    let output = Command::new(annotate).arg(session.path("callgrind.out")).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}{text}", String::from_utf8_lossy(&output.stderr));
    let first = text.lines().find(|line| line.contains("_percent")).unwrap_or_else(|| panic!("{text}"));
    let flat = session.flat(&[]);
    let names = ["ten_percent", "twenty_percent", "thirty_percent", "forty_percent"];
    let costliest = names.into_iter().max_by(|a, b| flat.self_share(a).total_cmp(&flat.self_share(b)));
    let costliest = costliest.expect("there are four");
    assert!(first.contains(costliest), "{costliest} is the costliest and comes first: {first}");
}

/// The sum of the costs of a file in a format, in nanoseconds.
fn sum(session: &Session, format: &str, options: &[&str]) -> u64 {
    let out = format!("out.{format}");
    let export = ["export", "treering.trg", "--to", format, "-o", &out, "--force"];
    session.output(&[&export[..], options].concat());
    session.output(&["import", &out, "-o", "back.trg", "--force"]);
    session.flat(&["back.trg"]).run_cost() as u64
}

#[test]
fn every_format_has_the_costs_that_reports_show() {
    let session = crate::report::biased();
    let [shown, raw] =
        [&[][..], &["--raw"][..]].map(|options: &[&str]| session.flat(options).run_cost() as u64);
    assert!(shown < raw, "{shown} {raw}");
    for format in
        ["folded", "pprof", "otlp", "callgrind", "speedscope", "firefox", "cpuprofile", "chrome-trace"]
    {
        let one = if format == "firefox" { raw / 1000 } else { 0 };
        let near =
            |cost: u64, expected: u64| assert!(cost.abs_diff(expected) <= one, "{format}: {cost} {expected}");
        near(sum(&session, format, &["--raw"]), raw);
        near(sum(&session, format, &[]), shown);
        let file = std::fs::read(session.path(&format!("out.{format}"))).expect("it was written");
        let mut text = Vec::new();
        match std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*file), &mut text) {
            Ok(_) => {}
            Err(_) => text = file,
        }
        let text = String::from_utf8_lossy(&text);
        assert!(format == "folded" || text.contains("subtracted: "), "{format} has no word of it");
    }
    let csv = session.output(&["export", "treering.trg", "--to", "csv", "-o", "-"]);
    let raw_csv = session.output(&["export", "treering.trg", "--to", "csv", "-o", "-", "--raw"]);
    assert_ne!(csv, raw_csv);
}

#[test]
fn pprof_files_are_compressed() {
    let session = recording();
    session.output(&["export", "treering.trg", "--to", "pprof", "-o", "profile.pb.gz"]);
    let bytes = std::fs::read(session.path("profile.pb.gz")).expect("it was just written");
    assert_eq!(bytes[..2], [0x1f, 0x8b], "pprof files are gzip files");
}

#[test]
fn an_unknown_format_is_a_mistake_of_the_command_line() {
    let session = Session::new();
    let outcome = session.run(&["export", "treering.trg", "--to", "papyrus"]);
    assert_eq!(outcome.shell_status(), 2, "{outcome:#?}");
    assert!(outcome.stderr.contains("pprof"), "it lists what there is: {outcome:#?}");
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let session = recording();
    let treering = env!("CARGO_BIN_EXE_treering");
    let script = format!(
        "'{treering}' export treering.trg --to folded | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    );
    let Some(bash) = installed("bash") else { return skip("bash is not installed") };
    let output =
        Command::new(bash).args(["-c", &script]).current_dir(session.path("")).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0", "{output:?}");
}

/// The attribute of an element.
fn attribute<'a>(line: &'a str, name: &str) -> &'a str {
    line.split(&format!(" {name}=\"")).nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default()
}

/// Tasks and calls of a report of a benchmark: what identifies them, their counts, and their times by the wall clock
/// in milliseconds.
fn tasks_and_calls(xml: &str) -> BTreeMap<String, (Vec<String>, Vec<f64>)> {
    let tasks = xml.lines().filter(|line| line.contains("<task id="));
    let names: BTreeMap<_, _> = tasks.map(|line| (attribute(line, "id"), attribute(line, "name"))).collect();
    let mut found: BTreeMap<String, (Vec<String>, Vec<f64>)> = BTreeMap::new();
    let mut current = String::new();
    let timer = xml.split("<taskList>").nth(1).and_then(|rest| rest.split("<componentList>").next());
    let timer = timer.expect("there are tasks and components");
    for line in timer.lines() {
        let counts = |names: &[&str]| names.iter().map(|name| attribute(line, name).to_owned()).collect();
        if line.contains("<task id=") {
            current = attribute(line, "name").to_owned();
            let known = ["calls", "outsideCalls", "recursiveCalls", "cycleCalls", "component"];
            found.insert(current.clone(), (counts(&known), Vec::new()));
        } else if line.contains("<call ") {
            current = ["source", "target"].map(|end| names[attribute(line, end)]).join(" -> ");
            found.insert(current.clone(), (counts(&["count"]), Vec::new()));
        } else if line.contains("<time name=") && attribute(line, "name") != "self" {
            let times = &mut found.get_mut(&current).expect("it has begun").1;
            times.push(attribute(line, "wall").parse().expect("it is a number"));
        }
    }
    found
}

#[test]
fn xml_of_cbs_fits_its_schema_and_has_the_numbers_of_the_runtimes_report() {
    let session = Session::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/formats/cbs-xml");
    std::fs::copy(fixtures.join("treering.trg"), session.path("a.trg")).expect("it is copied");
    let outcome = session.run(&["export", "--to", "cbs-xml", "a.trg"]);
    assert!(outcome.status.success() && outcome.stderr.contains("dropped: stacks"), "{outcome:?}");
    let written = std::fs::read_to_string(session.path("a.xml")).expect("it was written");
    let runtime = std::fs::read_to_string(fixtures.join("treering.xml")).expect("it is there");
    let (ours, theirs) = (tasks_and_calls(&written), tasks_and_calls(&runtime));
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    // The profile has nothing of what the run took beyond its tasks.
    for (what, (counts, times)) in ours.iter().filter(|(what, _)| *what != "_program") {
        let (their_counts, their_times) = &theirs[what];
        assert_eq!(counts, their_counts, "{what}");
        assert_eq!(times.len(), their_times.len(), "{what}");
        // Both subtract the cost of measuring, by calibrations of their own; the runtime states 1 µs as its most.
        let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-3;
        assert!(times.iter().zip(their_times).all(close), "{what}: {times:?} and {their_times:?}");
    }
    // It is ours, so it may be replaced; and it is read again.
    assert!(session.run(&["export", "--to", "cbs-xml", "a.trg"]).status.success());
    let again = session.run(&["report", "a.xml", "--metric", "time"]);
    assert!(again.status.success() && again.stdout.contains("known shares"), "{again:?}");
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/bench.xsd");
    let mut xmllint = std::process::Command::new("xmllint");
    match xmllint.args(["--noout", "--nonet", "--schema"]).arg(schema).arg(session.path("a.xml")).output() {
        Ok(valid) => assert!(valid.status.success(), "{}", String::from_utf8_lossy(&valid.stderr)),
        Err(_) => eprintln!("skipped: xmllint is not installed"),
    }
}

#[test]
fn xml_of_cbs_holds_times_only() {
    let session = Session::new();
    std::fs::write(session.path("a.folded"), "main;f 3\n").expect("it is written");
    let outcome = session.run(&["export", "--to", "cbs-xml", "a.folded"]);
    assert!(!outcome.status.success() && outcome.stderr.contains("holds times only"), "{outcome:?}");
    assert!(!session.path("a.xml").exists());
}

#[test]
fn the_profile_of_the_last_recording_is_exported_if_no_other_is_named() {
    let session = Session::new();
    std::fs::write(session.path("a.folded"), "main;work 7\n").expect("written");
    let said = session.run(&["merge", "a.folded", "-o", "treering.trg"]).stderr;
    assert!(said.contains("wrote 1 run, 1 thread, "), "{said}");
    assert_eq!(session.output(&["export", "--to", "folded"]), "main;work 7\n");
}

/// Lines of counted code follow from its executions, which these formats do not hold; nothing said so.
#[test]
fn lost_lines_of_counted_trees_are_told() {
    let session = Session::new();
    let path = RECURSION.build().expect("the compiler is installed");
    let mut count = words(&["count", "--tree", "-q", "-o", "counted.trg", "--"]);
    count.extend(program(&path, &["5", "5"]));
    if !session.run(&count).status.success() {
        return skip("this machine refuses to count");
    }
    for format in ["callgrind", "pprof", "otlp", "firefox"] {
        let outcome = session.run(&["export", "counted.trg", "--to", format, "-o", "exported", "--force"]);
        assert!(outcome.status.success(), "{outcome:#?}");
        assert!(outcome.stderr.contains("dropped: executions of code"), "{format}: {outcome:#?}");
    }
}
