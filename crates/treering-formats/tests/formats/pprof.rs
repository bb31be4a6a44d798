//! pprof profiles: those of Go's runtime, and our own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test says what it skipped")]

use crate::common;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{fixture, profile, step, totals};
use expect_test::expect;
use proptest::prelude::*;
use treering_formats::{Format, GzipError, Problem, pprof, read_any};
use treering_profile::{Function, FunctionKind, Metadata, Metric, MetricId, Profile, RecursionRule, Unit};
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
    let length = content.len();
    let mut field = match length {
        0..0x80 => vec![number << 3 | 2, length as u8],
        _ => vec![number << 3 | 2, length as u8 | 0x80, (length >> 7) as u8],
    };
    field.extend(content);
    field
}

#[test]
fn messages_that_make_no_sense_are_refused_with_their_place() {
    let types = field(1, &[8, 0]);
    let sample = |content: &[u8]| [types.clone(), field(2, content)].concat();
    let refused = |bytes: &[u8]| pprof::read(bytes).unwrap_err().to_string();
    assert_eq!(refused(b""), "it holds no sample types");
    assert_eq!(refused(&field(1, &[8, 5])), "string 5 is missing");
    assert_eq!(refused(&sample(&[])), "sample 0: it has 0 values for 1 sample types");
    assert_eq!(refused(&sample(&[8, 7, 16, 1])), "sample 0: location 7 is missing");
    let damaged = refused(&[0x0a, 0x50]);
    assert!(damaged.starts_with("not a pprof profile, or one cut short: "), "{damaged}");
    let packed = pprof::read(&[0x1f, 0x8b, 8]).unwrap_err();
    assert!(matches!(packed.problem, Problem::Gzip(GzipError::Damaged(_))), "{packed}");
    let location = [types.clone(), field(4, &[8, 1, 16, 9])].concat();
    assert_eq!(refused(&location), "location 1: mapping 9 is missing");
    let location = [types, field(4, &[8, 1, 0x22, 2, 8, 3])].concat();
    assert_eq!(refused(&location), "location 1: function 3 is missing");
}

#[test]
fn a_small_file_that_unpacks_to_a_large_one_is_refused() {
    let pack = |bytes: &[u8]| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut packed, bytes).unwrap();
        packed.finish().unwrap()
    };
    // Samples without anything in them: two bytes of the file each.
    let types = field(1, &[]);
    let packed = pack(&[types, field(2, &[]).repeat(32 << 20)].concat());
    assert!(packed.len() < 100_000);
    assert_eq!(pprof::read(&packed).unwrap_err(), Problem::TooLarge.into());
    let zeros = pack(&vec![0; 160 << 20]);
    let error = pprof::read(&zeros).unwrap_err();
    assert!(matches!(error.problem, Problem::Gzip(GzipError::TooLarge { .. })), "{error}");
}

