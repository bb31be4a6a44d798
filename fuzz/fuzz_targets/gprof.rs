//! Reads any bytes as the output of gprof; what is a profile must be valid and be written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use treering_formats::{gprof, trg};

fuzz_target!(|bytes: &[u8]| {
    let Ok((profile, _)) = gprof::read(bytes) else { return };
    assert_eq!(profile.validate(), Ok(()));
    trg::write(&profile, std::io::sink()).expect("a sink takes everything");
});
