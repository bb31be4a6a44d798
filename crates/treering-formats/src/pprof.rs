//! The profiles of `go tool pprof`, Speedscope, Pyroscope and others: gzip-compressed protobuf.
//!
//! The messages are those of `proto/profile.proto` of github.com/google/pprof, written out by
//! hand in `message.rs`. The format has stacks with several values each, inlined frames, lines,
//! mappings and labels; it has neither a tree nor call counts.

mod error;
mod message;
mod prune;
mod read;
mod write;

pub use error::ReadError;
pub(crate) use read::read_within;
pub use read::{read, read_labelled};
pub(crate) use write::MARK;
pub use write::{size, write};