/// The file that `go tool pprof` makes of two files of stacks with one of its options for differences.
fn difference(option: &str, stacks: [&str; 2]) -> Option<Vec<u8>> {
    let folder = std::env::temp_dir().join(format!("treering{option}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, stacks) in ["old", "new"].iter().zip(stacks) {
        let (profile, _) = treering_formats::folded::read(stacks.as_bytes()).unwrap();
        std::fs::write(folder.join(name), written(&profile)).unwrap();
    }
    let mut command = Command::new("go");
    command.args(["tool", "pprof", "-proto", "-symbolize=none", "-output=both", option, "old", "new"]);
    let made = command.current_dir(&folder).env("HOME", &folder).output();
    let both = std::fs::read(folder.join("both"));
    std::fs::remove_dir_all(&folder).unwrap();
    if !made.is_ok_and(|made| made.status.success()) {
        println!("skipped: go tool pprof is not installed");
        return None;
    }
    Some(both.unwrap())
}

const OLD: &str = "main;a 30\nmain;b 20\nmain;gone 7\n";
const NEW: &str = "main;a 10\nmain;b 50\nmain;new 5\n";

#[test]
fn a_difference_has_both_profiles() {
    let Some(file) = difference("-diff_base", [OLD, NEW]) else { return };
    let (profile, report) = pprof::read(&file).unwrap();
    profile.validate().unwrap();
    let of = |metric: &str| stacks(&profile, metric);
    let frames = |function: &str, cost: u64| format!("0>main(native) 0>{function}(native) {cost}");
    assert_eq!(of("samples"), [frames("a", 10), frames("b", 50), frames("new", 5)]);
    assert_eq!(of("samples (base)"), [frames("a", 30), frames("b", 20), frames("gone", 7)]);
    assert_eq!(profile.metadata.parameters[Metadata::DEFAULT_METRIC], "samples");
    assert!(report.notes.iter().any(|note| note.contains("`samples (base)`")), "{:?}", report.notes);
}

#[test]
fn costs_below_0_after_a_subtraction_are_a_metric_of_their_own() {
    let Some(file) = difference("-base", [OLD, NEW]) else { return };
    let (profile, report) = pprof::read(&file).unwrap();
    profile.validate().unwrap();
    let of = |metric: &str| stacks(&profile, metric);
    let frames = |function: &str, cost: u64| format!("0>main(native) 0>{function}(native) {cost}");
    assert_eq!(of("samples"), [frames("b", 30), frames("new", 5)]);
    assert_eq!(of("samples (negative)"), [frames("a", 20), frames("gone", 7)]);
    assert!(report.notes.iter().any(|note| note.contains("below 0")), "{:?}", report.notes);
}

/// The self costs of functions by name, as `go tool pprof -top` prints them.
fn top(file: &[u8], options: &[&str]) -> Option<BTreeMap<String, u64>> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("treering-top-{}-{number}.pb.gz", std::process::id()));
    std::fs::write(&path, file).unwrap();
    let output = Command::new("go")
        .args(["tool", "pprof", "-top", "-symbolize=none", "-nodefraction=0"])
        .args(options)
        .arg(&path)
        .env("HOME", std::env::temp_dir())
        .output();
    std::fs::remove_file(&path).unwrap();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        println!("skipped: go tool pprof is not installed");
        return None;
    };
    let listing = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows = listing.lines().skip_while(|line| !line.contains("flat%")).skip(1);
    let costs = rows.map(|row| {
        let words: Vec<_> = row.split_whitespace().collect();
        let digits: String = words[0].chars().take_while(char::is_ascii_digit).collect();
        (words[5..].join(" ").replace(" (inline)", ""), digits.parse().unwrap())
    });
    Some(costs.filter(|(_, cost)| *cost > 0).collect())
}

/// The same of a profile, in its default metric.
fn own_top(file: &[u8]) -> BTreeMap<String, u64> {
    let (profile, _) = pprof::read(file).unwrap();
    let metric = &profile.metadata.parameters[Metadata::DEFAULT_METRIC];
    totals(&profile)
        .into_iter()
        .filter(|((_, of), _)| of == metric)
        .map(|((name, _), cost)| (name, cost))
        .collect()
}

#[test]
fn the_metric_shown_is_the_one_that_go_shows() {
    for (file, expected, unit) in [
        ("pprof/default-type.pb.gz", "inuse_space", "-unit=B"),
        ("pprof/dup-type.pb.gz", "x (bytes)", "-unit=B"),
        ("pprof/cpu.pb.gz", "cpu", "-unit=ns"),
    ] {
        let bytes = fixture(file);
        let (profile, _) = pprof::read(&bytes).unwrap();
        assert_eq!(profile.metadata.parameters[Metadata::DEFAULT_METRIC], expected, "{file}");
        if let Some(top) = top(&bytes, &[unit]) {
            assert_eq!(own_top(&bytes), top, "{file}");
        }
        // It survives, and so do types that would have the same name.
        let again = pprof::read(&written(&profile)).unwrap().0;
        assert_eq!(again.metadata.parameters[Metadata::DEFAULT_METRIC], expected, "{file}");
        assert_eq!(totals(&again), totals(&profile), "{file}");
    }
}

#[test]
fn frames_that_are_to_be_dropped_are() {
    let file = fixture("pprof/drop-frames.pb.gz");
    let expected = BTreeMap::from([("main".to_owned(), 10)]);
    assert_eq!(own_top(&file), expected);
    if let Some(top) = top(&file, &[]) {
        assert_eq!(top, expected);
    }
    let (_, report) = pprof::read(&file).unwrap();
    assert!(report.notes.iter().any(|note| note.contains("drop_frames")), "{report:?}");
}

