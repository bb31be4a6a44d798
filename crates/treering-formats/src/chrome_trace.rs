//! Traces as Chrome and Perfetto show them: JSON of trace events.
//!
//! The format is that of the document "Trace Event Format". Read are calls with their times (`B`, `E` and
//! `X` events), the samples of V8 that Chrome's developer tools put into traces, and samples with stack
//! frames as React Native's Hermes writes them; beside calls, instants (`i`, `I`, `R`) as marks. Written are `B` and `E`
//! events, in a track for each thread, and `i` events.
//!
//! ```
//! use treering_formats::chrome_trace;
//!
//! let text = br#"[{"ph":"X","name":"load","ts":10,"dur":8,"pid":1,"tid":1},
//!     {"ph":"B","name":"parse","ts":12,"pid":1,"tid":1},{"ph":"E","ts":15,"pid":1,"tid":1}]"#;
//! let (profile, _) = chrome_trace::read(text)?;
//! assert_eq!(profile.run_cost(profile.find_metric("time").unwrap()), 8_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod event;
mod read;
mod span;
mod write;

use crate::Foreign;
use crate::format::{Description, Writing};
use crate::json::says_exporter;

pub use read::read;
use read::read_within;
pub use write::{size, write};

/// The category of marks that stand where a process began to run a program.
const EXEC: &str = "exec";

/// Its row in the table of formats.
pub(crate) const DESCRIPTION: Description = Description {
    extension: Some("trace.json"),
    import: Some("Trace events of Chrome"),
    export: Some("Times as calls in a track for each thread, for <https://ui.perfetto.dev>"),
    sorts: &[Foreign::ChromeTrace],
    says_ours: says_exporter,
    writing: Writing::OneMetric { write: |profile, metric, output| write(profile, metric, output), size },
    ..Description::unzipped("chrome-trace", "trace events of Chrome", read_within)
};
