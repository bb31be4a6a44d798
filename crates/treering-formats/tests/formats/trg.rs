//! `.trg` files: what is written is read back, whatever happens to the file.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::{add_address_cost, add_code, apply, canonical, empty_profile, profile, step};
use proptest::prelude::*;
use treering_formats::Problem;
use treering_formats::trg::{self, Damage, Kind, WriteError};
use treering_profile::{
    Activations, CallBias, FunctionId, LineId, MetricId, NodeId, OfThread, Point, Profile, SizeCost,
    StringId, ThreadId, ThreadRows,
};
use treering_testing::synthetic::{Shape, synthetic};

fn written(profile: &Profile) -> Vec<u8> {
    let mut file = Vec::new();
    trg::write(profile, &mut file).unwrap();
    file
}

/// Adds something of every kind that only call events tell.
fn add_details(profile: &mut Profile) {
    let mut activations = Activations::new(MetricId::new(0));
    activations.nodes.row(NodeId::new(5)).add(70);
    activations.nodes.row(NodeId::new(5)).add(90);
    activations.sizes.push(SizeCost { node: NodeId::new(5), bucket: 9, calls: 2, total_cost: 160 });
    profile.activations = Some(activations);
    profile.ports.row(NodeId::new(6)).fails = 300;
    profile.memory.row(NodeId::new(7)).peak_bytes = 4096;
    let (thread, node, description) = (ThreadId::new(1), NodeId::new(7), StringId::new(3));
    profile.points.push(Point { time_ns: 5, thread, node, description, values: vec![(MetricId::new(1), 9)] });
}

/// A file with a frame of every kind but ARCS and SOURCES.
fn small_file() -> Vec<u8> {
    let mut profile = synthetic(&Shape { nodes: 40, functions: 6, lines: 9, metrics: 2, ..Shape::SMALL });
    profile.tree.add_calls(NodeId::new(5), 7, 2);
    add_details(&mut profile);
    add_code(&mut profile, ThreadId::new(1), FunctionId::new(2), LineId::new(3));
    add_address_cost(&mut profile, ThreadId::new(1), FunctionId::new(2), LineId::new(3));
    written(&profile)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn written_profiles_are_read_back(steps in prop::collection::vec(step(), 0..40)) {
        let profile = profile(&steps);
        let (read, report) = trg::read(&written(&profile)).unwrap();
        prop_assert!(report.is_complete(), "{report:?}");
        prop_assert_eq!(canonical(&read), canonical(&profile));
    }

    #[test]
    fn a_file_appended_bit_by_bit_reads_like_one_written_at_once(
        groups in prop::collection::vec(prop::collection::vec(step(), 0..8), 0..6)
    ) {
        let mut profile = empty_profile();
        let mut file = Vec::new();
        let mut appender = trg::Appender::new(&mut file).unwrap();
        for (at, group) in groups.iter().enumerate() {
            group.iter().for_each(|step| apply(&mut profile, step));
            profile.runs[0].duration_ns += 1;
            profile.threads[0].name = format!("renamed {at}");
            if at % 2 == 1 {
                profile.compact_line_costs();
            }
            appender.append(&profile).unwrap();
        }
        appender.finish(&profile).unwrap();
        let (read, report) = trg::read(&file).unwrap();
        prop_assert!(report.is_complete(), "{report:?}");
        prop_assert_eq!(canonical(&read), canonical(&profile));
    }

    #[test]
    fn a_flipped_bit_is_always_noticed(at in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut file = small_file();
        let at = 16 + at.index(file.len() - 16);
        file[at] ^= 1_u8 << bit;
        let (_, report) = trg::read(&file).unwrap();
        prop_assert!(!report.is_complete(), "bit {bit} of byte {at}");
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = trg::read(&bytes);
        let mut framed = small_file();
        framed.truncate(16);
        framed.extend(bytes);
        prop_assert!(!trg::read(&framed).unwrap().1.is_complete());
    }
}

