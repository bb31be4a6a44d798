//! Reads any bytes as a file of Austin; what is a profile must be valid and be written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use treering_formats::{austin, trg};

fuzz_target!(|bytes: &[u8]| {
    let Ok((profile, _)) = austin::read(bytes) else { return };
    assert_eq!(profile.validate(), Ok(()));
    trg::write(&profile, std::io::sink()).expect("a sink takes everything");
});
