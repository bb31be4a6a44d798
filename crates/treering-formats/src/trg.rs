//! Treering's own format: `.trg`, version 1.
//!
//! A header of 16 bytes, then frames that each say how long they are and carry a checksum. What
//! they hold only adds to what came before, so a writer never seeks, a file can be written while
//! the program runs, and one that was cut off anywhere is readable up to there. The byte layout
//! is described in `docs/formats/trg.md`, with test vectors.
//!
//! - [`write()`] writes a whole profile; [`Appender`] one that grows;
//! - [`read`] reads it back, with what was lost;
//! - [`dump`] shows every frame as JSON.

mod assembly;
mod content;
mod dump;
mod error;
mod frame;
mod output;
mod read;
mod scan;
mod varint;
mod write;

use crate::format::{Description, Writing};

pub use dump::{FrameDump, dump};
pub use error::{Damage, Loss, WriteError};
pub use frame::{Kind, MAGIC, MAJOR, MINOR};
pub use read::read;
pub use scan::{Frames, RawFrame};
pub use write::{Appender, write};

/// Its row in the table of formats.
pub(crate) const DESCRIPTION: Description = Description {
    is_own: true,
    begins: |start| start.starts_with(&MAGIC[..4]),
    writing: Writing::Custom { one_metric: false },
    ..Description::as_it_is("trg", ".trg", |bytes, _| read(bytes))
};
