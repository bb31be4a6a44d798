//! The documented layout and the file of an earlier version are still what is read.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test says what it skipped")]

use crate::common;

use common::{add_address_cost, add_code, canonical, fixture, vector};
use treering_formats::trg;
use treering_profile::{
    ActivationStatistics, Activations, Benchmark, CallBias, Frame, Function, FunctionKind, Line, Metric,
    MetricId, NodeMemory, Point, Ports, Process, Profile, RecursionRule, Run, SizeCost, StatedAddress,
    StringId, Unit,
};
use treering_testing::synthetic::{Shape, synthetic};

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

/// The second profile that the page shows, with everything that only call events tell.
fn documented_details() -> Profile {
    let mut profile = Profile::new(RecursionRule::Direct);
    let time = profile.add_metric(Metric::exact("time", Unit::Nanoseconds));
    let resident = profile.add_metric(Metric::level("resident memory", Unit::Bytes));
    let run = profile.add_run(Run::default());
    let process = profile.add_process(Process { run, pid: 7, name: "a".to_owned() });
    let thread = profile.add_thread(process, 7, "a");
    let [main, solve, start] = ["main", "solve", "start"].map(|text| profile.strings.intern(text));
    let stack = [main, solve].map(|name| {
        let task = Function { kind: FunctionKind::Task, ..Function::named(name) };
        Frame::new(profile.functions.intern(task))
    });
    let main = profile.add_stack(thread, &stack[..1], None, &[(time, 40)]);
    let solve = profile.add_stack(thread, &stack, None, &[(time, 720)]);
    profile.tree.add_calls(main, 1, 0);
    profile.tree.add_calls(solve, 3, 0);
    let mut activations = Activations::new(time);
    activations.nodes.row(main).total = 760;
    let each = ActivationStatistics { total: 720, ..ActivationStatistics::default() };
    *activations.nodes.row(solve) = [100, 120, 500].into_iter().fold(each, |mut all, cost| {
        all.add(cost);
        all
    });
    activations.sizes = vec![
        SizeCost { node: solve, bucket: 3, calls: 2, total_cost: 220 },
        SizeCost { node: solve, bucket: 10, calls: 1, total_cost: 500 },
    ];
    profile.activations = Some(activations);
    *profile.ports.row(solve) = Ports { exits: 2, fails: 1, ..Ports::default() };
    *profile.memory.row(solve) = NodeMemory { live_bytes: 16, peak_bytes: 48 };
    profile.points = vec![
        Point { time_ns: 50, thread, node: main, description: start, values: vec![(resident, 4096)] },
        Point {
            time_ns: 700,
            thread,
            node: solve,
            description: StringId::new(0),
            values: vec![(resident, 1_052_672)],
        },
    ];
    profile.metadata.losses.open_activations = 1;
    profile.metadata.call_bias = Some(CallBias {
        inside_ns: 0.5,
        outside_ns: 2.5,
        empty_inside_ns: 9.5,
        empty_outside_ns: 8.25,
        spread_ns: 0.25,
    });
    profile.metadata.benchmark = Some(Benchmark {
        name: "demo".to_owned(),
        parameters: vec![("n".to_owned(), "3".to_owned())],
        ..Benchmark::default()
    });
    profile
}

/// The third profile that the page shows: what is known of code by address.
fn documented_code() -> Profile {
    let mut profile = Profile::new(RecursionRule::Full);
    let run = profile.add_run(Run::default());
    let process = profile.add_process(Process { run, pid: 7, name: "a".to_owned() });
    let thread = profile.add_thread(process, 7, "a");
    let [main, file] = ["main", "a.c"].map(|text| profile.strings.intern(text));
    let main = profile.functions.intern(Function { file, line: 3, ..Function::named(main) });
    let line = profile.lines.intern(Line { file, line: 5 });
    add_code(&mut profile, thread, main, line);
    profile
}

/// The fourth profile that the page shows: what was sampled by address.
fn documented_addresses() -> Profile {
    let mut profile = Profile::new(RecursionRule::Full);
    let samples = profile.add_metric(Metric::exact("samples", Unit::Count));
    let run = profile.add_run(Run::default());
    let process = profile.add_process(Process { run, pid: 7, name: "a".to_owned() });
    let thread = profile.add_thread(process, 7, "a");
    let [main, file] = ["main", "a.c"].map(|text| profile.strings.intern(text));
    let address = Some(StatedAddress(0x10));
    let main = profile.functions.intern(Function { file, line: 3, address, ..Function::named(main) });
    let line = profile.lines.intern(Line { file, line: 5 });
    profile.add_stack(thread, &[Frame::new(main)], None, &[(samples, 300)]);
    add_address_cost(&mut profile, thread, main, line);
    profile
}

/// The page's vectors and the profiles that they are.
fn documented_vectors() -> [(Vec<u8>, Profile); 4] {
    let profiles = [documented(), documented_details(), documented_code(), documented_addresses()];
    let mut number = 0..;
    profiles.map(|profile| (vector(number.next().unwrap()), profile))
}

/// The page writes each column of a table in a line of its own.
#[test]
fn lines_of_the_page_hold_whole_columns() {
    let page = include_str!("../../../../docs/formats/trg.md");
    let lines: Vec<Vec<u8>> = page.lines().map(bytes_of).collect();
    let frames: Vec<usize> = page
        .lines()
        .enumerate()
        .filter(|(_, line)| line.contains("# FUNCTIONS,"))
        .map(|(at, _)| at)
        .collect();
    assert!(frames.len() > 3);
    for at in frames {
        let count = usize::from(lines[at + 2][1]);
        for (column, bytes) in lines[at + 3..at + 10].iter().enumerate() {
            let ends = bytes.iter().filter(|&&byte| byte < 0x80).count();
            let is_whole = bytes.last().is_some_and(|&byte| byte < 0x80);
            assert_eq!((ends, is_whole), (count, true), "line {}", at + column + 4);
        }
    }
}

/// The bytes that a line of the page shows.
fn bytes_of(line: &str) -> Vec<u8> {
    let digits = line.split('#').next().unwrap().split_whitespace();
    digits.map_while(|byte| u8::from_str_radix(byte, 16).ok()).collect()
}

#[test]
fn the_documented_bytes_are_the_documented_profile() {
    for (bytes, expected) in documented_vectors() {
        let (read, report) = trg::read(&bytes).unwrap();
        assert!(report.is_complete(), "{report:?}");
        assert_eq!(canonical(&read), canonical(&expected));
    }
}

#[test]
fn the_documented_profile_is_written_as_the_documented_frames() {
    let contents = |file: &[u8]| -> Vec<String> {
        trg::dump(file)
            .unwrap()
            .filter(|frame| frame.json()["kind"] != "END")
            .map(|frame| format!("{} {}", frame.json()["kind"], frame.json()["content"]))
            .collect()
    };
    for (bytes, profile) in documented_vectors() {
        let mut file = Vec::new();
        trg::write(&profile, &mut file).unwrap();
        assert_eq!(contents(&file), contents(&bytes));
    }
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
    trg::write(&documented_addresses(), &mut file).unwrap();
    for frame in trg::dump(&file).unwrap() {
        println!("{}", frame.json());
    }
    let digits: Vec<_> = file.iter().map(|byte| format!("{byte:02x}")).collect();
    println!("{}", digits.join(" "));
}
