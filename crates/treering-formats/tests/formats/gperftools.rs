//! Profiles of gperftools: recorded ones, and small ones made by hand in each layout.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::{Here, fixture};
use treering_formats::{Format, gperftools, read_any};
use treering_profile::{FunctionKind, NodeId, Profile, Unit};

fn cost(profile: &Profile, metric: &str) -> u64 {
    profile.run_cost(profile.find_metric(metric).unwrap())
}

#[test]
fn totals_are_those_that_pprof_prints() {
    let read = |name: &str| read_any(&fixture(&format!("gperftools/{name}"))).unwrap();
    let (format, profile, report) = read("cpu.prof");
    assert_eq!((format, report.unfinished), (Format::Gperftools, false));
    assert_eq!((cost(&profile, "samples"), cost(&profile, "cpu")), (141, 1_410_000_000));
    let (_, profile, _) = read("counted.heap");
    let names = ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"];
    assert_eq!(names.map(|name| cost(&profile, name)), [600, 2_100_000, 200, 600_000]);
    let (_, profile, report) = read("growth.heap");
    assert_eq!((cost(&profile, "objects"), cost(&profile, "space")), (9, 9_437_184));
    assert!(report.notes[0].contains("requested from the system"), "{report:?}");
}

/// Costs by file of the innermost frame.
#[test]
fn samples_are_in_the_files_that_pprof_finds() {
    let (_, profile, _) = read_any(&fixture("gperftools/cpu.prof")).unwrap();
    let time = profile.find_metric("cpu").unwrap();
    let of = |name: &str| {
        let nodes = profile.tree.nodes().filter(|&node| {
            let module = profile.functions[profile.tree.function(node)].module;
            module.is_some_and(|id| profile.strings[profile.modules[id].path].ends_with(name))
        });
        nodes.map(|node| profile.tree.self_cost(time, node)).sum::<u64>()
    };
    assert_eq!((of("/work"), of("/libc.so.6")), (1_400_000_000, 10_000_000));
}

/// Every stack with its self cost in a metric.
fn stacks(profile: &Profile, metric: &str) -> Vec<(String, u64)> {
    let metric = profile.find_metric(metric).unwrap();
    let name = |node: NodeId| {
        let function = profile.functions[profile.tree.function(node)];
        match (function.kind, function.address) {
            (FunctionKind::Address, Some(address)) => format!("{address}"),
            _ => profile.strings[function.name].to_owned(),
        }
    };
    let mut stacks = Vec::new();
    for leaf in profile.tree.nodes().filter(|&node| profile.tree.self_cost(metric, node) > 0) {
        let mut frames = Vec::new();
        let mut at = leaf;
        while let Some(parent) = profile.tree.parent(at) {
            frames.push(name(at));
            at = parent;
        }
        frames.reverse();
        stacks.push((frames.join(" "), profile.tree.self_cost(metric, leaf)));
    }
    stacks.sort();
    stacks
}

const MAPS: &str =
    "10000000-10002000 r-xp 00001000 08:01 7 /bin/mix\n20000000-20001000 r-xp 00000000 00:00 0\n";

fn words(wide: bool, big_endian: bool, words: &[u32]) -> Vec<u8> {
    let bytes = |&word: &u32| match (wide, big_endian) {
        (true, false) => u64::from(word).to_le_bytes().to_vec(),
        (true, true) => u64::from(word).to_be_bytes().to_vec(),
        (false, false) => word.to_le_bytes().to_vec(),
        (false, true) => word.to_be_bytes().to_vec(),
    };
    words.iter().flat_map(bytes).collect()
}

/// Three stacks with a period of 10 ms. Of the second one the innermost address stands twice, as some unwinders do.
const SAMPLES: [u32; 20] = [
    0,
    3,
    0,
    10_000,
    0,
    5,
    2,
    0x1000_0010,
    0x1000_0021,
    2,
    3,
    0x1000_0010,
    0x1000_0010,
    0x1000_0031,
    1,
    1,
    0x3000_0000,
    0,
    1,
    0,
];

