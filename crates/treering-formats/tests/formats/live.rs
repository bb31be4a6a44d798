//! Live files are read whatever is in them: a program may be killed in the middle of an event, be
//! changing the file while it is read, or have overwritten it by mistake.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ops::RangeInclusive;

use proptest::prelude::*;
use treering_formats::{Error, Format, ReadReport, live, read_any, trg};
use treering_profile::Profile;

const FIXTURES: [&str; 4] = ["stack_machine", "everything", "stack_machine_4", "everything_4"];

/// Where the records begin; before, there is the header.
const HEADER_BYTES: usize = 4096;

fn fixture(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/live");
    std::fs::read(format!("{folder}/{name}.live")).unwrap()
}

/// Reads bytes as those of a program that ended and of one that runs. What can be read is valid
/// and can be written.
fn try_both(bytes: &[u8]) {
    for now in [None, Some(u64::MAX / 3)] {
        match live::read_at(bytes, now) {
            Ok((profile, report)) => {
                profile.validate().unwrap();
                let _ = report.warnings();
                trg::write(&profile, std::io::sink()).unwrap();
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// Calls and recursive calls of all nodes of a function.
fn calls(profile: &Profile, name: &str) -> (u64, u64) {
    let tree = &profile.tree;
    let is_it = |node| &profile.strings[profile.functions[tree.function(node)].name] == name;
    let nodes = tree.nodes().filter(|&node| is_it(node));
    nodes.fold((0, 0), |sum, node| (sum.0 + tree.calls(node), sum.1 + tree.recursive_calls(node)))
}

#[test]
fn a_program_that_was_killed_loses_nothing() {
    let (format, profile, report) = read_any(&fixture("stack_machine")).unwrap();
    assert_eq!(format, Format::Live);
    assert_eq!(report, ReadReport { unfinished: true, ..ReadReport::default() });
    profile.validate().unwrap();
    // The numbers that README.md of the example predicts, before the function that was killed.
    assert_eq!(calls(&profile, "even"), (4, 0));
    assert_eq!(calls(&profile, "odd"), (3, 0));
    assert_eq!(calls(&profile, "down-to-zero"), (5, 4));
    assert_eq!(calls(&profile, "careful"), (5, 0));
    let (all, recursive) = calls(&profile, "fib");
    assert!(all > 177 && all == recursive + 2, "twice it was called from outside");
    let exceptions: u64 = profile.ports.filled().map(|(_, ports)| ports.exceptions).sum();
    assert_eq!(exceptions, 2);
    assert_eq!(profile.runs[0].command, ["./stack_machine", "killed.stack"]);
    // fib called itself some levels deep.
    assert!((1..=40).contains(&profile.metadata.losses.open_activations));
}

#[test]
fn open_activations_cost_time_up_to_now() {
    let bytes = fixture("stack_machine");
    let time = |now| {
        let (profile, _) = live::read_at(&bytes, now).unwrap();
        profile.run_cost(profile.find_metric("time").unwrap())
    };
    let raw_start = u64::from_le_bytes(bytes[56..64].try_into().unwrap());
    let (hour, two) = (3_600_000_000_000, 7_200_000_000_000);
    let (at_one, at_two) = (time(Some(raw_start + hour)), time(Some(raw_start + two)));
    assert!(time(None) < hour / 100);
    assert!((at_two - at_one).abs_diff(hour) < hour / 1000, "{at_one} {at_two}");
}

#[test]
fn everything_that_was_recorded_is_there() {
    let (profile, _) = live::read(&fixture("everything")).unwrap();
    profile.validate().unwrap();
    assert_eq!(profile.threads.len(), 3);
    assert_eq!(calls(&profile, "often"), (4000, 0));
    assert_eq!(calls(&profile, "recursive"), (21, 20));
    assert_eq!(calls(&profile, "solve/2"), (200, 0));
    let benchmark = profile.metadata.benchmark.as_ref().unwrap();
    assert_eq!(benchmark.description, "with\nlines");
    assert_eq!(benchmark.results, [("sum".to_owned(), "12\\3".to_owned())]);
    let points = profile.points.iter().map(|point| &profile.strings[point.description]);
    assert_eq!(points.filter(|description| *description == "worker").count(), 2);
    let sizes = &profile.activations.as_ref().unwrap().sizes;
    assert_eq!(sizes.iter().map(|row| row.calls).sum::<u64>(), 200);
}

#[test]
fn a_file_that_is_no_live_file_is_refused() {
    let mut bytes = fixture("stack_machine");
    let refused = |bytes: &[u8]| live::read(bytes).unwrap_err().to_string();
    assert_eq!(refused(b"PERFILE2"), "not the file of an instrumented program");
    assert_eq!(refused(&bytes[..100]), "the header is cut short: it needs 4096 bytes, 100 are left");
    bytes[8] = 9;
    assert_eq!(refused(&bytes), "layout 9 is not known; layouts 2 and 4 are read");
    assert!(matches!(read_any(&bytes), Err(Error::Read { format: Format::Live, .. })));
}

#[test]
fn every_prefix_is_read_or_refused() {
    for name in FIXTURES {
        let file = fixture(name);
        // Records begin at multiples of 64 bytes.
        let near_unit = |length: &usize| *length < 600 || matches!(length % 64, 0 | 33);
        for length in (0..=file.len()).filter(near_unit) {
            try_both(&file[..length]);
        }
    }
}

#[test]
fn every_byte_may_be_another() {
    for (at_first, name) in FIXTURES[..2].iter().enumerate() {
        let mut file = fixture(name);
        // In steps, so that the test stays short; most of a file are zeros.
        let is_tried = |(at, byte): &(usize, &u8)| at % if **byte == 0 { 61 } else { 5 } == at_first;
        let tried: Vec<usize> = file.iter().enumerate().filter(is_tried).map(|(at, _)| at).collect();
        for (turn, at) in tried.into_iter().enumerate() {
            let before = file[at];
            file[at] = [before ^ 1 << (turn % 8), !before, 0][turn % 3];
            try_both(&file);
            file[at] = before;
        }
    }
}

/// A change to the words of a file.
#[derive(Clone, Debug)]
enum Change {
    /// Four bytes become a number.
    Narrow { at: usize, value: u32 },
    /// Eight bytes become a number.
    Wide { at: usize, value: u64 },
    /// Units are copied to another place, as if a reference led there.
    Copy { from: usize, to: usize, units: usize },
    /// The rest is missing.
    Cut { at: usize },
}

impl Change {
    fn any(places: RangeInclusive<usize>) -> impl Strategy<Value = Self> {
        let place = places.prop_map(|at| at / 4 * 4);
        let narrow = prop_oneof![any::<u32>(), 0..1000_u32, Just(u32::MAX)];
        let wide =
            prop_oneof![any::<u64>(), 0..100_000_u64, (0..64_u32).prop_map(|bit| 1 << bit), Just(u64::MAX)];
        prop_oneof![
            4 => (place.clone(), narrow).prop_map(|(at, value)| Self::Narrow { at, value }),
            4 => (place.clone(), wide).prop_map(|(at, value)| Self::Wide { at, value }),
            2 => (place.clone(), place.clone(), 1..8_usize)
                .prop_map(|(from, to, units)| Self::Copy { from, to, units }),
            1 => place.prop_map(|at| Self::Cut { at }),
        ]
    }

    /// Places are taken modulo the length.
    fn make(&self, file: &mut Vec<u8>) {
        const UNIT: usize = 64;
        let length = file.len().max(HEADER_BYTES);
        file.resize(length, 0);
        match *self {
            Self::Narrow { at, value } => put(file, at % (length - 8), &value.to_le_bytes()),
            Self::Wide { at, value } => put(file, at % (length - 8), &value.to_le_bytes()),
            Self::Copy { from, to, units } => {
                let unit = |at: usize| at % (length - units * UNIT) / UNIT * UNIT;
                file.copy_within(unit(from)..unit(from) + units * UNIT, unit(to));
            }
            Self::Cut { at } => file.truncate(at % length),
        }
    }
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let anywhere = proptest::collection::vec(Change::any(0..=60_000), 1..12);
    // Numbers of the header that everything depends on.
    let header = proptest::collection::vec(Change::any(12..=300), 0..3);
    (anywhere, header).prop_map(|(mut changes, more)| {
        changes.extend(more);
        changes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn changed_files_are_read_or_refused(changes in changes(), first in any::<bool>()) {
        let mut file = fixture(FIXTURES[usize::from(first)]);
        changes.iter().for_each(|change| change.make(&mut file));
        try_both(&file);
    }
}

/// Where the name of the first function in the list stands in its record.
fn first_function(file: &[u8]) -> usize {
    u32::from_le_bytes(file[140..144].try_into().unwrap()) as usize * 64
}

#[test]
fn texts_that_share_their_bytes_do_not_fill_the_memory() {
    let mut file = fixture("stack_machine");
    // As many functions as fit, each with the whole file as its name.
    let start = first_function(&file);
    let record = file[start..start + 128].to_vec();
    let first = file.len() as u32 / 64;
    for number in 0..40_000 {
        let mut record = record.clone();
        put(&mut record, 0, &(first + 2 * (number + 1)).to_le_bytes());
        put(&mut record, 4, &(1000 + number).to_le_bytes());
        put(&mut record, 16, &[0_u64.to_le_bytes(), 5_000_000_u64.to_le_bytes()].concat());
        file.extend(record);
    }
    put(&mut file, 140, &first.to_le_bytes());
    assert!(file.len() > 5_000_000);
    let (profile, _) = live::read(&file).unwrap();
    profile.validate().unwrap();
    let stored: usize = profile.strings.iter().map(|(_, text)| text.len()).sum();
    assert!(stored < 4 * file.len(), "{stored} bytes");
}
