//! Files of JSON: what is wrong with them, and texts as they are written.

use std::fmt;
use std::io::{self, Write};

use serde::de::DeserializeOwned;

use crate::detect::LOOK;
use crate::speedscope::EXPORTER;

/// Why a file is not the JSON that it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// The problem.
    pub what: String,
    /// The number of the line, from 1.
    pub line: usize,
    /// The column in it, from 1.
    pub column: usize,
    /// Whether the file ended too early.
    pub is_cut: bool,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, line, column, is_cut } = self;
        let cut = if *is_cut { "the file is cut short" } else { what };
        write!(f, "{cut} (line {line}, column {column})")
    }
}

impl std::error::Error for JsonError {}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        let (line, column, is_cut) = (error.line(), error.column(), error.is_eof());
        // serde_json adds the place itself.
        let text = error.to_string();
        let what = text.split(" at line ").next().unwrap_or_default().to_owned();
        Self { what, line, column, is_cut }
    }
}

/// The whole file as a value.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(crate::label::without_mark(bytes))
}

/// Writes a text in quotes.
pub(crate) fn write_text(output: &mut impl Write, text: &str) -> io::Result<()> {
    serde_json::to_writer(output, text).map_err(io::Error::from)
}

/// Whether a JSON file that begins like this names Treering as its exporter. Our files do so before anything
/// long.
pub(crate) fn says_exporter(start: &[u8]) -> bool {
    let start = String::from_utf8_lossy(&start[..start.len().min(LOOK)]);
    start.contains(&format!("\"exporter\":\"{EXPORTER}"))
}

/// A number of nanoseconds, given in another unit; nothing for what is below 0 or no number.
pub(crate) fn nanoseconds(value: f64, per_unit: f64) -> Option<u64> {
    let scaled = (value * per_unit).round();
    (scaled >= 0.0 && scaled < u64::MAX as f64).then_some(scaled as u64)
}

/// The largest whole number that JavaScript, and so most viewers, have exactly.
pub(crate) const MOST_EXACT: u64 = 1 << 53;