#[test]
fn frames_are_dropped_as_go_drops_them() {
    let names =
        ["", "cpu", "nanoseconds", "malloc.*", "main", "malloc_in", "inner", "malloc_user", "malloc_user"];
    let texts: Vec<u8> = names.iter().flat_map(|name| field(6, name.as_bytes())).collect();
    let functions: Vec<u8> = (4..=7).flat_map(|name| field(5, &[8, name - 3, 16, name])).collect();
    // Location 5 has `inner` inlined into `malloc_in` inlined into `main`.
    let line = |function: u8| field(4, &[8, function]);
    let mut locations: Vec<u8> = (1..=4).flat_map(|id| field(4, &[vec![8, id], line(id)].concat())).collect();
    locations.extend(field(4, &[vec![8, 5], line(3), line(2), line(1)].concat()));
    let sample = |stack: &[u8], value: u8| field(2, &[field(1, stack), field(2, &[value])].concat());
    let samples = [
        sample(&[3, 2, 1], 1),
        sample(&[3, 2], 2),
        sample(&[2, 3, 2], 4),
        sample(&[3, 4, 1], 8),
        sample(&[3, 5], 16),
        sample(&[4, 5, 3], 32),
    ];
    for keep in [0, 8] {
        let settings = [0x38, 3, 0x40, keep];
        let file = [
            field(1, &[8, 1, 16, 2]),
            samples.concat(),
            locations.clone(),
            functions.clone(),
            texts.clone(),
            settings.to_vec(),
        ]
        .concat();
        if let Some(top) = top(&file, &[]) {
            assert_eq!(own_top(&file), top, "keep {keep}");
        }
    }
}

#[test]
fn kinds_survive_and_functions_that_only_they_tell_apart_stay_apart() {
    let stacks = "a;page_fault_[k] 1\nb;c;d_[k] 1\na;page_fault 2\na;page_fault_[j] 4\n";
    let profile = treering_formats::folded::read(stacks.as_bytes()).unwrap().0;
    let file = written(&profile);
    let (read, _) = pprof::read(&file).unwrap();
    let mut folded = Vec::new();
    let _ = treering_formats::folded::write(&read, MetricId::new(0), &mut folded).unwrap();
    assert_eq!(String::from_utf8(folded).unwrap(), stacks);
    if let Some(top) = top(&file, &[]) {
        let expected = [("d", 1), ("page_fault", 2), ("page_fault_[j]", 4), ("page_fault_[k]", 1)];
        assert_eq!(top, expected.map(|(name, cost)| (name.to_owned(), cost)).into());
    }
}

#[test]
fn bytes_that_are_not_utf8_are_shown() {
    let file = [
        field(1, &[8, 1, 16, 2]),
        field(2, &[10, 1, 1, 18, 1, 1]),
        field(4, &[8, 1, 0x22, 2, 8, 1]),
        field(5, &[8, 1, 16, 3]),
        ["", "cpu", "nanoseconds"].iter().flat_map(|text| field(6, text.as_bytes())).collect(),
        field(6, b"main\xff"),
    ]
    .concat();
    let (format, profile, report) = read_any(&file).unwrap();
    assert_eq!(format, Format::Pprof);
    assert_eq!(totals(&profile).into_keys().next().unwrap().0, r"main\xff");
    assert_eq!(report.notes, [r"some bytes are not UTF-8; they are shown as \xe4 and the like"]);
}

/// Costs stopped at 2^64 - 1 without a word.
#[test]
fn costs_that_are_too_large_are_refused_with_their_sample() {
    let half = [&[18, 9][..], &[0x80; 8], &[0x40]].concat();
    let file = |unit: &str| {
        [
            field(1, &[8, 1, 16, 2]),
            field(2, &half).repeat(4),
            ["", "cpu", unit].iter().flat_map(|text| field(6, text.as_bytes())).collect(),
        ]
        .concat()
    };
    let error = |unit: &str| pprof::read(&file(unit)).unwrap_err().to_string();
    assert_eq!(error("seconds"), "sample 0: a sum of costs below 2^64 is expected");
    assert_eq!(error("nanoseconds"), "sample 3: a sum of costs below 2^64 is expected");
}

