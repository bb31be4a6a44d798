//! pprof profiles: those of Go's runtime, and our own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test says what it skipped")]

mod common;

use std::process::Command;

use common::{fixture, profile, step, totals};
use expect_test::expect;
use proptest::prelude::*;
use treering_formats::pprof::{self, ReadError};
use treering_formats::{Format, read_any};
use treering_profile::{FunctionKind, Profile, Unit};
use treering_testing::synthetic::{Shape, synthetic};

fn written(profile: &Profile) -> Vec<u8> {
    let mut file = Vec::new();
    let _ = pprof::write(profile, &mut file).unwrap();
    file
}

/// Stacks with their costs in a metric, outermost function first, with call sites and lines.
fn stacks(profile: &Profile, metric: &str) -> Vec<String> {
    let metric = profile.find_metric(metric).unwrap();
    let mut stacks = Vec::new();
    for node in profile.tree.nodes() {
        let cost = profile.tree.self_cost(metric, node);
        if cost == 0 {
            continue;
        }
        let mut names: Vec<_> = profile
            .tree
            .path(node)
            .map(|at| {
                let function = profile.functions[profile.tree.function(at)];
                let line = profile.tree.call_site(at).map_or(0, |line| profile.lines[line].line);
                format!("{line}>{}({})", &profile.strings[function.name], function.kind.as_str())
            })
            .collect();
        names.pop();
        names.reverse();
        stacks.push(format!("{} {cost}", names.join(" ")));
    }
    stacks.sort();
    stacks
}

#[test]
fn inlined_frames_of_a_go_profile_are_below_what_they_are_inlined_into() {
    let (profile, report) = pprof::read(&fixture("pprof/cpu.pb.gz")).unwrap();
    let stack = stacks(&profile, "cpu").into_iter().find(|stack| stack.contains("area")).unwrap();
    expect!["0>main.work(native) 32>main.fact(native) 26>main.fact(native) 26>main.fact(native) 26>main.fact(native) 26>main.fact(native) 26>main.fact(native) 26>main.fact(native) 24>main.leaf(native) 19>main.area(inlined) 12>runtime.asyncPreempt(native) 10000000"]
        .assert_eq(&stack);
    assert_eq!(report.notes, ["labels other than those of process and thread are not kept"]);
}

#[test]
fn a_go_profile_is_sampled_and_its_totals_are_those_that_go_prints() {
    let (profile, _) = pprof::read(&fixture("pprof/cpu.pb.gz")).unwrap();
    let (cpu, samples) = (profile.find_metric("cpu").unwrap(), profile.find_metric("samples").unwrap());
    assert_eq!(profile.run_cost(cpu), 500_000_000);
    assert_eq!(profile.run_cost(samples), 50);
    let metric = &profile.metrics[cpu.index()];
    assert_eq!((metric.unit, metric.counted_by()), (Unit::Nanoseconds, Some(samples)));
    assert_eq!(metric.sampling.as_ref().unwrap().period, Some(10_000_000));
    let area: u64 = totals(&profile)[&("main.area".to_owned(), "cpu".to_owned())];
    assert_eq!(area, 360_000_000);
    assert!(profile.runs[0].duration_ns > 1_000_000_000);
}

#[test]
fn go_reads_what_we_write() {
    let profile = synthetic(&Shape::SMALL);
    let samples = profile.find_metric("samples").unwrap();
    let path = std::env::temp_dir().join(format!("treering-{}.pb.gz", std::process::id()));
    std::fs::write(&path, written(&profile)).unwrap();
    let output = Command::new("go")
        .args(["tool", "pprof", "-raw", "-symbolize=none"])
        .arg(&path)
        .env("HOME", std::env::temp_dir())
        .output();
    std::fs::remove_file(&path).unwrap();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        eprintln!("skipped: go tool pprof is not installed");
        return;
    };
    let listing = String::from_utf8_lossy(&output.stdout).into_owned();
    let counts: u64 = listing
        .lines()
        .skip_while(|line| !line.starts_with("cpu-clock/nanoseconds"))
        .skip(1)
        .take_while(|line| !line.starts_with("Locations"))
        .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
        .sum();
    assert_eq!(counts, profile.run_cost(samples), "{listing}");
}