#[test]
fn every_prefix_keeps_all_whole_frames() {
    let file = small_file();
    let ends: Vec<usize> = trg::dump(&file)
        .unwrap()
        .skip(1)
        .map(|frame| {
            (frame.json()["offset"].as_u64().unwrap() + 16 + frame.json()["stored_length"].as_u64().unwrap())
                as usize
        })
        .collect();
    assert_eq!(ends.last(), Some(&file.len()));
    let mut nodes = 0;
    for length in 0..file.len() {
        let result = trg::read(&file[..length]);
        if length < 16 {
            assert!(result.is_err());
            continue;
        }
        let (read, report) = result.unwrap();
        assert!(read.metadata.unfinished && report.unfinished);
        let whole = ends.iter().filter(|&&end| end <= length).count();
        let at_a_boundary = length == 16 || ends.contains(&length);
        assert_eq!(report.losses.is_empty(), at_a_boundary, "at {length}: {report:?}");
        let found = trg::dump(&file[..length]).unwrap().skip(1).filter(|frame| frame.loss.is_none()).count();
        assert_eq!(found, whole, "at {length}");
        assert!(read.tree.len() >= nodes);
        nodes = read.tree.len();
    }
    assert_eq!(nodes, 40);
}

#[test]
fn a_cut_file_says_where_and_how_much_is_missing() {
    let file = small_file();
    let (_, report) = trg::read(&file[..file.len() - 3]).unwrap();
    let warnings = report.warnings();
    let needs = file.len() as u64 - report.losses[0].offset;
    let expected = format!(
        "END frame at byte {:#x} is cut short: it needs {needs} bytes, {} are left",
        report.losses[0].offset,
        needs - 3
    );
    assert_eq!(warnings[0], expected);
}

#[test]
fn a_damaged_frame_costs_only_what_depends_on_it() {
    let profile = synthetic(&Shape::SMALL);
    let file = written(&profile);
    let frame = trg::dump(&file).unwrap().find(|frame| frame.json()["kind"] == "COSTS").unwrap();
    let offset = frame.json()["offset"].as_u64().unwrap() as usize;
    // In the payload, in the length, in the kind.
    for damaged in [offset + 40, offset + 8, offset + 11, offset] {
        let mut file = file.clone();
        file[damaged] ^= 0x15;
        let (read, report) = trg::read(&file).unwrap();
        assert_eq!(report.losses.len(), 1, "{report:?}");
        assert_eq!(report.losses[0].offset, offset as u64);
        assert!(!report.unfinished);
        assert_eq!(read.tree.len(), profile.tree.len());
        assert_eq!(read.run_cost(MetricId::new(0)), 0);
        assert_eq!(read.line_costs.len(), profile.line_costs.len());
    }
}

#[test]
fn parts_that_depend_on_a_lost_table_are_lost_too_and_reported() {
    let mut file = small_file();
    let frame = trg::dump(&file).unwrap().find(|frame| frame.json()["kind"] == "STRINGS").unwrap();
    let offset = frame.json()["offset"].as_u64().unwrap() as usize;
    file[offset + 20] ^= 1;
    let (read, report) = trg::read(&file).unwrap();
    assert_eq!(read.tree.len(), 0);
    assert_eq!(report.losses[0].damage, Damage::Checksum);
    assert!(report.losses.len() > 3);
}

#[test]
fn other_files_and_newer_versions_are_refused() {
    assert_eq!(trg::read(b"PERFILE2").unwrap_err().to_string(), "not a .trg file");
    assert_eq!(trg::read(b"").unwrap_err().to_string(), "not a .trg file");
    let mut file = small_file();
    file[8] = 2;
    let error = trg::read(&file).unwrap_err();
    assert!(matches!(error.problem, Problem::Unsupported(_)), "{error}");
    assert_eq!(error.to_string(), "it has version 2 of the .trg format, this program reads version 1");
}

/// A frame as a stranger would write it.
fn frame(kind: u16, version: u16, raw_length: u32, stored: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend(kind.to_le_bytes());
    frame.extend(version.to_le_bytes());
    frame.extend(raw_length.to_le_bytes());
    frame.extend((stored.len() as u32).to_le_bytes());
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&frame), stored);
    frame.extend(checksum.to_le_bytes());
    frame.extend(stored);
    frame
}

