//! Reads any bytes as a jitdump file, and looks addresses up in what was understood.
#![no_main]

use libfuzzer_sys::fuzz_target;
use treering_symbols::{JitTable, jitdump};

fuzz_target!(|bytes: &[u8]| {
    let Ok(dump) = jitdump::parse(bytes) else { return };
    let table = JitTable::from_jitdump(dump);
    for address in [0, 0x1000, u64::MAX] {
        let _ = table.lookup(address, Some(0));
    }
});
