//! Reads any bytes as the live file of a program that ended and of one that runs; what is a profile
//! must be valid and be written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use treering_formats::{live, trg};

fuzz_target!(|bytes: &[u8]| {
    for now in [None, Some(1 << 50)] {
        let Ok((profile, _)) = live::read_at(bytes, now) else { return };
        assert_eq!(profile.validate(), Ok(()));
        trg::write(&profile, std::io::sink()).expect("a sink takes everything");
    }
});
