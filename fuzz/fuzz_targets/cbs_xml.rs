//! Reads any bytes as XML of benchmarks; what is a profile must be valid and be written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use treering_formats::{cbs_xml, trg};

fuzz_target!(|bytes: &[u8]| {
    let Ok((profile, _)) = cbs_xml::read(bytes) else { return };
    assert_eq!(profile.validate(), Ok(()));
    trg::write(&profile, std::io::sink()).expect("a sink takes everything");
});
