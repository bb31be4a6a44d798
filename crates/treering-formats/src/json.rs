//! Files of JSON: values that are read, and texts as they are written.

use std::io::{self, Write};

use serde::de::DeserializeOwned;

use crate::detect::LOOK;
use crate::speedscope::EXPORTER;

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

/// A number of nanoseconds, given in another unit; nothing for a value below 0 and for one that is no number.
pub(crate) fn nanoseconds(value: f64, per_unit: f64) -> Option<u64> {
    let scaled = (value * per_unit).round();
    (scaled >= 0.0 && scaled < u64::MAX as f64).then_some(scaled as u64)
}

/// The largest whole number that JavaScript, and so most viewers, have exactly.
pub(crate) const MOST_EXACT: u64 = 1 << 53;
