//! `gmon.out` files, byte by byte, and how their samples are divided. What GNU gprof makes of the same
//! files is compared in the tests of the command line.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::{fixture, is_within};
use treering_formats::gmon::{
    ArcCount, BlockCount, Gmon, Histogram, Layout, Program, of_profile, read, read_of_width,
};
use treering_formats::{Format, Problem, read_any};
use treering_profile::{
    Arc, Frame, Function, Metric, MetricId, Module, ModuleKind, Profile, RecursionRule, StatedAddress, Unit,
};

const LAYOUTS: [Layout; 4] = [
    Layout { wide: true, big_endian: false },
    Layout { wide: true, big_endian: true },
    Layout { wide: false, big_endian: false },
    Layout { wide: false, big_endian: true },
];

fn histogram(low: u64, high: u64, bins: &[u64]) -> Histogram {
    let dimension = "seconds".to_owned();
    Histogram { low, high, rate: 100, dimension, abbreviation: b's', bins: bins.to_vec() }
}

/// Two histograms, arcs and blocks, with counts that need more than one record.
fn everything(layout: Layout) -> Gmon {
    Gmon {
        layout,
        histograms: vec![histogram(0x1000, 0x1010, &[1, 0, 200_000, 7]), histogram(0x2000, 0x2008, &[0, 9])],
        arcs: vec![
            ArcCount { from: 0x1004, callee: 0x2003, calls: 3 },
            ArcCount { from: 0x2001, callee: 0x1001, calls: u32::MAX.into() },
        ],
        blocks: vec![BlockCount { address: 0x1004, executions: 12 }],
    }
}

fn written(gmon: &Gmon) -> Vec<u8> {
    let mut file = Vec::new();
    gmon.write(&mut file).unwrap();
    file
}

#[test]
fn every_layout_is_told_from_the_others_and_read_back() {
    for layout in LAYOUTS {
        let gmon = everything(layout);
        let (back, report) = read(&written(&gmon)).unwrap();
        assert_eq!(back, gmon);
        assert_eq!(report.notes.len(), 1, "a bin that is full has to be told: {report:?}");
        assert_eq!(read_any(&written(&gmon)).unwrap().0, Format::Gmon);
    }
}

/// The bytes as the manual of gprof describes them, and `gmon_out.h` of the C library.
#[test]
fn numbers_are_where_the_manual_says() {
    let arc = ArcCount { from: 0x1234, callee: 0x5678, calls: 0x9a };
    let gmon = Gmon { arcs: vec![arc], ..Gmon::new(LAYOUTS[3]) };
    let mut expected = b"gmon\0\0\0\x01".to_vec();
    expected.extend([0; 12]);
    expected.extend([1, 0, 0, 0x12, 0x34, 0, 0, 0x56, 0x78, 0, 0, 0, 0x9a]);
    assert_eq!(written(&gmon), expected);
    let gmon = Gmon { histograms: vec![histogram(2, 6, &[0x0102])], ..Gmon::new(LAYOUTS[0]) };
    let mut expected = b"gmon\x01\0\0\0".to_vec();
    expected.extend([0; 12]);
    expected.extend([0, 2, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 100, 0, 0, 0]);
    expected.extend(b"seconds\0\0\0\0\0\0\0\0s\x02\x01");
    assert_eq!(written(&gmon), expected);
}

#[test]
fn a_real_file_holds_what_gprof_printed() {
    let (gmon, report) = read(&fixture("gmon/cycles.gmon")).unwrap();
    assert!(report.is_complete());
    assert_eq!(gmon.histograms.len(), 1);
    let histogram = &gmon.histograms[0];
    assert_eq!((histogram.low, histogram.high, histogram.rate), (0, 0x1348, 100));
    assert_eq!((histogram.bins.len(), histogram.bins.iter().sum::<u64>()), (1236, 52));
    // 69,388 calls of spin, 18,260 each of even and odd, 10,956 of leaf, 3,652 + 18,260 of fact, 3,652 of top.
    assert_eq!(
        gmon.arcs.iter().map(|arc| arc.calls).sum::<u64>(),
        69_388 + 2 * 18_260 + 10_956 + 21_912 + 3_652
    );
}

