//! Profiles of OpenTelemetry (OTLP, `v1development`), as protobuf or JSON.
//!
//! The eBPF profiler, async-profiler and collectors write them. All schemas with a dictionary are read: those of v1.7,
//! of v1.8, and of v1.9 and later, which is written. The messages are those of
//! `opentelemetry/proto/profiles/v1development/profiles.proto`, written out by hand.
//!
//! The messages mean the same as those of pprof, from which they were made, so they are read and written by way of it.

mod convert;
mod json;
mod message;
mod read;
mod version_1_7;
mod version_1_8;
mod write;

use crate::Foreign;
use crate::format::{Description, Writing};

pub(crate) use read::read_within;
pub use read::{read, read_labelled};
pub use write::write;

/// Its row in the table of formats.
pub(crate) const DESCRIPTION: Description = Description {
    extension: Some("otlp"),
    import: Some("Profiles of OpenTelemetry, protobuf or JSON"),
    export: Some("For collectors and backends of OpenTelemetry"),
    sorts: &[Foreign::Otlp, Foreign::OtlpJson],
    begins: |start| is_profiles(start),
    says_ours: |start| start.windows(SCOPE.len()).take(256).any(|window| window == SCOPE.as_bytes()),
    writing: Writing::Whole {
        write: |profile, output| write(profile, output),
        size: |profile| crate::pprof::size(profile),
    },
    ..Description::as_it_is("otlp", "profiles of OpenTelemetry", read_within)
};

/// The name of the scope of our own files.
pub(crate) const SCOPE: &str = "treering";

/// Whether it has the two fields of the message and no others: pprof has strings besides, and other signals have no
/// dictionary.
fn is_profiles(mut bytes: &[u8]) -> bool {
    const LENGTH: usize = 2;
    let mut found = [false; 2];
    while !bytes.is_empty() {
        let Ok((tag @ (1 | 2), wire)) = prost::encoding::decode_key(&mut bytes) else { return false };
        let length = prost::encoding::decode_varint(&mut bytes).ok().filter(|_| wire as usize == LENGTH);
        let rest = length.and_then(|length| bytes.get(usize::try_from(length).ok()?..));
        let Some(rest) = rest else { return false };
        bytes = rest;
        found[tag as usize - 1] = true;
    }
    found == [true; 2]
}

/// Attributes that say of which process and thread a sample is, with the labels of pprof that say the same.
const OWNERS: [(&str, &str); 4] = [
    ("process.pid", "pid"),
    ("process.executable.name", "process"),
    ("thread.id", "tid"),
    ("thread.name", "thread"),
];

/// The attribute by which Treering marks a profile without stacks: its total costs are not known.
const FLAT: &str = "treering.flat";

/// The attribute of a mapping that has its build-id, as GNU's linker makes them.
const BUILD_ID: &str = "process.executable.build_id.gnu";
