//! `perf.data`: what `perf record` writes.
//!
//! A header, the events, and records: what was mapped where, names of threads, and samples with their
//! stacks. Files and the output of `perf record -o -` are read, in both byte orders, compressed or not.
//! The layout is that of `tools/perf/Documentation/perf.data-file-format.txt` and `perf_event_open(2)`.
//!
//! Addresses need the binaries that they are in: [`read_with`] asks for their segments. It gives addresses as
//! binaries state them, which a symboliser can name.
//!
//! There is a crate that reads these files, `linux-perf-data`, and one for their records. Of version 0.13
//! and 0.10, both reserve memory for any number that a file states, the latter panics at a build-id of more
//! than 20 bytes, and takes the values of groups of events for those of single ones and the other way round.
//! So the records are decoded here.

mod event;
mod file;
mod read;
mod record;

use crate::Foreign;
use crate::format::Description;

pub use read::{needs_unwinding, read, read_with};

/// Its row in the table of formats.
pub(crate) const DESCRIPTION: Description = Description {
    import: Some("Files of perf record"),
    sorts: &[Foreign::PerfData],
    ..Description::as_it_is("perf-data", "perf.data", read::read_within)
};
