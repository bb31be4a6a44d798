//! Reads any bytes as JSON of Ruby's stackprof; what is a profile must be valid and be written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use treering_formats::{stackprof, trg};

fuzz_target!(|bytes: &[u8]| {
    let Ok((profile, _)) = stackprof::read(bytes) else { return };
    assert_eq!(profile.validate(), Ok(()));
    trg::write(&profile, std::io::sink()).expect("a sink takes everything");
});
