//! The profiles of `go tool pprof`, Speedscope, Pyroscope and others: gzip-compressed protobuf.
//!
//! The messages are those of `proto/profile.proto` of github.com/google/pprof, written out by
//! hand in `message.rs`. The format has stacks with several values each, inlined frames, lines,
//! mappings and labels; it has neither a tree nor call counts.

pub(crate) mod message;
#[cfg_attr(not(feature = "pprof-drop-frames"), path = "pprof/no_prune.rs")]
mod prune;
mod read;
mod write;

#[cfg(feature = "all")]
use crate::format::{Description, Writing};
#[cfg(feature = "all")]
use crate::gzip::comment;

pub use read::{read, read_labelled};
pub(crate) use read::{read_message, read_within};
pub(crate) use write::{FLAT, MARK, write_plain};
pub use write::{size, write};

/// Its row in the table of formats.
#[cfg(feature = "all")]
pub(crate) const DESCRIPTION: Description = Description {
    extension: Some("pb.gz"),
    import: Some("Protobuf, compressed or not"),
    export: Some("For go tool pprof, Speedscope and others"),
    says_ours: |start| comment(start).as_deref() == Some(MARK),
    writing: Writing::Whole { write: |profile, output| write(profile, output), size },
    ..Description::as_it_is("pprof", "pprof", read_within)
};
