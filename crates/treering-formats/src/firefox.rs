//! The processed profiles of the Firefox Profiler, which samply writes too.
//!
//! JSON with tables of columns: stacks, frames, functions, libraries, and the samples of each thread. The
//! format changes often (`docs-developer/CHANGELOG-formats.md` of the profiler tells how); all versions
//! whose tables are columns are read, and an old one is written, which the profiler upgrades.
//!
//! ```
//! use treering_formats::{firefox, folded};
//!
//! let (profile, _) = folded::read(b"main;parse 3\nmain;solve 7\n")?;
//! let mut file = Vec::new();
//! let _ = firefox::write(&profile, profile.find_metric("samples").unwrap(), &mut file)?;
//! let (read, _) = firefox::read(&file)?;
//! assert_eq!(read.run_cost(read.find_metric("samples").unwrap()), 10);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod location;
mod raw;
mod read;
mod table;
mod write;

use crate::Foreign;
use crate::format::{Description, Writing};
use crate::json::says_exporter;

pub use read::read;
pub(crate) use read::read_within;
pub use write::write;

/// Its row in the table of formats.
pub(crate) const DESCRIPTION: Description = Description {
    extension: Some("firefox.json"),
    import: Some("The Firefox Profiler's processed profiles"),
    export: Some("For <https://profiler.firefox.com>"),
    sorts: &[Foreign::Firefox],
    says_ours: says_exporter,
    writing: Writing::OneMetric {
        write: |profile, metric, output| write(profile, metric, output),
        size: |_, _| 0,
    },
    ..Description::unzipped("firefox", "Firefox's processed profiles", read_within)
};
