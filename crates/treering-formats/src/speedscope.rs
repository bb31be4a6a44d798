//! The files of [Speedscope](https://www.speedscope.app): JSON with stacks or call events.
//!
//! Their schema is `file-format-schema.json` in the npm package `speedscope`. There are
//! names, files and lines of functions, and any number of profiles with a value each.
//!
//! ```
//! use treering_formats::{folded, speedscope};
//!
//! let (profile, _) = folded::read(b"main;parse 3\nmain;solve 7\n")?;
//! let mut file = Vec::new();
//! let dropped = speedscope::write(&profile, &mut file)?;
//! assert!(dropped.notes.is_empty());
//! let (read, _) = speedscope::read(&file)?;
//! assert_eq!(read.run_cost(read.find_metric("samples").unwrap()), 10);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod file;
mod read;
mod write;

use crate::Foreign;
use crate::format::{Description, Writing};
use crate::json::says_exporter;

pub use read::read;
use read::read_within;
pub(crate) use write::EXPORTER;
pub use write::{size, write};

/// Its row in the table of formats.
pub(crate) const DESCRIPTION: Description = Description {
    extension: Some("speedscope.json"),
    import: Some("Speedscope's JSON"),
    export: Some("For <https://www.speedscope.app>"),
    sorts: &[Foreign::Speedscope],
    says_ours: says_exporter,
    writing: Writing::Whole { write: |profile, output| write(profile, output), size },
    ..Description::unzipped("speedscope", "Speedscope's JSON", read_within)
};
