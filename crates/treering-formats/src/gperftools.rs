//! Profiles of gperftools, as it and others wrote them before pprof's protobuf: samples of processor time
//! (binary, 32 and 64 bits, both byte orders) and heap profiles (text).
//!
//! Both hold addresses, and at their end what was mapped where, as `/proc/self/maps` lists it. [`read_with`]
//! asks for the binaries. Metrics are named, and stacks are cleaned, as `go tool pprof` does.
//!
//! ```
//! use treering_formats::gperftools;
//!
//! let text = b"heap profile: 2: 96 [3: 128] @ heapprofile\n  2: 96 [3: 128] @ 0x401010 0x401020\n\nMAPPED_LIBRARIES:\n";
//! let (profile, _) = gperftools::read(text)?;
//! assert_eq!(profile.run_cost(profile.find_metric("inuse_space").unwrap()), 96);
//! assert_eq!(profile.run_cost(profile.find_metric("alloc_objects").unwrap()), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cpu;
mod heap;
mod maps;
mod read;

use crate::Foreign;
use crate::binary::NoBinaries;
use crate::format::Description;

pub use read::{read, read_with};

/// Its row in the table of formats.
pub(crate) const DESCRIPTION: Description = Description {
    import: Some("Processor time and heap profiles of gperftools, as before protobuf"),
    sorts: &[Foreign::LegacyHeap],
    begins: |start| cpu::Layout::of(start).is_some(),
    ..Description::as_it_is("gperftools", "gperftools' profiles", |bytes, budget| {
        read::read_within(bytes, budget, &mut NoBinaries)
    })
};
