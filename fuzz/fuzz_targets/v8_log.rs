//! Reads any bytes as a log of V8; what is a profile must be valid and be written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use treering_formats::{trg, v8_log};

fuzz_target!(|bytes: &[u8]| {
    let Ok((profile, _)) = v8_log::read(bytes) else { return };
    assert_eq!(profile.validate(), Ok(()));
    trg::write(&profile, std::io::sink()).expect("a sink takes everything");
});
