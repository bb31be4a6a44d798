//! Reads any bytes as a map of generated code; every name can be looked up where it starts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use treering_symbols::{JitTable, perf_map};

fuzz_target!(|bytes: &[u8]| {
    let symbols = perf_map::parse(&String::from_utf8_lossy(bytes));
    let starts: Vec<u64> = symbols.iter().map(|symbol| symbol.start).collect();
    let table = JitTable::from_perf_map(symbols);
    for start in starts {
        let _ = table.lookup(start, None);
    }
});