/// The header of 4.4BSD and MinGW, with what was in memory for the spare numbers, one bin and one arc.
fn bsd(layout: Layout, spare: u32) -> Vec<u8> {
    let number = |value: u64, length: usize| match layout.big_endian {
        true => value.to_be_bytes()[8 - length..].to_vec(),
        false => value.to_le_bytes()[..length].to_vec(),
    };
    let address = if layout.wide { 8 } else { 4 };
    let header = 2 * address + 24;
    let addresses = [0x1000, 0x1008].map(|value| number(value, address)).concat();
    let rest = [header as u64 + 4, 0x51879, 100, spare.into(), 0, 0].map(|value| number(value, 4)).concat();
    let bins = [7, 9].map(|value| number(value, 2)).concat();
    let arc = [0x1004, 0x1001, 3].map(|value| number(value, address)).concat();
    [addresses, rest, bins, arc].concat()
}

#[test]
fn files_of_bsd_say_how_wide_they_are() {
    for layout in LAYOUTS {
        let file = bsd(layout, 0x5a5a_5a5a);
        let arcs = vec![ArcCount { from: 0x1004, callee: 0x1001, calls: 3 }];
        let expected =
            Gmon { histograms: vec![histogram(0x1000, 0x1008, &[7, 9])], arcs, ..Gmon::new(layout) };
        assert_eq!(read(&file).unwrap().0, expected);
        assert_eq!(read_any(&file).unwrap().0, Format::Gmon);
        assert!(!treering_formats::is_ours(&file, Format::Gmon), "only the form of the C library is written");
        let other = read_of_width(&file, !layout.wide).unwrap_err();
        let (own, of_program) = if layout.wide { (64, 32) } else { (32, 64) };
        assert_eq!(
            other.to_string(),
            format!("it has addresses of {own} bits, and its program has addresses of {of_program} bits")
        );
        for length in 0..file.len() {
            if let Err(error) = read(&file[..length]) {
                assert!(is_within(&error, length), "{error}");
            }
        }
        let bits = read(&bsd(layout, 32_u32.wrapping_neg())).unwrap_err();
        assert_eq!(
            bits.to_string(),
            "byte 0x0: bins of 32 bits, as kernels write them, are not read; only bins of 16 bits are"
        );
    }
    let (gmon, _) = read(&fixture("gmon/windows.gmon")).unwrap();
    assert!(gmon.arcs.iter().all(|arc| arc.calls >> 32 == 0x7fff_1234));
    let (_, _, report) = read_any(&fixture("gmon/windows.gmon")).unwrap();
    assert!(report.notes.iter().any(|note| note.contains("lower 32 bits")), "{report:?}");
}

fn costs(profile: &Profile) -> Vec<(u64, u64, u64)> {
    let tree = &profile.tree;
    let mut costs: Vec<_> = tree
        .nodes()
        .filter_map(|node| {
            let address = profile.functions[tree.function(node)].address?;
            let [samples, cost] = [0, 1].map(|metric| tree.self_cost(MetricId::new(metric), node));
            Some((address.0, samples, cost))
        })
        .collect();
    costs.sort_unstable();
    costs
}

#[test]
fn samples_of_a_bin_are_divided_by_what_of_it_each_function_has() {
    // Bins of eight bytes; the first function ends two bytes before the end of the second bin.
    let gmon = Gmon { histograms: vec![histogram(0x100, 0x118, &[4, 8, 3])], ..Gmon::new(Layout::default()) };
    let program = Program { functions: vec![0x100..0x10e, 0x10e..0x200], ..Program::default() };
    let profile = gmon.profile(&program).unwrap();
    let tick = 10_000_000;
    let expected = [(0x100, 4, 4 * tick), (0x108, 6, 6 * tick), (0x10e, 2, 2 * tick), (0x110, 3, 3 * tick)];
    assert_eq!(costs(&profile), expected);
    assert_eq!(
        profile.metadata.notes[0].0,
        "8 of 15 samples are in bins that two functions share, and are divided between them by how much of the bin is theirs"
    );
    // Parts of samples add up, and what is in no function is not lost.
    let program = Program { functions: vec![0x10a..0x10c, 0x200..0x204], ..Program::default() };
    let profile = gmon.profile(&program).unwrap();
    assert_eq!([0, 1].map(|metric| profile.run_cost(MetricId::new(metric))), [15, 15 * tick]);
}