#[test]
fn frames_of_unknown_kinds_and_versions_are_skipped() {
    let file = small_file();
    let mut newer = file[..16].to_vec();
    newer.extend(frame(77, 1, 3, b"new"));
    newer.extend(frame(Kind::Strings as u16, 9, 3, b"new"));
    newer.extend(&file[16..]);
    let (read, report) = trg::read(&newer).unwrap();
    assert_eq!(canonical(&read), canonical(&trg::read(&file).unwrap().0));
    assert_eq!(report.skipped, [(77, 1), (Kind::Strings as u16, 9)]);
    assert!(report.losses.is_empty() && !report.unfinished);
}

#[test]
fn hostile_lengths_take_no_memory() {
    let header = small_file()[..16].to_vec();
    let read = |frame: Vec<u8>| trg::read(&[header.clone(), frame].concat()).unwrap().1.losses;
    let huge = read(frame(Kind::Nodes as u16, 1, u32::MAX, b"abc"));
    assert_eq!(huge[0].damage, Damage::TooLarge { length: u32::MAX });
    // 2^40 nodes, functions, strings in a few bytes.
    let count = [0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1];
    for kind in Kind::ALL {
        assert_eq!(read(frame(kind as u16, 1, count.len() as u32, &count)).len(), 1, "{kind}");
    }
    // A frame of compressed zeros that claims another length than it has.
    let bomb = zstd::bulk::compress(&vec![0; 1 << 20], 1).unwrap();
    assert_eq!(read(frame(Kind::Nodes as u16, 1, 1 << 19, &bomb))[0].damage, Damage::Compression);
}

#[test]
fn a_file_of_compressed_zeros_does_not_fill_the_memory() {
    // Line costs of 0 in node 0 are valid, and 64 MiB of them compress to a few kB.
    let mut file = written(&profile(&[common::Step::Line { file: "a".to_owned(), line: 1 }]));
    let mut payload = vec![0; 60 << 20];
    let count = (payload.len() as u32 - 4) / 4;
    for (at, byte) in payload.iter_mut().enumerate().take(4) {
        *byte = (count >> (7 * at)) as u8 & 0x7f | if at < 3 { 0x80 } else { 0 };
    }
    let packed = zstd::bulk::compress(&payload, 1).unwrap();
    let end = trg::dump(&file).unwrap().last().unwrap().json()["offset"].as_u64().unwrap() as usize;
    file.truncate(end);
    for _ in 0..20 {
        file.extend(frame(Kind::Nodes as u16, 1, payload.len() as u32, &packed));
    }
    let (_, report) = trg::read(&file).unwrap();
    assert_eq!(report.losses.last().unwrap().damage, Damage::TooMuch);
}

/// Takes a number of bytes, then fails, as a full disk does.
struct FullDisk {
    file: Vec<u8>,
    left: usize,
}

