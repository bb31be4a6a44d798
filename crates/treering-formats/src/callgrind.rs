//! The files of Valgrind's Callgrind, which KCachegrind and `callgrind_annotate` show.
//!
//! Layout after the chapter "Callgrind Format Specification" of the Valgrind manual, details
//! after what KCachegrind and `callgrind_annotate` make of it. The format has arcs and no tree:
//!
//! - [`read`] gives a profile of arcs;
//! - [`write()`] measures the arcs of a tree, each with the cost of its outermost calls, so that
//!   no arc exceeds the run, however deep the recursion.

mod arc;
mod event;
mod line;
mod name;
mod read;
mod write;

use crate::detect::looked_at;
use crate::format::{Description, Writing};

pub use read::read;
pub(crate) use read::read_within;
pub use write::{write, write_estimated};

/// Its row in the table of formats.
pub(crate) const DESCRIPTION: Description = Description {
    import: Some("Profiles of Valgrind's Callgrind"),
    export: Some("For KCachegrind and callgrind_annotate"),
    states_arcs: true,
    says_ours: |start| {
        String::from_utf8_lossy(looked_at(start)).lines().any(|line| line.starts_with("creator: treering"))
    },
    writing: Writing::Whole { write: |profile, output| write(profile, output), size: |_| 0 },
    ..Description::unzipped("callgrind", "callgrind", read_within)
};
