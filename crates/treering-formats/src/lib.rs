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
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

pub mod arc_file;
pub mod austin;
mod binary;
mod budget;
pub mod callgrind;
pub mod cbs_xml;
pub mod chrome_trace;
mod costs_only;
pub mod cpuprofile;
mod detect;
mod error;
pub mod firefox;
pub mod folded;
mod foreign;
mod format;
pub mod gmon;
pub mod gperftools;
pub mod gprof;
mod gzip;
mod import;
pub mod jfr_text;
mod json;
mod json_tree;
mod label;
pub mod live;
mod negative;
pub mod octave;
mod open_calls;
pub mod otlp;
pub mod perf_data;
pub mod perf_script;
mod position;
pub mod pprof;
pub mod prolog;
pub mod pstats;
pub mod pyinstrument;
mod read_error;
mod report;
mod sampled_event;
pub mod speedscope;
pub mod stackprof;
#[allow(
    dead_code,
    unused_macros,
    unused_imports,
    reason = "readers that are not converted to `Import` yet use it"
)]
mod stacks;
pub mod swi_profile;
pub mod trg;
mod unit;
pub mod v8_log;

pub use binary::{Binaries, Kernel, NoBinaries};
pub use detect::{detect, detect_foreign, is_ours};
pub use error::Error;
pub use foreign::{Foreign, Named};
pub use format::{Format, WriteMetric, WriteWhole, Writing, read_any, read_as};
pub use gzip::GzipError;
pub use json::JsonError;
pub use position::{AtByte, ByteError, LineError};
pub use read_error::{Position, Problem, ReadError};
pub use report::{Dropped, ReadReport};
pub use stacks::StackError;