impl std::io::Write for &mut FullDisk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.left == 0 && !bytes.is_empty() {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let taken = bytes.len().min(self.left);
        self.left -= taken;
        self.file.extend(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_keeps_what_was_written_and_ends_the_appender() {
    let profile = synthetic(&Shape::SMALL);
    let whole = written(&profile).len();
    for left in (0..whole).step_by(97) {
        let mut disk = FullDisk { file: Vec::new(), left };
        let Ok(mut appender) = trg::Appender::new(&mut disk) else { continue };
        let first = appender.append(&profile);
        assert!(matches!(appender.finish(&profile), Err(WriteError::Io(_))));
        if disk.file.len() >= 16 {
            let (read, _) = trg::read(&disk.file).unwrap();
            assert!(read.metadata.unfinished);
            assert!(first.is_err() || read.tree.len() == profile.tree.len());
        }
    }
}

#[test]
fn a_profile_that_lost_something_is_not_appended() {
    let mut appender = trg::Appender::new(Vec::new()).unwrap();
    appender.append(&synthetic(&Shape::SMALL)).unwrap();
    let other = synthetic(&Shape { seed: 8, ..Shape::SMALL });
    assert!(matches!(appender.append(&other), Err(WriteError::NotAnExtension(_))));
    // It was refused before anything was written, so the right one still can be.
    appender.append(&synthetic(&Shape::SMALL)).unwrap();
}

#[test]
fn a_profile_larger_than_a_block_is_read_back() {
    let profile = synthetic(&Shape { nodes: 200_000, functions: 70_000, lines: 70_000, ..Shape::MILLION });
    let (read, report) = trg::read(&written(&profile)).unwrap();
    assert!(report.is_complete());
    assert!(canonical(&read) == canonical(&profile));
}

#[test]
fn an_empty_file_with_a_header_is_an_unfinished_profile() {
    let (read, report) = trg::read(&small_file()[..16]).unwrap();
    assert!(report.unfinished && report.losses.is_empty());
    assert_eq!(read.functions.get(FunctionId::new(0)), Some(&treering_profile::Function::root()));
}

#[test]
fn details_that_fit_nothing_are_reported_and_the_rest_is_kept() {
    let profile = trg::read(&small_file()).unwrap().0;
    let whole = written(&profile);
    let end = trg::dump(&whole).unwrap().last().unwrap().json()["offset"].as_u64().unwrap() as usize;
    let float = |number: f64| number.to_le_bytes();
    // Node 5, timed 1, total, least, greatest, calm and calm total 1.
    let statistics = [0, 1, 10, 1, 1, 1, 1, 1, 1];
    let with = |mean: f64, squares: f64| [&statistics[..], &float(mean), &float(squares)].concat();
    let other_metric = [&[1][..], &with(1.0, 0.0)[1..]].concat();
    let wrong = [
        (Kind::Statistics, with(f64::NAN, 0.0), "the statistics of a node contradict each other"),
        (Kind::Statistics, with(1.0, -0.5), "the statistics of a node contradict each other"),
        (Kind::Statistics, other_metric, "it is of another metric than the activations before"),
        (Kind::Statistics, with(1.0, 0.0)[..20].to_vec(), "its content ends too early"),
        (Kind::Ports, vec![1, 80, 0, 0, 0, 0, 0], "it names a node that is missing"),
        (Kind::Memory, vec![1, 80, 0, 0], "it names a node that is missing"),
        (Kind::Sizes, vec![0, 1, 80, 0, 0, 0], "it names a node that is missing"),
        (Kind::Sizes, vec![0, 1, 0, 64, 0, 0], "an argument is larger than any can be"),
        (Kind::Points, vec![1, 0, 4, 0, 0, 0], "a point refers to something missing"),
        (Kind::Points, vec![1, 0, 0, 0, 0, 1, 9, 0], "a point refers to something missing"),
    ];
    for (kind, payload, said) in wrong {
        let mut file = whole[..end].to_vec();
        file.extend(frame(kind as u16, 1, payload.len() as u32, &payload));
        let (read, report) = trg::read(&file).unwrap();
        assert_eq!(report.losses.len(), 1, "{kind} {payload:?}");
        assert_eq!(report.losses[0].damage, Damage::Content(said), "{kind} {payload:?}");
        assert_eq!((&read.activations, &read.points), (&profile.activations, &profile.points));
        assert_eq!((&read.ports, &read.memory), (&profile.ports, &profile.memory));
    }
}

/// Changes one of some rows.
fn change<T: OfThread>(rows: &mut ThreadRows<T>, at: usize, change: impl FnOnce(&mut T)) {
    let mut all: Vec<T> = rows.iter().collect();
    change(&mut all[at]);
    *rows = all.into();
}

#[test]
fn counts_of_code_are_appended_as_they_grow() {
    let mut profile = trg::read(&small_file()).unwrap().0;
    let mut file = Vec::new();
    let mut appender = trg::Appender::new(&mut file).unwrap();
    appender.append(&profile).unwrap();
    change(&mut profile.code.translated, 0, |row| row.executions += 1000);
    change(&mut profile.code.branches, 1, |row| row.count += 1000);
    let more = profile.code.branches.iter().nth(1).unwrap();
    profile.code.branches.push(more);
    let more = profile.code.executions.iter().next().unwrap();
    profile.code.executions.push(more);
    profile.code.partials.push(profile.code.partials[0]);
    appender.append(&profile).unwrap();
    appender.append(&profile).unwrap();
    appender.finish(&profile).unwrap();
    let (read, report) = trg::read(&file).unwrap();
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(canonical(&read), canonical(&profile));
}

#[test]
fn counts_of_code_that_are_taken_back_are_not_appended() {
    let mut profile = trg::read(&small_file()).unwrap().0;
    let mut appender = trg::Appender::new(Vec::new()).unwrap();
    appender.append(&profile).unwrap();
    profile.code.translated.clear();
    let refused = appender.append(&profile).unwrap_err();
    assert!(matches!(refused, WriteError::NotAnExtension(_)), "{refused}");
}

#[test]
fn counts_of_code_that_fit_nothing_are_reported_and_the_rest_is_kept() {
    let whole = small_file();
    let profile = trg::read(&whole).unwrap().0;
    let end = trg::dump(&whole).unwrap().last().unwrap().json()["offset"].as_u64().unwrap() as usize;
    let wrong = [
        (Kind::CodeSpaces, vec![1, 1, 99, 0], "the module of code is missing"),
        (Kind::Translated, vec![1, 0, 4, 0, 1, 1, 1], "it is of code that is missing"),
        (Kind::Translated, vec![1, 90, 0, 0, 1, 1, 1], "it is of a thread that is missing"),
        (Kind::Partials, vec![1, 90, 0, 0, 1, 1, 1], "it is of a thread that is missing"),
        (Kind::Blocks, vec![2, 1, 0, 60, 0, 1, 16], "an instruction is longer than 15 bytes or empty"),
        (Kind::Blocks, vec![2, 1, 0, 0, 0, 1, 1], "the blocks are not sorted"),
        (Kind::Executions, vec![1, 0, 90, 1], "it is of a block that is missing"),
        (Kind::Branches, vec![1, 0, 77, 0, 0, 0, 0, 1], "a kind of branch is unknown"),
        (Kind::Branches, vec![1, 0, 0, 20, 0, 0, 0, 1], "it is of code that is missing"),
        (Kind::CodeLines, vec![1, 0, 0, 0], "the lines of addresses are not sorted"),
        (Kind::Uncounted, vec![1, 0, 90, 0, 0, 0, 0], "an uncounted part refers to something missing"),
    ];
    for (kind, payload, said) in wrong {
        let mut file = whole[..end].to_vec();
        file.extend(frame(kind as u16, 1, payload.len() as u32, &payload));
        let (read, report) = trg::read(&file).unwrap();
        assert_eq!(report.losses.len(), 1, "{kind} {payload:?}");
        assert_eq!(report.losses[0].damage, Damage::Content(said), "{kind} {payload:?}");
        assert_eq!(format!("{:?}", read.code), format!("{:?}", profile.code));
    }
}

#[test]
fn costs_by_address_that_fit_nothing_are_reported_and_those_that_grow_are_appended() {
    let whole = small_file();
    let mut profile = trg::read(&whole).unwrap().0;
    let end = trg::dump(&whole).unwrap().last().unwrap().json()["offset"].as_u64().unwrap() as usize;
    // Thread, function, holder, address, line, metric.
    for wrong in [
        [90, 0, 0, 0, 0, 0],
        [0, 90, 0, 0, 0, 0],
        [0, 0, 90, 0, 0, 0],
        [0, 0, 0, 0, 90, 0],
        [0, 0, 0, 0, 0, 9],
    ] {
        let mut file = whole[..end].to_vec();
        let payload = [&[1][..], &wrong, &[5]].concat();
        file.extend(frame(Kind::AddressCosts as u16, 1, payload.len() as u32, &payload));
        let (read, report) = trg::read(&file).unwrap();
        let damage: Vec<_> = report.losses.iter().map(|loss| &loss.damage).collect();
        assert_eq!(damage, [&Damage::Content("a cost by address refers to something missing")], "{wrong:?}");
        assert_eq!(read.address_costs, profile.address_costs);
    }
    let mut file = Vec::new();
    let mut appender = trg::Appender::new(&mut file).unwrap();
    appender.append(&profile).unwrap();
    add_address_cost(&mut profile, ThreadId::new(1), FunctionId::new(2), LineId::new(3));
    appender.append(&profile).unwrap();
    appender.finish(&profile).unwrap();
    let (mut read, report) = trg::read(&file).unwrap();
    assert!(report.is_complete(), "{report:?}");
    read.compact_address_costs();
    assert_eq!(read.address_costs.iter().map(|row| row.cost).collect::<Vec<_>>(), [600]);
}

#[test]
fn a_node_stated_again_is_replaced_and_sizes_are_added() {
    let mut file = small_file();
    let end = trg::dump(&file).unwrap().last().unwrap().json()["offset"].as_u64().unwrap() as usize;
    file.truncate(end);
    file.extend(frame(Kind::Ports as u16, 1, 7, &[1, 12, 0, 0, 1, 0, 0]));
    file.extend(frame(Kind::Memory as u16, 1, 4, &[1, 14, 1, 2]));
    file.extend(frame(Kind::Sizes as u16, 1, 6, &[0, 1, 10, 9, 1, 40]));
    let (mut read, report) = trg::read(&file).unwrap();
    assert!(report.losses.is_empty(), "{report:?}");
    assert_eq!(read.ports.get(NodeId::new(6)).counts(), [0, 0, 1, 0, 0]);
    assert_eq!(
        (read.memory.get(NodeId::new(7)).live_bytes, read.memory.get(NodeId::new(7)).peak_bytes),
        (1, 2)
    );
    let activations = read.activations.as_mut().unwrap();
    activations.compact_sizes();
    assert_eq!((activations.sizes[0].calls, activations.sizes[0].total_cost), (3, 200));
}

#[test]
fn points_of_a_thread_whose_nodes_were_lost_are_left_out() {
    let mut profile = empty_profile();
    let process = profile.threads[0].process;
    let thread = profile.add_thread(process, 11, "second");
    for (thread, time_ns) in [(ThreadId::new(0), 1), (thread, 2)] {
        let (node, description) = (profile.threads[thread.index()].root, StringId::new(0));
        profile.points.push(Point { time_ns, thread, node, description, values: Vec::new() });
    }
    let mut file = written(&profile);
    let (read, _) = trg::read(&file).unwrap();
    assert_eq!(read.points, profile.points);
    let frames: Vec<_> = trg::dump(&file).unwrap().collect();
    let nodes = frames.iter().find(|frame| frame.json()["kind"] == "NODES").unwrap();
    file[nodes.json()["offset"].as_u64().unwrap() as usize + 20] ^= 1;
    let (read, report) = trg::read(&file).unwrap();
    assert!(!report.is_complete());
    assert!(read.threads.is_empty() && read.points.is_empty());
}

#[test]
fn a_negative_call_bias_is_refused_with_its_frame() {
    let mut profile = empty_profile();
    let mut read = |inside_ns, outside_ns| {
        profile.metadata.call_bias = Some(CallBias { inside_ns, outside_ns, ..CallBias::default() });
        trg::read(&written(&profile)).unwrap()
    };
    for (inside_ns, outside_ns) in [(-1.0, 0.0), (2.0, -1.0), (-3.0, 2.5)] {
        let (read, report) = read(inside_ns, outside_ns);
        assert_eq!(report.losses[0].damage, Damage::Content("the call bias is negative"));
        assert_eq!(read.metadata.call_bias, None);
    }
    let (read, report) = read(-3.0, 3.5);
    assert!(report.is_complete());
    assert_eq!(read.metadata.call_bias.unwrap().pair_ns(), 0.5);
}

#[test]
fn known_values_of_a_node_cannot_be_taken_back() {
    let before = trg::read(&small_file()).unwrap().0;
    let takes: [fn(&mut Profile); 4] = [
        |profile| profile.points.clear(),
        |profile| profile.ports.row(NodeId::new(6)).fails = 0,
        |profile| profile.activations = None,
        |profile| profile.activations.as_mut().unwrap().metric = MetricId::new(1),
    ];
    for take in takes {
        let mut appender = trg::Appender::new(Vec::new()).unwrap();
        appender.append(&before).unwrap();
        let mut less = before.clone();
        take(&mut less);
        assert!(matches!(appender.append(&less), Err(WriteError::NotAnExtension(_))));
    }
}
