//! Reads any text as the list of kernel symbols, and looks addresses up in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use treering_symbols::KernelSymbols;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let symbols = KernelSymbols::parse(&text);
    for address in [0, 0xffff_ffff_8100_0000, u64::MAX] {
        let _ = symbols.lookup(address);
    }
});
