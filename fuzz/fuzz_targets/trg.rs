//! Reads any bytes as `.trg`. Checksums would stop nearly every mutation, so they are set right
//! first. What is a profile must be valid, and be the same when written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use treering_formats::trg;

const HEADER: usize = 16;

fuzz_target!(|bytes: &[u8]| {
    let mut file = bytes.to_vec();
    set_checksums(&mut file);
    if let Ok(frames) = trg::dump(&file) {
        frames.for_each(drop);
    }
    let Ok((profile, _)) = trg::read(&file) else { return };
    assert_eq!(profile.validate(), Ok(()));
    let mut written = Vec::new();
    trg::write(&profile, &mut written).expect("a vector takes everything");
    let (again, report) = trg::read(&written).expect("what was written can be read");
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(again.tree.parent_column(), profile.tree.parent_column());
});

fn set_checksums(file: &mut [u8]) {
    let mut at = HEADER;
    while let Some(header) = file.get(at..at + HEADER) {
        let length = u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize;
        let Some(end) = (at + HEADER).checked_add(length).filter(|&end| end <= file.len()) else { return };
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&file[at..at + 12]), &file[at + HEADER..end]);
        file[at + 12..at + HEADER].copy_from_slice(&checksum.to_le_bytes());
        at = end;
    }
}
