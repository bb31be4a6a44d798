//! Profiles without stacks, written in formats of stacks and read again.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::fixture;
use treering_formats::{chrome_trace, cpuprofile, firefox, folded, otlp, read_any};
use treering_profile::{MetricId, Note, RecursionRule, Unit};

/// A file that a writer makes of a profile.
fn file_of(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<treering_formats::Dropped>) -> Vec<u8> {
    let mut file = Vec::new();
    let _ = write(&mut file).unwrap();
    file
}

#[test]
fn files_of_profiles_without_stacks_have_no_totals() {
    // Self costs stood for totals: those of the caller of everything were said to be its own.
    let profile = read_any(&fixture("callgrind/plain.callgrind")).unwrap().1;
    let time = MetricId::new(0);
    let mut traced = profile.clone();
    traced.metrics[0].unit = Unit::Nanoseconds;
    for file in [
        file_of(|file| otlp::write(&profile, file)),
        file_of(|file| cpuprofile::write(&profile, time, file)),
        file_of(|file| cpuprofile::write(&traced, time, file)),
        file_of(|file| firefox::write(&profile, time, file)),
        file_of(|file| chrome_trace::write(&traced, time, file)),
    ] {
        let (format, read, _) = read_any(&file).unwrap();
        assert_eq!(read.recursion, RecursionRule::Flat, "{format:?}");
    }
    let (_, read, _) = read_any(&file_of(|file| folded::write(&profile, time, file))).unwrap();
    let note = "no stack has a caller, so total costs are those of single functions";
    assert!(read.metadata.notes.iter().any(|Note(text)| text == note), "{:?}", read.metadata.notes);
    // Files with stacks say nothing of the kind.
    let profile = read_any(b"main;parse 3\nmain 7\n").unwrap().1;
    assert_eq!(profile.metadata.notes, []);
    let again = read_any(&file_of(|file| otlp::write(&profile, file))).unwrap().1;
    assert_eq!(again.recursion, RecursionRule::Full);
}
