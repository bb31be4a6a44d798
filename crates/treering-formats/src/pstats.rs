//! Profiles of Python's `cProfile` and `profile`, as `pstats` dumps them.
//!
//! A dictionary in Python's marshal format: for each function how often it was called, its own time, its
//! total time, and the same for each of its callers. So there are arcs between functions and no stacks.
//! The format changes with Python's versions and is read as all of 2.7 and 3 write it.

mod marshal;
mod read;

use crate::Foreign;
use crate::format::Description;

pub use read::read;
use read::read_within;

/// Its row in the table of formats.
pub(crate) const DESCRIPTION: Description = Description {
    import: Some("Files of Python's cProfile"),
    states_arcs: true,
    sorts: &[Foreign::Pstats],
    ..Description::unzipped("pstats", "cProfile's pstats", read_within)
};
