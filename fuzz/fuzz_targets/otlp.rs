//! Reads any bytes as profiles of OpenTelemetry; what is a profile must be valid and be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use treering_formats::otlp;

fuzz_target!(|bytes: &[u8]| {
    let Ok((profile, _)) = otlp::read(bytes) else { return };
    assert_eq!(profile.validate(), Ok(()));
    let mut file = Vec::new();
    let _ = otlp::write(&profile, &mut file).expect("memory takes everything");
});
