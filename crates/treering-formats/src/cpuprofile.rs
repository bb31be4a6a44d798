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

mod error;
pub(crate) mod node;
mod read;
mod write;

pub use error::ReadError;
pub use read::read;
pub(crate) use read::{idle_note, read_within, samples_in_order};
pub use write::write;