#[test]
fn arcs_are_of_the_functions_that_hold_their_ends() {
    let arc = |from, callee, calls| ArcCount { from, callee, calls };
    let arcs = vec![arc(0x104, 0x111, 3), arc(0x10c, 0x115, 4), arc(0x118, 0x111, 5), arc(0x900, 0x101, 1)];
    let gmon = Gmon { arcs, ..Gmon::new(Layout::default()) };
    let program = Program { functions: vec![0x100..0x110, 0x110..0x120], ..Program::default() };
    let profile = gmon.profile(&program).unwrap();
    let address = |function| profile.functions[function].address.unwrap().0;
    let arcs: Vec<_> =
        profile.arcs.iter().map(|arc| (address(arc.caller), address(arc.callee), arc.calls)).collect();
    assert_eq!(arcs, [(0x100, 0x110, 7), (0x110, 0x110, 5), (0x900, 0x100, 1)]);
    // Nothing was sampled, so calls are what is left to show.
    assert_eq!(profile.run_cost(profile.find_metric("calls").unwrap()), 13);
}

#[test]
fn histograms_that_cannot_be_added_are_refused() {
    let mut gmon = everything(Layout::default());
    let with = |histogram| Gmon { histograms: vec![histogram], ..Gmon::new(Layout::default()) };
    gmon.add(with(histogram(0x1000, 0x1010, &[1, 1, 1, 1]))).unwrap();
    assert_eq!(gmon.histograms[0].bins, [2, 1, 200_001, 8]);
    let mut refused = |histogram| gmon.add(with(histogram)).unwrap_err().to_string();
    assert_eq!(
        refused(histogram(0x1008, 0x1018, &[1, 1, 1, 1])),
        "the histogram from 0x1008 to 0x1018 shares addresses with another one"
    );
    let rate = Histogram { rate: 1000, ..histogram(0x3000, 0x3004, &[1]) };
    assert_eq!(refused(rate), "the histogram has 1000 samples a second, and another one has 100");
    let bytes = Histogram { dimension: "bytes".to_owned(), ..histogram(0x3000, 0x3004, &[1]) };
    assert_eq!(refused(bytes), "the histogram is of \"bytes\", and another one is of \"seconds\"");
}

