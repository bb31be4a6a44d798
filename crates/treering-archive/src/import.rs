//! Runs that other tools have measured.
//!
//! Each reader takes the bytes of a file and gives a manifest for each benchmark in it. Times are those of one iteration,
//! as the tools state them. When they were measured, and on which machine, is stated only as far as the file says it.

mod criterion;
mod google_benchmark;
mod hyperfine;

pub use criterion::criterion;
pub use google_benchmark::google_benchmark;
pub use hyperfine::hyperfine;

use serde_json::Value;

/// Why a file could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It is no JSON.
    #[error("it is no JSON: {0}")]
    NoJson(#[from] serde_json::Error),
    /// Something is missing in it, or of another kind.
    #[error("{of}: {what}")]
    Wrong {
        /// The benchmark or the part of the file.
        of: String,
        /// The mistake.
        what: String,
    },
}

impl ImportError {
    fn wrong(of: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Wrong { of: of.into(), what: what.into() }
    }
}

/// A tool whose files can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// `hyperfine --export-json`.
    Hyperfine,
    /// `--benchmark_format=json` or `--benchmark_out` of google-benchmark.
    GoogleBenchmark,
}

/// The tool that wrote some JSON.
pub fn recognise(json: &[u8]) -> Option<Tool> {
    let value = read(json).ok()?;
    let is_list = |name: &str| value.get(name).is_some_and(Value::is_array);
    let has_times = |value: &Value| value.get("command").is_some() && value.get("mean").is_some();
    if is_list("benchmarks") && value.get("context").is_some() {
        return Some(Tool::GoogleBenchmark);
    }
    (is_list("results") && value["results"].as_array()?.iter().any(has_times)).then_some(Tool::Hyperfine)
}

/// Reads JSON in which numbers may be `NaN`, `Infinity` or `-Infinity`, as google-benchmark writes some counters: they are
/// null.
fn read(json: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(json).or_else(|error| {
        let (mut text, mut rest, mut is_quoted) = (Vec::with_capacity(json.len()), json, false);
        while let Some(&letter) = rest.first() {
            let word =
                [&b"NaN"[..], b"Infinity", b"-Infinity"].into_iter().find(|word| rest.starts_with(word));
            let taken = match word.filter(|_| !is_quoted) {
                Some(word) => {
                    text.extend(b"null");
                    word.len()
                }
                None => {
                    // A backslash takes the next letter into the text, also a quotation mark.
                    let taken = if is_quoted && letter == b'\\' { 2.min(rest.len()) } else { 1 };
                    is_quoted ^= letter == b'"';
                    text.extend(&rest[..taken]);
                    taken
                }
            };
            rest = &rest[taken..];
        }
        serde_json::from_slice(&text).map_err(|_| error)
    })
}

/// A number that a time can be: finite and not negative.
fn time(of: &str, value: &Value) -> Result<f64, ImportError> {
    let number = value.as_f64().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| ImportError::wrong(of, format!("{value} is no time")))
}
