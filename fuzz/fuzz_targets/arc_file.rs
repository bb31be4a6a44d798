//! Reads any bytes as a file of calls that a program compiled with `-pg` counted. Arcs that were read must
//! be findable.
#![no_main]

use libfuzzer_sys::fuzz_target;
use treering_formats::arc_file;

fuzz_target!(|bytes: &[u8]| {
    arc_file::used_bytes(bytes);
    let Ok(file) = arc_file::read(bytes) else { return };
    for table in &file.tables {
        for arc in &table.arcs {
            file.object_at(arc.callee, table.process, table.generation);
        }
    }
});
