//! Live files: the calling context tree of an instrumented program, as it grows.
//!
//! The layout is that of `treering-events`; `docs/formats/live.md` describes it. Such a file is
//! what a program leaves that was killed, and what one that runs is writing; one that ends
//! replaces it by a `.trg` file. They are read and not written here.

mod read;
mod running;

use treering_events::{Damage, View};

use crate::format::Description;
use crate::{Problem, ReadError};

pub use read::{read, read_at, read_running};
pub use running::{FileState, Running, ThreadNow, Writer};
pub use treering_events::MAGIC;

/// Its row in the table of formats.
pub(crate) const DESCRIPTION: Description = Description {
    is_own: true,
    begins: |start| start.starts_with(&MAGIC[..4]),
    ..Description::as_it_is("live", "the live file of a program that reports its own calls", |bytes, _| {
        read(bytes)
    })
};

/// The file as it is, if its header is of a known layout.
fn view(bytes: &[u8]) -> Result<View<'_>, ReadError> {
    use treering_events::{HEADER_BYTES, VERSION, VERSION_WITHOUT_CHECKS};
    let problem = |damage| match damage {
        Damage::NotLive => Problem::OtherFormat("the file of an instrumented program"),
        Damage::CutShort { length } => {
            let (needed, left) = (HEADER_BYTES, length as u64);
            Problem::PartCutShort { part: "the header", needed, left }
        }
        Damage::OtherVersion { version } => Problem::unsupported(format!(
            "layout {version} is not known; layouts {VERSION_WITHOUT_CHECKS} and {VERSION} are read"
        )),
    };
    View::new(bytes).map_err(|damage| problem(damage).into())
}
