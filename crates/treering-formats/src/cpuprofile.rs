//! V8's `.cpuprofile`: what `node --cpu-prof` and Chrome's developer tools write.
//!
//! A tree of nodes, and the node that ran at every sample, with the time between samples in
//! microseconds, after `Profiler.Profile` of the Chrome DevTools Protocol.
//!
//! ```
//! use treering_formats::cpuprofile;
//!
//! let text = br#"{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"},"children":[2]},
//!     {"id":2,"callFrame":{"functionName":"f","url":"file:///a.js","lineNumber":4}}],
//!     "startTime":1000,"endTime":1250,"samples":[2,2],"timeDeltas":[50,125]}"#;
//! let (profile, _) = cpuprofile::read(text)?;
//! // From the first sample, at 1050, to the end.
//! assert_eq!(profile.run_cost(profile.find_metric("time").unwrap()), 200_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod node;
mod old;
mod read;
mod write;

use crate::Foreign;
use crate::format::{Description, Writing};
use crate::json::says_exporter;

pub use read::read;
use read::read_within;
pub(crate) use read::{check_lengths, note_nodes, samples_in_order};
pub use write::write;

/// Its row in the table of formats.
pub(crate) const DESCRIPTION: Description = Description {
    import: Some("V8's profile of processor time"),
    export: Some("For Chrome's developer tools and Visual Studio Code"),
    sorts: &[Foreign::CpuProfile],
    says_ours: says_exporter,
    writing: Writing::OneMetric {
        write: |profile, metric, output| write(profile, metric, output),
        size: |_, _| 0,
    },
    ..Description::unzipped("cpuprofile", "V8's .cpuprofile", read_within)
};
