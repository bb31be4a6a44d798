//! Live files: the calling context tree of an instrumented program, as it grows.
//!
//! The layout is that of `treering-events`; `docs/formats/live.md` describes it. Such a file is
//! what a program leaves that was killed, and what one that runs is writing; one that ends
//! replaces it by a `.trg` file. They are read and not written here.

mod error;
mod read;
mod running;

use crate::format::Description;

pub use error::ReadError;
pub use read::{read, read_at, read_running};
pub use running::{FileState, Running, ThreadNow, Writer};
pub use treering_events::MAGIC;

/// What the table of formats says of it.
pub(crate) const DESCRIPTION: Description = Description {
    is_own: true,
    begins: |start| start.starts_with(&MAGIC[..4]),
    ..Description::read_only("live", "the live file of a program that reports its own calls", |bytes, _| {
        Ok(read(bytes)?)
    })
};
