//! The events as they are in JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::cpuprofile::node::Node;
use crate::label::without_mark;
use crate::our_run::OurRun;
use crate::speedscope::EXPORTER;
use crate::{Position, ReadError};

/// A trace; nothing of what is not used is kept.
#[derive(Default, Deserialize)]
pub(crate) struct Trace {
    #[serde(default, rename = "traceEvents")]
    pub(crate) events: Vec<Event>,
    #[serde(default, rename = "stackFrames")]
    pub(crate) frames: BTreeMap<String, StackFrame>,
    #[serde(default)]
    pub(crate) samples: Vec<Sample>,
    #[serde(default, rename = "otherData", deserialize_with = "ours")]
    pub(crate) ours: Option<Ours>,
}

/// Statements of a file that Treering wrote.
pub(crate) struct Ours {
    pub(crate) metric: String,
    pub(crate) run: Option<OurRun>,
}

#[derive(Deserialize)]
pub(crate) struct Event {
    #[serde(default)]
    pub(crate) ph: String,
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// In microseconds.
    #[serde(default, deserialize_with = "number")]
    pub(crate) ts: Option<f64>,
    #[serde(default, deserialize_with = "number")]
    pub(crate) dur: Option<f64>,
    /// The processor time; some writers have no other duration.
    #[serde(default, deserialize_with = "number")]
    pub(crate) tdur: Option<f64>,
    #[serde(default, deserialize_with = "id")]
    pub(crate) pid: String,
    #[serde(default, deserialize_with = "id")]
    pub(crate) tid: String,
    #[serde(default, rename = "cat", deserialize_with = "optional_id")]
    pub(crate) category: Option<String>,
    /// The scope of an instant: `t`, `p` or `g`.
    #[serde(default, rename = "s", deserialize_with = "optional_id")]
    pub(crate) scope: Option<String>,
    /// Tells which recording of V8 it belongs to.
    #[serde(default, deserialize_with = "id")]
    pub(crate) id: String,
    #[serde(default, deserialize_with = "args")]
    pub(crate) args: Args,
}

/// The arguments of an event, as far as they are used.
#[derive(Default)]
pub(crate) struct Args {
    /// The name of a thread or process.
    pub(crate) name: Option<String>,
    pub(crate) data: Option<Box<Data>>,
}

/// A part of a recording of V8.
#[derive(Deserialize)]
pub(crate) struct Data {
    #[serde(default, rename = "cpuProfile")]
    pub(crate) profile: Option<CpuProfile>,
    #[serde(default, rename = "timeDeltas")]
    pub(crate) deltas: Vec<f64>,
    #[serde(default, rename = "startTime", deserialize_with = "number")]
    pub(crate) start: Option<f64>,
    #[serde(default, rename = "endTime", deserialize_with = "number")]
    pub(crate) end: Option<f64>,
}

#[derive(Deserialize)]
pub(crate) struct CpuProfile {
    #[serde(default)]
    pub(crate) nodes: Vec<Node>,
    #[serde(default)]
    pub(crate) samples: Vec<u64>,
    #[serde(default, rename = "timeDeltas")]
    pub(crate) deltas: Vec<f64>,
    #[serde(default, rename = "startTime", deserialize_with = "number")]
    pub(crate) start: Option<f64>,
    #[serde(default, rename = "endTime", deserialize_with = "number")]
    pub(crate) end: Option<f64>,
}

#[derive(Deserialize)]
pub(crate) struct StackFrame {
    pub(crate) name: String,
    #[serde(default, deserialize_with = "optional_id")]
    pub(crate) parent: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Sample {
    #[serde(default, deserialize_with = "number")]
    pub(crate) ts: Option<f64>,
    #[serde(default, deserialize_with = "id")]
    pub(crate) pid: String,
    #[serde(default, deserialize_with = "id")]
    pub(crate) tid: String,
    #[serde(default, deserialize_with = "optional_id")]
    pub(crate) sf: Option<String>,
    /// The event that was sampled.
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// The weight of the sample, where that is no time.
    #[serde(default, deserialize_with = "number")]
    pub(crate) weight: Option<f64>,
}

/// A trace, and whether it was cut short: writers of the array form may leave out its end.
pub(crate) fn parse(bytes: &[u8]) -> Result<(Trace, bool), ReadError> {
    let text = without_mark(bytes).trim_ascii_start();
    match text.strip_prefix(b"[") {
        Some(events) => array(text, events),
        None => Ok((serde_json::from_slice(text)?, false)),
    }
}

/// Events one after the other, with commas between them, and perhaps a bracket at the end.
fn array(text: &[u8], mut rest: &[u8]) -> Result<(Trace, bool), ReadError> {
    let mut trace = Trace::default();
    loop {
        rest = rest.trim_ascii_start();
        rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
        match rest.first() {
            None => return Ok((trace, true)),
            Some(b']') => return Ok((trace, false)),
            Some(_) => {}
        }
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<Event>();
        match values.next() {
            Some(Ok(event)) => trace.events.push(event),
            Some(Err(error)) if error.is_eof() && !trace.events.is_empty() => return Ok((trace, true)),
            Some(Err(error)) => return Err(placed(error, text, rest)),
            None => return Ok((trace, true)),
        }
        rest = &rest[values.byte_offset()..];
    }
}

/// An error in `rest` with its place in the whole text, of which that is the end.
fn placed(error: serde_json::Error, text: &[u8], rest: &[u8]) -> ReadError {
    let before = &text[..text.len() - rest.len()];
    let lines = before.iter().filter(|&&byte| byte == b'\n').count();
    let column =
        before.iter().rposition(|&byte| byte == b'\n').map_or(before.len(), |at| before.len() - at - 1);
    let column = if error.line() <= 1 { error.column() + column } else { error.column() };
    let position = Position::Column { line: (error.line() + lines) as u64, column: column as u64 };
    ReadError { position, ..error.into() }
}

/// The metric named in a trace that Treering wrote; nothing in traces of other programs.
fn ours<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Ours>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let is_ours = text("exporter").is_some_and(|exporter| exporter.starts_with(EXPORTER));
    let run = value.get("treeringRun").and_then(|run| OurRun::deserialize(run).ok());
    Ok(text("treering").filter(|_| is_ours).map(|metric| Ours { metric: metric.to_owned(), run }))
}

/// A number, which may be in quotes.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    })
}

/// A number or text that tells one thing from others.
fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    optional_id(deserializer).map(Option::unwrap_or_default)
}

fn optional_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text),
        _ => None,
    })
}

fn args<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Args, D::Error> {
    let mut value = Value::deserialize(deserializer)?;
    let name = value.get("name").and_then(Value::as_str).map(str::to_owned);
    let data = value.get_mut("data").map(Value::take);
    let has_samples = |data: &Value| {
        ["cpuProfile", "timeDeltas", "startTime", "endTime"].iter().any(|key| data.get(key).is_some())
    };
    let data = data.filter(has_samples).map(serde_json::from_value::<Data>);
    match data {
        Some(Ok(data)) => Ok(Args { name, data: Some(Box::new(data)) }),
        // Other events have data of the same names that are something else.
        Some(Err(_)) | None => Ok(Args { name, data: None }),
    }
}
