//! Counts of events in one or several runs of a program, as a table, as CSV and as JSON.
//!
//! A [`Stat`] holds what was counted in each run. Its [`rows`](Stat::rows) have the mean of the runs, how far that may be
//! from the truth, and the rate that tells more than the number: a part of all branches, or a count for a second of
//! processor time. An event that was not counted has no number, and never 0.
//!
//! [`Mixes`] are the kinds of instructions that a program executed, the bytes that it loaded and stored, and the sizes of
//! its blocks, from the exact counts of a profile: of the run and of each function.
//!
//! It counts nothing, reads no files and prints nothing.
//!
//! ```
//! use treering_stat::{Count, Event, Run, Source, Stat, Unit};
//!
//! let event = |name: &str, unit| Event { name: name.to_owned(), unit };
//! let count = |value| Count::Counted { value, running: 1.0, source: Source::Kernel };
//! let stat = Stat {
//!     title: "./solve".to_owned(),
//!     events: vec![event("task-clock", Unit::Nanoseconds), event("page-faults", Unit::Count)],
//!     runs: vec![Run { counts: vec![count(2e9), count(500.0)], elapsed_ns: 1e9, ..Run::default() }],
//!     ..Stat::default()
//! };
//! let rows = stat.rows();
//! assert_eq!(rows[0].rate.as_ref().unwrap().to_string(), "2.00 processors");
//! assert_eq!(rows[1].rate.as_ref().unwrap().to_string(), "250 /s");
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod csv;
mod expression;
mod json;
mod metric;
mod mix;
mod mix_text;
mod rate;
mod row;
mod run;
mod text;

pub use csv::{csv, csv_heading, csv_interval};
pub use expression::{Expression, NoExpression};
pub use json::{interval_json, json};
pub use metric::{Metric, Processor};
pub use mix::{Mix, Mixes, SIZES};
pub use mix_text::Exact;
pub use rate::Rate;
pub use row::{Row, State};
pub use run::{Absence, Count, Event, MetricName, Part, Resources, Run, Source, Stat, Unit};
pub use text::{interval_heading, interval_text, text};

/// Whether a file that begins and ends like this was written from a [`Stat`]. The keys of JSON are sorted, so that its view
/// may be far from the start.
pub fn is_stat(start: &[u8], end: &[u8]) -> bool {
    let (start, end) = (String::from_utf8_lossy(start), String::from_utf8_lossy(end));
    let names_view = |part: &str| part.contains("\"view\"") && part.contains("\"stat");
    let is_json = || start.starts_with('{') && (names_view(&start) || names_view(&end));
    start.starts_with(text::HEAD)
        || start.starts_with(&csv_heading(true))
        || start.starts_with(&csv_heading(false))
        || start.starts_with(mix_text::CSV_HEADING)
        || is_json()
}
