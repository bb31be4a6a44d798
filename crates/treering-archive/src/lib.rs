//! An archive of benchmark runs: a folder of immutable files, named by their content.
//!
//! A run is a *manifest* in JSON (command, parameters, results, version, machine, the samples of every round) and, where
//! there is one, a profile. Both are files named by their SHA-256, the manifest names its profile, and neither is ever
//! changed. A file is written beside its place and linked there when it is whole, the profile first: so any number of
//! writers can work at once, one that is killed leaves nothing that is listed, and a folder can be copied, committed or
//! shared. The index is a database beside them that only saves time: it is compared with the files whenever an archive is
//! opened, and made again if it is missing or damaged.
//!
//! This crate knows neither the formats of profiles nor how programs are run, and prints nothing.
//!
//! ```
//! use treering_archive::{Archive, Manifest};
//!
//! # let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
//! # let folder = folder.path().join("archive");
//! let mut archive = Archive::open(&folder)?;
//! let run = archive.add(&Manifest { program: "sort".into(), ..Manifest::default() })?;
//! assert_eq!(archive.read(&run)?.program, "sort");
//! let listed = archive.summaries(None)?;
//! assert_eq!(listed[0].program, "sort");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod archive;
mod collect;
mod error;
mod id;
pub mod import;
mod index;
mod machine;
mod manifest;
mod moment;
mod select;
mod store;
mod summary;
mod word;

pub use archive::Archive;
pub use collect::{Collected, Retention};
pub use error::Error;
pub use id::Id;
pub use machine::Machine;
pub use manifest::{FORMAT, Manifest, Measured, Named, ProfileFile, Unit, Version, metric};
pub use moment::Moment;
pub use select::COLUMNS;
pub use summary::{MetricSummary, Summary, median};
pub use word::Word;