#[test]
fn every_prefix_ends_between_records_or_says_where_it_was_cut() {
    for layout in LAYOUTS {
        let file = written(&everything(layout));
        let mut whole = 0;
        for length in 0..file.len() {
            match read_of_width(&file[..length], layout.wide) {
                Ok(_) => whole += 1,
                Err(error) => assert!(is_within(&error, length), "{error}"),
            }
        }
        // The header alone, three parts of the first histogram of which the last bin needs four, and so on.
        assert!((4..20).contains(&whole), "{whole}");
    }
    for (bytes, expected) in [
        (&b"gmon\x01\0\0\0"[..], "byte 0x0: the header is cut short: it needs 20 bytes, 8 are left"),
        (b"gmon\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "version 2 of gmon.out is not known; version 1 is read"),
        (
            b"gmon\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x07",
            "byte 0x14: the record is of the kind 7, which is not known",
        ),
        (
            b"gmon\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01abc",
            "byte 0x14: an arc record is cut short: it needs 20 bytes, 3 are left",
        ),
    ] {
        assert_eq!(read_of_width(bytes, true).unwrap_err().to_string(), expected);
    }
}

/// A histogram that claims four thousand million bins asks for no memory before it is clear that they are there.
#[test]
fn absurd_sizes_are_refused() {
    let mut file = b"gmon\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    file.extend(0_u64.to_le_bytes());
    file.extend(u64::MAX.to_le_bytes());
    file.extend([0xff; 4]);
    file.extend([1; 4]);
    file.extend([0; 16]);
    let error = read_of_width(&file, true).unwrap_err();
    assert!(matches!(error.problem, Problem::PartCutShort { .. }), "{error}");
}

#[test]
fn a_written_gmon_out_has_the_costs_and_calls_of_its_profile() {
    let mut gmon = everything(Layout::default());
    gmon.blocks.clear();
    let program = Program {
        path: "/bin/demo".to_owned(),
        functions: vec![0x1000..0x1008, 0x1008..0x1010, 0x2000..0x2010],
        ..Program::default()
    };
    let profile = gmon.profile(&program).unwrap();
    let (again, path, _) = of_profile(&profile, MetricId::new(1), None, Layout::default()).unwrap();
    assert_eq!(path, "/bin/demo");
    let back = again.profile(&program).unwrap();
    let metrics = [0, 1].map(MetricId::new);
    assert_eq!(metrics.map(|metric| back.run_cost(metric)), metrics.map(|metric| profile.run_cost(metric)));
    let calls = |profile: &Profile| profile.arcs.iter().map(|arc| arc.calls).collect::<Vec<_>>();
    assert_eq!(calls(&back), calls(&profile));
}

/// A file that was written of 348 samples had intervals as if there had been 325,416, and a warning that time is missing.
#[test]
fn ticks_shorter_than_those_of_any_timer_are_no_samples() {
    let of = |rate| {
        let histogram = Histogram { rate, ..histogram(0x100, 0x104, &[70_000, 30_000]) };
        Gmon { histograms: vec![histogram], ..Gmon::new(Layout::default()) }
    };
    let program = Program { functions: vec![0x100..0x102, 0x102..0x104], ..Program::default() };
    let told = |gmon: &Gmon| {
        let profile = gmon.profile(&program).unwrap();
        let time = profile.metrics.iter().position(|metric| metric.name == "cpu-time").unwrap();
        let (_, report) = read(&written(gmon)).unwrap();
        let cost = profile.run_cost(MetricId::from_usize(time));
        (cost, profile.metrics[time].sampling.is_some(), report.notes.len(), profile.metadata.notes.len())
    };
    assert_eq!(told(&of(1_000_000)), (100_000_000, false, 0, 1));
    assert_eq!(told(&of(1_000)), (100_000_000_000, true, 1, 0));
}

/// The library that counts may have more samples than the program.
#[test]
fn of_calls_beside_samples_the_module_that_was_counted_is_written() {
    let mut profile = Profile::new(RecursionRule::Full);
    let samples = profile.add_metric(Metric::exact("samples", Unit::Count));
    let thread = profile.add_single_thread("demo");
    let mut function = |path: &str, address| {
        let path = profile.strings.intern(path);
        let module = Module { path, build_id: Box::default(), kind: ModuleKind::Elf };
        let module = profile.modules.intern(module);
        profile.functions.intern(Function::at_address(Some(module), StatedAddress(address)))
    };
    let functions =
        [function("/bin/demo", 0x1000), function("/bin/demo", 0x2000), function("/lib/counts.so", 0x1000)];
    let [caller, callee, _] = functions;
    let frames = functions.map(|function| Frame { function, call_site: None });
    profile.add_stack(thread, &frames, None, &[(samples, 9)]);
    profile.add_stack(thread, &frames[..2], None, &[(samples, 4)]);
    profile.arcs.push(Arc { caller, callee, call_site: None, calls: 7, total_costs: Vec::new() });
    let (gmon, path, _) = of_profile(&profile, samples, None, Layout::default()).unwrap();
    assert_eq!((path.as_str(), gmon.arcs.len()), ("/bin/demo", 1));
}