#[test]
fn there_may_be_many_sample_types() {
    let types = field(1, &[8, 1]).repeat(200);
    let values = field(2, &field(2, &[7; 200]));
    let texts = [field(6, b""), field(6, b"t")].concat();
    let (profile, _) = pprof::read(&[types, values, texts].concat()).unwrap();
    assert_eq!(profile.metrics.len(), 200);
    assert!(profile.metrics().all(|(metric, _)| profile.run_cost(metric) == 7));
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
    assert_eq!(pprof::read(&written(&empty)).unwrap_err(), Problem::Empty("sample types").into());
}

#[test]
fn samples_are_chosen_by_their_labels() {
    // Sample type 1/2; samples of 5 (work=a), 7 (work=b, n=3) and 9 (none), in one location.
    let sample = |value: u8, labels: &[u8]| {
        let mut sample = vec![0x0a, 1, 1, 0x12, 1, value];
        sample.extend_from_slice(labels);
        [vec![0x12, sample.len() as u8], sample].concat()
    };
    let file = [
        b"\x0a\x04\x08\x01\x10\x02".to_vec(),
        sample(5, b"\x1a\x04\x08\x03\x10\x04"),
        sample(7, b"\x1a\x04\x08\x03\x10\x05\x1a\x04\x08\x06\x18\x03"),
        sample(9, b""),
        b"\x22\x02\x08\x01".to_vec(),
        b"\x32\x00\x32\x03cpu\x32\x05count\x32\x04work\x32\x01a\x32\x01b\x32\x01n".to_vec(),
    ]
    .concat();
    let read = |labels: &[(&str, &str)]| {
        let labels: Vec<_> = labels.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        pprof::read_labelled(&file, &labels)
    };
    let cost = |labels: &[(&str, &str)]| {
        let (profile, report) = read(labels).unwrap();
        (profile.run_cost(MetricId::new(0)), report.notes.into_iter().find(|note| note.contains("left out")))
    };
    assert_eq!(cost(&[]), (21, None));
    assert_eq!(cost(&[("work", "a")]), (5, Some("samples without work=a are left out: 2 of 3".to_owned())));
    assert_eq!(cost(&[("work", "b"), ("n", "3")]).0, 7);
    let error = read(&[("work", "c")]).unwrap_err().to_string();
    assert_eq!(error, "no sample has the label work=c; there are: n=3; work=a, b");
    assert!(read(&[("work", "a"), ("n", "3")]).is_err());
}

#[test]
fn sums_that_a_file_cannot_hold_are_in_a_larger_unit() {
    for (unit, factor, name, said) in [
        (Unit::Nanoseconds, 1000, "huge", "microseconds"),
        (Unit::Bytes, 1024, "huge", "kilobytes"),
        (Unit::Count, 1000, "huge (thousands)", "thousands"),
    ] {
        let mut profile = Profile::new(RecursionRule::Full);
        let metric = profile.add_metric(Metric::exact("huge", unit));
        let thread = profile.add_single_thread("");
        for (name, cost) in [("a", i64::MAX as u64 - 5), ("b", 4_000_000_000)] {
            let name = profile.strings.intern(name);
            let function = profile.functions.intern(Function::named(name));
            profile.add_stack(thread, &[treering_profile::Frame::new(function)], None, &[(metric, cost)]);
        }
        let mut files = [Vec::new(), Vec::new()];
        for (file, dropped) in [
            (0, pprof::write(&profile, &mut files[0]).unwrap()),
            (1, treering_formats::otlp::write(&profile, &mut files[1]).unwrap()),
        ] {
            assert!(
                dropped.notes.iter().any(|note| note.contains("2^63 - 1") && note.ends_with(said)),
                "{file} {dropped:?}"
            );
        }
        for file in &files {
            let (_, read, _) = treering_formats::read_any(file).unwrap();
            let back = read.find_metric(name).unwrap();
            let cost = read.run_cost(back) * if unit == Unit::Count { factor } else { 1 };
            assert!(cost.abs_diff(profile.run_cost(metric)) <= 2 * factor, "{cost}");
        }
    }
}
