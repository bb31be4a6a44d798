//! Profile file formats, read and written: Treering's own [`trg`], and those of other tools, of which some
//! are only read. [`Format`] lists them.
//!
//! [`read_any`] recognises a file by its content. A format is one line in `format.rs` and a description in its
//! module, from which its names, its errors, and what the command line offers follow.
//!
//! Each format has a `read`, which gives a profile
//! and a [`ReadReport`] of what could not be used, and a `write`, which gives what it
//! [`Dropped`] because the format has no place for it.
//!
//! Readers take bytes and never a path, never panic, and say at which byte, line or entry they
//! failed. This crate neither resolves symbols nor computes totals for show, and prints nothing.
//!
//! The features `pprof` and `folded` give one format alone, without the dependencies of the others and without
//! [`read_any`]; the default is `all`.
//!
//! ```
//! use treering_formats::{Format, callgrind, read_any};
//!
//! let (format, profile, report) = read_any(b"main;parse 3\nmain;solve 7\n")?;
//! assert_eq!(format, Format::Folded);
//! assert!(report.is_complete());
//!
//! let mut file = Vec::new();
//! let dropped = callgrind::write(&profile, &mut file)?;
//! assert!(String::from_utf8(file)?.contains("fn=(1) main"));
//! assert_eq!(dropped.notes[0], "the tree: only arcs between functions are kept");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "all"),
    allow(dead_code, unused_imports, reason = "some formats alone use the shared parts")
)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

#[cfg(feature = "all")]
pub mod arc_file;
#[cfg(feature = "all")]
pub mod austin;
mod binary;
mod budget;
#[cfg(feature = "all")]
pub mod callgrind;
#[cfg(feature = "all")]
pub mod cbs_xml;
#[cfg(feature = "all")]
pub mod chrome_trace;
mod costs_only;
#[cfg(feature = "all")]
pub mod cpuprofile;
#[cfg(feature = "all")]
mod detect;
mod dropped;
#[cfg(feature = "all")]
mod error;
#[cfg(feature = "all")]
pub mod firefox;
#[cfg(feature = "folded")]
pub mod folded;
#[cfg(feature = "all")]
mod foreign;
#[cfg(feature = "all")]
mod format;
#[cfg(feature = "all")]
pub mod gmon;
#[cfg(feature = "all")]
pub mod gperftools;
#[cfg(feature = "all")]
pub mod gprof;
mod gzip;
mod import;
#[cfg(feature = "all")]
pub mod jfr_text;
#[cfg(feature = "all")]
mod json;
#[cfg(feature = "all")]
mod json_tree;
mod label;
#[cfg(feature = "all")]
pub mod live;
mod negative;
#[cfg(feature = "all")]
pub mod octave;
#[cfg(feature = "all")]
mod open_calls;
#[cfg(feature = "all")]
pub mod otlp;
#[cfg(feature = "all")]
mod our_run;
#[cfg(feature = "all")]
pub mod perf_data;
#[cfg(feature = "all")]
pub mod perf_script;
#[cfg(feature = "pprof")]
pub mod pprof;
#[cfg(feature = "all")]
pub mod prolog;
#[cfg(feature = "all")]
pub mod pstats;
#[cfg(feature = "all")]
pub mod pyinstrument;
mod read_error;
mod report;
#[cfg(feature = "all")]
mod sampled_event;
#[cfg(feature = "all")]
pub mod speedscope;
#[cfg(feature = "all")]
pub mod stackprof;
#[cfg(feature = "all")]
pub mod swi_profile;
#[cfg(feature = "all")]
mod text_line;
#[cfg(feature = "all")]
mod timed_costs;
#[cfg(feature = "all")]
pub mod trg;
mod unit;
#[cfg(feature = "all")]
pub mod v8_log;

pub use binary::{Binaries, Kernel, NoBinaries};
#[cfg(feature = "all")]
pub use detect::{detect, detect_foreign, is_ours};
pub use dropped::Dropped;
#[cfg(feature = "all")]
pub use error::Error;
#[cfg(feature = "all")]
pub use foreign::{Foreign, Named};
#[cfg(feature = "all")]
pub use format::{Format, WriteMetric, WriteWhole, Writing, read_any, read_as};
pub use gzip::GzipError;
pub use read_error::{Position, Problem, ReadError};
pub use report::ReadReport;
