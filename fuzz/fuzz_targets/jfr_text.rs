//! Reads any bytes as what `jfr print` prints of recordings of Java; what is a profile must be valid and be written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use treering_formats::{jfr_text, trg};

fuzz_target!(|bytes: &[u8]| {
    let Ok((profile, _)) = jfr_text::read(bytes) else { return };
    assert_eq!(profile.validate(), Ok(()));
    trg::write(&profile, std::io::sink()).expect("a sink takes everything");
});
