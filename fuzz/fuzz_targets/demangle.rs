//! Demangles any text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use treering_symbols::demangle;

fuzz_target!(|bytes: &[u8]| {
    let _ = demangle(&String::from_utf8_lossy(bytes));
});
