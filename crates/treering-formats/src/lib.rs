//! Profile file formats, read and written. Being built.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod report;
pub mod trg;

pub use report::{Dropped, ReadReport};