#[test]
fn threads_modules_and_sampling_survive() {
    let profile = synthetic(&Shape::SMALL);
    let (read, report) = pprof::read(&written(&profile)).unwrap();
    assert!(report.is_complete(), "{report:?}");
    let threads = |profile: &Profile| {
        let mut threads: Vec<_> = profile.threads.iter().map(|t| (t.tid, t.name.clone())).collect();
        threads.sort();
        threads
    };
    assert_eq!(threads(&read), threads(&profile));
    assert_eq!(read.processes[0].pid, 4000);
    assert_eq!(read.runs[0].command, profile.runs[0].command);
    let sampling = read.metrics[0].sampling.clone().unwrap();
    assert_eq!((sampling.counted_by, sampling.period), (1, Some(1_000_000)));
    let inlined = |profile: &Profile| {
        profile.functions.entries().iter().filter(|f| f.kind == FunctionKind::Inlined).count()
    };
    assert!(inlined(&read) > 0);
    let module = |profile: &Profile| profile.modules.entries()[3].build_id.clone();
    assert_eq!(module(&read), module(&profile));
}

#[test]
fn call_sites_and_lines_survive() {
    let (profile, _) = pprof::read(&fixture("pprof/cpu.pb.gz")).unwrap();
    let (again, _) = pprof::read(&written(&profile)).unwrap();
    assert_eq!(stacks(&again, "cpu"), stacks(&profile, "cpu"));
    let lines = |profile: &Profile| {
        let mut lines: Vec<_> = profile
            .line_costs
            .iter()
            .map(|part| (profile.lines[part.line].line, part.metric, part.cost))
            .collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(&again), lines(&profile));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn self_costs_survive(steps in prop::collection::vec(step(), 0..40)) {
        let profile = profile(&steps);
        let (read, _) = pprof::read(&written(&profile)).unwrap();
        for metric in ["samples", "cpu-clock"] {
            let cost = |profile: &Profile| profile.run_cost(profile.find_metric(metric).unwrap());
            prop_assert_eq!(cost(&read), cost(&profile));
        }
        // Functions without a name get one.
        let named = |profile: &Profile| {
            let mut totals = totals(profile);
            totals.retain(|(name, _), _| !name.is_empty() && !name.starts_with('[') && !name.contains("0x"));
            totals
        };
        let with_addresses = profile.functions.entries().iter().any(|f| f.kind == FunctionKind::Address);
        if !with_addresses {
            prop_assert_eq!(named(&read), named(&profile));
        }
    }
}

/// A protobuf field of bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2, content.len() as u8];
    field.extend(content);
    field
}

#[test]
fn what_makes_no_sense_is_refused() {
    let types = field(1, &[8, 0]);
    let sample = |content: &[u8]| [types.clone(), field(2, content)].concat();
    let read = |bytes: &[u8]| pprof::read(bytes).unwrap_err();
    assert_eq!(read(b""), ReadError::NoSampleTypes);
    assert_eq!(read(&field(1, &[8, 5])), ReadError::MissingString(5));
    let expected = ReadError::ValueCount { sample: 0, values: 0, types: 1 };
    assert_eq!(read(&sample(&[])), expected);
    assert_eq!(read(&sample(&[8, 7, 16, 1])), ReadError::MissingLocation { sample: 0, id: 7 });
    let minus_one = [16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    assert_eq!(read(&sample(&minus_one)), ReadError::NegativeValue { sample: 0, value: -1 });
    assert!(matches!(read(&[0x0a, 0x50]), ReadError::Protobuf(_)));
    assert!(matches!(read(&[0x1f, 0x8b, 8]), ReadError::Gzip(_)));
    let location = [types.clone(), field(4, &[8, 1, 16, 9])].concat();
    assert_eq!(read(&location), ReadError::MissingMapping { location: 1, id: 9 });
    let location = [types, field(4, &[8, 1, 0x22, 2, 8, 3])].concat();
    assert_eq!(read(&location), ReadError::MissingFunction { location: 1, id: 3 });
}

#[test]
fn a_small_file_that_unpacks_to_a_large_one_is_refused() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut packed, &vec![0x12; 64 << 20]).unwrap();
    let packed = packed.finish().unwrap();
    assert!(matches!(pprof::read(&packed), Err(ReadError::TooLarge { .. })));
}

#[test]
fn it_is_recognised_compressed_or_not() {
    let packed = fixture("pprof/cpu.pb.gz");
    assert_eq!(read_any(&packed).unwrap().0, Format::Pprof);
    let mut raw = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut raw).unwrap();
    assert_eq!(read_any(&raw).unwrap().0, Format::Pprof);
}

#[test]
fn a_profile_without_metrics_is_written_as_an_empty_one() {
    let empty = Profile::new(treering_profile::RecursionRule::Full);
    assert_eq!(pprof::read(&written(&empty)).unwrap_err(), ReadError::NoSampleTypes);
}
