//! A live file that was damaged is told from one that was not: whatever bit is wrong and wherever it is
//! cut off, it is read as before, or is said to be damaged, or is refused.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use treering_formats::{live, trg};

fn fixture(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/live");
    std::fs::read(format!("{folder}/{name}.live")).unwrap()
}

const FIXTURES: [&str; 2] = ["stack_machine_4", "everything_4"];

/// The result of reading: the profile as it is stored, and whether it is said to be damaged. Nothing where it is
/// refused.
fn read(file: &[u8]) -> Option<(Vec<u8>, bool)> {
    let running = live::read_running(file, None).ok()?;
    let is_damaged = running.state == live::FileState::Damaged;
    assert_eq!(is_damaged, !running.report.notes.is_empty());
    let mut stored = Vec::new();
    trg::write(&running.profile, &mut stored).unwrap();
    Some((stored, is_damaged))
}

/// Whether a changed file is read as before, said to be damaged or refused.
fn is_told(changed: &[u8], before: &[u8]) -> bool {
    read(changed).is_none_or(|(stored, is_damaged)| is_damaged || stored == before)
}

fn before(file: &[u8]) -> Vec<u8> {
    let (before, is_damaged) = read(file).unwrap();
    assert!(!is_damaged);
    before
}

#[test]
fn a_wrong_bit_is_told() {
    for name in FIXTURES {
        let mut file = fixture(name);
        let before = before(&file);
        // Every bit at `TREERING_TEST_ALL=1`, else some thousand of them, all kinds of places among them.
        let step = if std::env::var_os("TREERING_TEST_ALL").is_some() { 1 } else { 131 };
        let silent: Vec<usize> = (0..file.len() * 8)
            .step_by(step)
            .filter(|bit| {
                file[bit / 8] ^= 1 << (bit % 8);
                let is_told = is_told(&file, &before);
                file[bit / 8] ^= 1 << (bit % 8);
                !is_told
            })
            .collect();
        assert!(silent.is_empty(), "{name}: bits {silent:?}");
    }
}

#[test]
fn a_file_that_is_cut_off_is_told() {
    for name in FIXTURES {
        let file = fixture(name);
        let before = before(&file);
        let lengths = (0..file.len()).step_by(37).chain([file.len() - 1, file.len() - 64]);
        let silent: Vec<usize> = lengths.filter(|&length| !is_told(&file[..length], &before)).collect();
        assert!(silent.is_empty(), "{name}: lengths {silent:?}");
        // Bytes behind the end belong to no record.
        let mut longer = file.clone();
        longer.resize(1 << 18, 0);
        assert_eq!(read(&longer), Some((before, false)));
    }
}

#[test]
fn blocks_of_zeros_are_told() {
    for name in FIXTURES {
        let file = fixture(name);
        let before = before(&file);
        for start in (0..file.len()).step_by(512) {
            let mut changed = file.clone();
            let end = (start + 512).min(file.len());
            changed[start..end].fill(0);
            assert!(is_told(&changed, &before), "{name}: zeros at {start}");
        }
    }
}

#[test]
fn where_a_file_is_damaged_is_said() {
    let mut file = fixture("stack_machine_4");
    let threads = u32::from_le_bytes(file[264..268].try_into().unwrap()) as usize * 64;
    let root = u32::from_le_bytes(file[threads + 68..threads + 72].try_into().unwrap()) as usize * 64;
    file[root + 8] ^= 1;
    let running = live::read_running(&file, None).unwrap();
    let expected = format!(
        "the file is damaged: a number of a node is damaged (byte 0x{root:x}); calls may be missing and numbers may be wrong"
    );
    assert_eq!(running.report.notes, [expected]);
}

/// Files of the layout before cannot be checked, and are read.
#[test]
fn files_of_the_layout_before_are_read_unchecked() {
    for name in ["stack_machine", "everything"] {
        let running = live::read_running(&fixture(name), None).unwrap();
        assert_eq!(running.state, live::FileState::Unchecked);
    }
}
