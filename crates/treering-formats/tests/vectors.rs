//! The documented layout and the file of an earlier version are still what is read.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test says what it skipped")]

mod common;

use common::{canonical, fixture};
use treering_formats::trg;
use treering_profile::{Frame, Function, Line, Metric, MetricId, Process, Profile, RecursionRule, Run, Unit};
use treering_testing::synthetic::{Shape, synthetic};

const PAGE: &str = include_str!("../../../docs/formats/trg.md");

/// The profile whose bytes the page shows.
fn documented() -> Profile {
    let mut profile = Profile::new(RecursionRule::Full);
    let samples = profile.add_metric(Metric::exact("samples", Unit::Count));
    let run = profile.add_run(Run::default());
    let process = profile.add_process(Process { run, pid: 7, name: "a".to_owned() });
    let thread = profile.add_thread(process, 7, "a");
    let [main, solve, file] = ["main", "solve", "a.c"].map(|text| profile.strings.intern(text));
    let main = profile.functions.intern(Function { file, line: 300, ..Function::named(main) });
    let solve = profile.functions.intern(Function { file, line: 1, ..Function::named(solve) });
    let call = profile.lines.intern(Line { file, line: 301 });
    let stack = [Frame::new(main), Frame { function: solve, call_site: Some(call) }];
    profile.add_stack(thread, &stack[..1], None, &[(samples, 1)]);
    profile.add_stack(thread, &stack, None, &[(samples, 500)]);
    profile
}

/// The bytes of the page's blocks marked `hex`: what follows `#` in a line is a comment.
fn vector() -> Vec<u8> {
    let blocks = PAGE.split("```hex\n").skip(1).map(|block| block.split("```").next().unwrap());
    let lines = blocks.flat_map(str::lines).map(|line| line.split('#').next().unwrap());
    let digits = lines.flat_map(str::split_whitespace);
    digits.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

#[test]
fn the_documented_bytes_are_the_documented_profile() {
    let (read, report) = trg::read(&vector()).unwrap();
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(canonical(&read), canonical(&documented()));
}

#[test]
fn the_documented_profile_is_written_as_the_documented_frames() {
    let mut file = Vec::new();
    trg::write(&documented(), &mut file).unwrap();
    let contents = |file: &[u8]| -> Vec<String> {
        trg::dump(file)
            .unwrap()
            .filter(|frame| frame.json["kind"] != "END")
            .map(|frame| format!("{} {}", frame.json["kind"], frame.json["content"]))
            .collect()
    };
    assert_eq!(contents(&file), contents(&vector()));
}

#[test]
fn a_file_of_the_first_version_is_read() {
    let (read, report) = trg::read(&fixture("trg/small.trg")).unwrap();
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(canonical(&read), canonical(&synthetic(&Shape::SMALL)));
    assert_eq!(read.run_cost(MetricId::new(1)), 328);
}

/// Writes the fixture and prints the vector anew; for a new version of the format only.
#[test]
#[ignore = "writes into the source tree"]
fn write_the_fixture() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/formats/trg/small.trg");
    let mut file = Vec::new();
    trg::write(&synthetic(&Shape::SMALL), &mut file).unwrap();
    std::fs::write(path, &file).unwrap();
    let mut file = Vec::new();
    trg::write(&documented(), &mut file).unwrap();
    for frame in trg::dump(&file).unwrap() {
        println!("{}", frame.json);
    }
    let digits: Vec<_> = file.iter().map(|byte| format!("{byte:02x}")).collect();
    println!("{}", digits.join(" "));
}
