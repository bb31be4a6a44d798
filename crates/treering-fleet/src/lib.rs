//! Tables of many profiles, which SQL engines read.
//!
//! A profile is a file for one run. Ten thousand runs are six tables in Parquet files: runs, functions, chains of
//! callers, the costs of chains and of functions, and the sums of each day. Functions and chains have names of 128 bits
//! that are the same in all profiles ([`Key`]), so tables are joined without a service that hands out numbers.
//!
//! [`Rows`] are those of one profile, a [`Batch`] has those of the runs of a day, and [`Tables`] keeps batches as files
//! that are never changed. [`sql`] has the views and the questions for each engine.
//!
//! This crate runs no engine, reads no format of profiles, and prints nothing. Without its feature `write` it only knows
//! which files count, and the texts in SQL: `treering-query` has a Parquet reader of its own.
//!
//! ```
//! use treering_fleet::{Batch, Rows, Run, Tables};
//!
//! let profile = treering_testing::trace("0 enter main\n1   enter work\n4   leave work\n5 leave main");
//! let run = Run { name: "a1".into(), project: "demo".into(), day: "2026-11-27".into(), ..Run::default() };
//! let mut batch = Batch::default();
//! batch.add(run, Rows::of(&profile)?)?;
//!
//! let archive = tempfile::tempdir()?;
//! let mut tables = Tables::open_to_change(archive.path())?;
//! let part = tables.write("2026-11-27", batch)?;
//! tables.publish(&[], vec![part])?;
//! assert_eq!(tables.files("cost").len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

#[cfg(feature = "write")]
mod column;
#[cfg(feature = "write")]
mod identity;
#[cfg(feature = "write")]
mod rows;
pub mod sql;
mod store;
#[cfg(feature = "write")]
mod tables;
#[cfg(feature = "write")]
mod write;

#[cfg(feature = "write")]
pub use identity::{Key, Named, function};
#[cfg(feature = "write")]
pub use rows::{FunctionCost, Lost, Rows, Run, RunCost, Stack, StackCost, Unfit};
pub use sql::TABLES;
pub use store::{Error, FORMAT, Part, Tables};
#[cfg(feature = "write")]
pub use tables::Batch;
