//! Profiles of V8 as they were up to Node 10: nodes in each other, from the `head`, and the times of samples.

use serde_json::{Map, Value};

use crate::ReadError;
use crate::budget::Budget;
use crate::cpuprofile::node::{CallFrame, Node, Tick};
use crate::json_tree::objects;

/// The contents of such a file, in the shape of newer ones.
pub(super) struct Old {
    pub(super) nodes: Vec<Node>,
    /// In microseconds.
    pub(super) start: f64,
    pub(super) end: f64,
    pub(super) samples: Vec<u64>,
    pub(super) deltas: Vec<f64>,
}

/// Reads a file.
pub(super) fn read(bytes: &[u8], budget: &mut Budget) -> Result<Old, ReadError> {
    let objects = objects(bytes, &["head", "children"], budget)?;
    let file = &objects[0].fields;
    let number = |key: &str| file.get(key).and_then(Value::as_f64).unwrap_or(0.0);
    let id = |at: usize| objects[at].fields.get("id").and_then(Value::as_u64).unwrap_or(at as u64);
    let nodes = objects.iter().enumerate().skip(1).map(|(at, object)| {
        let parent = object.parent.filter(|&parent| parent > 0).map(id);
        node(&object.fields, id(at), parent)
    });
    let samples: Vec<u64> = list(file, "samples").iter().filter_map(Value::as_u64).collect();
    let times: Vec<f64> = list(file, "timestamps").iter().filter_map(Value::as_f64).collect();
    // Seconds, where times of samples are microseconds.
    let (start, end) = (number("startTime") * 1e6, number("endTime") * 1e6);
    let deltas = match times.is_empty() {
        true => spread(samples.len(), end - start),
        false => {
            let before = std::iter::once(times[0]).chain(times.iter().copied());
            times.iter().zip(before).map(|(time, before)| time - before).collect()
        }
    };
    let length = match (times.first(), times.last()) {
        // The clock of the times may be another one than that of start and end.
        (Some(first), Some(last)) => last - first,
        _ => end - start,
    };
    Ok(Old { nodes: nodes.collect(), start: 0.0, end: length.max(0.0), samples, deltas })
}

fn list<'a>(file: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    file.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Samples without times were taken at equal intervals.
fn spread(samples: usize, length: f64) -> Vec<f64> {
    let interval = if samples > 0 { length.max(0.0) / samples as f64 } else { 0.0 };
    (0..samples).map(|at| if at == 0 { 0.0 } else { interval }).collect()
}

fn node(fields: &Map<String, Value>, id: u64, parent: Option<u64>) -> Node {
    let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    // Lines are from 1 here.
    let line = fields.get("lineNumber").and_then(Value::as_f64).unwrap_or(0.0) - 1.0;
    let call_frame = CallFrame { name: text("functionName"), url: text("url"), line };
    let tick = |tick: &Value| {
        let line = u32::try_from(tick["line"].as_u64()?).ok()?;
        Some(Tick { line, ticks: tick["ticks"].as_u64()? })
    };
    let ticks = list(fields, "positionTicks").iter().filter_map(tick).collect();
    let hits = fields.get("hitCount").and_then(Value::as_u64).unwrap_or(0);
    Node { id, call_frame, hits, children: Vec::new(), parent, ticks }
}
