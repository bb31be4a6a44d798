//! Results of Octave's own profiler: what `profile ("info")` returns, as `jsonencode` or `save -text` writes it.
//!
//! A struct of a table of functions and of the tree of calls, with seconds. `TotalTime` in the table is what this
//! project calls self cost; costs are taken from the tree. `jsonencode` leaves out the values of empty lists
//! (`"Children"}`), which is no JSON; it is read all the same.

mod json;
mod read;
mod text;
mod value;

use crate::Problem;
use crate::format::Description;

pub use read::read;
use read::read_within;

fn shape(text: &str) -> Problem {
    format!("it is not what profile (\"info\") returns: {text}").into()
}

/// How the text of `save -text` begins.
pub(crate) const TEXT_START: &[u8] = b"# Created by Octave ";

/// Its row in the table of formats.
pub(crate) const DESCRIPTION: Description = Description {
    import: Some("Octave's profile (\"info\"), written by jsonencode or save -text"),
    begins: |start| start.starts_with(TEXT_START) || is_json(start),
    ..Description::unzipped("octave", "Octave's profile (\"info\")", read_within)
};

/// Whether it is the struct as JSON, in the order in which Octave has its fields.
pub(crate) fn is_json(start: &[u8]) -> bool {
    let mut start: Vec<u8> =
        start.iter().copied().take(64).filter(|byte| !byte.is_ascii_whitespace()).collect();
    start.truncate(17);
    start.starts_with(b"{\"FunctionTable\":")
}