#[test]
fn both_widths_and_byte_orders_are_read_alike() {
    for (wide, big_endian) in [(true, false), (true, true), (false, false), (false, true)] {
        let file = [words(wide, big_endian, &SAMPLES), MAPS.as_bytes().to_vec()].concat();
        assert_eq!(read_any(&file).unwrap().0, Format::Gperftools);
        let (profile, report) = gperftools::read_with(&file, &mut Here).unwrap();
        let row = |stack: &str, cost: u64| (stack.to_owned(), cost);
        let expected = [row("0x401020 0x401010", 5), row("0x401030 0x401010", 2), row("[unknown]", 1)];
        assert_eq!(stacks(&profile, "samples"), expected, "{wide} {big_endian}");
        let metric = profile.find_metric("cpu").unwrap();
        assert_eq!(
            (profile.run_cost(metric), profile.metrics[metric.index()].unit),
            (80_000_000, Unit::Nanoseconds)
        );
        assert!(!report.unfinished);
        assert!(report.notes[1].ends_with("whose file is not here: 1"), "{report:?}");
        // Without the end, what is there is read.
        let cut = gperftools::read(&file[..file.len() - MAPS.len() - 1]).unwrap();
        assert!(cut.1.unfinished && cut.1.notes[0].contains("nothing has a name"), "{:?}", cut.1);
    }
}

#[test]
fn sampled_heaps_are_scaled_as_pprof_does() {
    let heap = |kind: &str| {
        format!(
            "heap profile:   12:   540100 [  30:  1200300] @ {kind}\n  10:   1000 [  20:   2000] @ 0x10000011 0x10000021\n   \
             2: 539100 [  10: 1198300] @ 0x10000111 0x10000021\n\nMAPPED_LIBRARIES:\n{MAPS}"
        )
    };
    // As `go tool pprof -raw` prints them, which cuts off what is below 1.
    for (kind, expected) in [
        ("heap_v2/524288", PPROF_V2),
        ("heap/524288", PPROF_V1),
        ("heapprofile", [[20, 2000, 10, 1000], [10, 1_198_300, 2, 539_100]]),
    ] {
        let (profile, report) = gperftools::read_with(heap(kind).as_bytes(), &mut Here).unwrap();
        let names = ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"];
        for (at, name) in names.into_iter().enumerate() {
            let found = stacks(&profile, name);
            let whole = [("0x401020 0x401010", expected[0][at]), ("0x401020 0x401110", expected[1][at])];
            for ((stack, cost), (known, truth)) in found.iter().zip(whole) {
                assert_eq!(stack, known);
                assert!(cost - truth <= 1, "{kind} {name} {stack}: {cost}, pprof {truth}");
            }
            assert_eq!(found.len(), 2);
        }
        let told = report.notes.iter().any(|note| note.starts_with("allocations were sampled"));
        assert_eq!(told, kind != "heapprofile", "{report:?}");
    }
}

/// Allocated and in use, objects and bytes, of both stacks.
const PPROF_V2: [[u64; 4]; 2] = [[104_867, 10_486_760, 52_433, 5_243_380], [48, 5_864_833, 4, 1_341_121]];
const PPROF_V1: [[u64; 4]; 2] = [[52_438, 5_243_880, 26_219, 2_621_940], [27, 3_266_078, 3, 839_238]];

#[test]
fn damage_is_told_with_its_place() {
    let error = |text: &str| gperftools::read(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(error("nothing"), "not a CPU profile or a heap profile of gperftools");
    let heading = "heap profile: 1: 2 [1: 2] @ heapprofile\n";
    assert_eq!(error(heading), "it holds no samples or allocations");
    let damaged = error(&format!("{heading} 1: 2 [1: 2] @ 0x10\n 1: x [1: 2] @ 0x10\n"));
    assert_eq!(
        damaged,
        "line 3 at byte 0x3c: a stack, as `1: 24 [2: 48] @ 0x401010`, or a known heading is expected"
    );
    let unknown = error("heap profile: 1: 2 [1: 2] @ fragmentation\n");
    assert_eq!(unknown, "line 1 at byte 0x0: heap profiles of the kind `fragmentation` are not known");
    let large = u64::MAX;
    let text = format!("{heading} {large}: 2 [1: 2] @ 0x10\n 1: 2 [1: 2] @ 0x10\n");
    assert_eq!(error(&text), "a sum of costs below 2^64 is expected");
    let text = format!("{heading} {large}0: 2 [1: 2] @ 0x10\n");
    assert_eq!(error(&text), "line 2 at byte 0x28: a number below 2^64 is expected");
}
