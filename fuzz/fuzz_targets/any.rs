//! Recognises any bytes and reads them; an error must have words.
#![no_main]

use libfuzzer_sys::fuzz_target;
use treering_formats::{folded, read_any};

fuzz_target!(|bytes: &[u8]| match read_any(bytes) {
    Ok((_, profile, report)) => {
        let _ = report.warnings();
        for (metric, _) in profile.metrics() {
            let _ = folded::write(&profile, metric, std::io::sink());
        }
    }
    Err(error) => assert!(!error.to_string().is_empty()),
});
