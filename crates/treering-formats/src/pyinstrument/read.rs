//! Reads JSON of pyinstrument.

use serde_json::{Map, Value};
use treering_profile::{Function, FunctionId, FunctionKind, Metric, NodeId, Profile, Unit};

use crate::budget::Budget;
use crate::import::Import;
use crate::json::nanoseconds;
use crate::json_tree::objects;
use crate::read_error::LARGE_TIME;
use crate::{Problem, ReadError, ReadReport};

/// How pyinstrument names the own time of a function, in place of a callee.
const OWN: &str = "[self]";

/// Reads JSON of pyinstrument.
///
/// The metric is `time`, in nanoseconds. What a function costs itself is its time without that of the functions below
/// it. The number of samples is known for the whole only, and is a parameter.
///
/// # Errors
/// When it is damaged or has no functions.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_within(bytes, Budget::new(bytes.len()))
}

/// The same with a limit to the memory that the profile may take.
pub(crate) fn read_within(bytes: &[u8], mut budget: Budget) -> Result<(Profile, ReadReport), ReadError> {
    let objects = objects(bytes, &["root_frame", "children"], &mut budget)?;
    let mut import = Import::new(budget);
    let time = import.profile.add_metric(Metric::exact("time", Unit::Nanoseconds));
    let root = import.single_root();
    session(&objects[0].fields, &mut import.profile);
    let mut own: Vec<f64> = objects.iter().map(|object| seconds(&object.fields)).collect();
    for object in objects.iter().skip(1).filter(|object| !is_own(&object.fields)) {
        // The whole of a function is no part of what calls it.
        if let Some(parent) = object.parent.filter(|&parent| parent > 0) {
            own[parent] -= seconds(&object.fields);
        }
    }
    let mut nodes: Vec<NodeId> = Vec::with_capacity(objects.len());
    for (at, object) in objects.iter().enumerate() {
        let above = object.parent.map_or(root, |parent| nodes[parent]);
        let node = match at == 0 || is_own(&object.fields) {
            true => above,
            false => {
                let function = function(&object.fields, &mut import);
                import.child(above, function)?
            }
        };
        nodes.push(node);
        if at > 0 && !is_own(&object.fields) {
            // Times are rounded to microseconds, each by itself.
            let ns = nanoseconds(own[at].max(0.0), 1e9)
                .ok_or_else(|| ReadError::at(format_args!("frame {at}"), LARGE_TIME))?;
            import.profile.tree.add_self_cost(time, node, ns);
        }
    }
    if objects.len() < 2 {
        return Err(Problem::Empty("functions").into());
    }
    import.finish("pyinstrument")
}

/// The facts that the file states of the whole.
fn session(fields: &Map<String, Value>, profile: &mut Profile) {
    let number = |key: &str| fields.get(key).and_then(Value::as_f64);
    let run = &mut profile.runs[0];
    run.duration_ns = number("duration").and_then(|seconds| nanoseconds(seconds, 1e9)).unwrap_or(0);
    run.start_unix_ns = number("start_time").and_then(|seconds| nanoseconds(seconds, 1e9)).unwrap_or(0);
    let program = ["target_description", "program"].iter().find_map(|key| fields.get(*key)?.as_str());
    let program = program.map(|text| text.strip_prefix("Program: ").unwrap_or(text));
    run.command = program.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
    profile.metadata.losses.samples = number("sample_count").map_or(0, |count| count as u64);
}

fn seconds(fields: &Map<String, Value>) -> f64 {
    fields.get("time").and_then(Value::as_f64).unwrap_or(0.0)
}

fn text<'a>(fields: &'a Map<String, Value>, key: &str) -> &'a str {
    fields.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn is_own(fields: &Map<String, Value>) -> bool {
    text(fields, "function") == OWN
}

fn function(fields: &Map<String, Value>, import: &mut Import) -> FunctionId {
    let name = import.profile.strings.intern(text(fields, "function"));
    let path = match text(fields, "file_path") {
        "" => text(fields, "file_path_short"),
        path => path,
    };
    let file = import.string(path);
    let line =
        fields.get("line_no").and_then(Value::as_u64).and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
    let kind = if path.is_empty() { FunctionKind::Builtin } else { FunctionKind::Interpreted };
    import.profile.functions.intern(Function { file, line, kind, ..Function::named(name) })
}
