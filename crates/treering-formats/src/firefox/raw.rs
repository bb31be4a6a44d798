//! Profiles as Firefox itself writes them: tables of rows, each with a schema that names its columns, and functions
//! only as texts of frames. They become processed ones.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::firefox::location::{Columns, Location};

/// Whether the tables of a file are rows.
pub(super) fn is_raw(file: &Value) -> bool {
    file["meta"]["preprocessedProfileVersion"].is_null()
        && threads(file).iter().any(|(_, thread)| thread["stackTable"]["schema"].is_object())
}

/// The same profile with columns, as a processed one has them.
pub(super) fn processed(file: &Value) -> Value {
    let threads: Vec<Value> =
        threads(file).into_iter().map(|(owner, thread)| columns(file, owner, thread)).collect();
    json!({ "meta": file["meta"], "libs": [], "threads": threads })
}

/// The threads of all processes: those of others are profiles in the profile.
fn threads(file: &Value) -> Vec<(&Value, &Value)> {
    let mut found = Vec::new();
    let mut open = vec![file];
    while let Some(process) = open.pop() {
        found.extend(process["threads"].as_array().into_iter().flatten().map(|thread| (process, thread)));
        open.extend(process["processes"].as_array().into_iter().flatten());
    }
    found
}

/// A table of rows.
struct Rows<'a> {
    schema: &'a Value,
    data: &'a [Value],
}

impl<'a> Rows<'a> {
    fn of(table: &'a Value) -> Self {
        Self { schema: &table["schema"], data: table["data"].as_array().map_or(&[], Vec::as_slice) }
    }

    /// A column; rows may end before it.
    fn column(&self, name: &str) -> Vec<Value> {
        let at = self.schema[name].as_u64().map(|at| at as usize);
        self.data.iter().map(|row| at.and_then(|at| row.get(at)).cloned().unwrap_or(Value::Null)).collect()
    }
}

fn columns(file: &Value, process: &Value, thread: &Value) -> Value {
    let [frames, stacks, samples] =
        ["frameTable", "stackTable", "samples"].map(|name| Rows::of(&thread[name]));
    let texts = thread["stringTable"].as_array().map_or(&[][..], Vec::as_slice);
    let mut functions = Functions::default();
    let of_frames: Vec<usize> = frames
        .column("location")
        .iter()
        .map(|location| {
            let text = location.as_u64().and_then(|at| texts.get(at as usize)).and_then(Value::as_str);
            functions.number(text.unwrap_or("(no name)"), &process["libs"])
        })
        .collect();
    let mut columns = Map::new();
    for name in ["name", "pid", "tid", "processName"] {
        columns.insert(name.to_owned(), thread[name].clone());
    }
    if columns["pid"].is_null() {
        columns.insert("pid".to_owned(), process["pid"].clone());
    }
    columns.insert("libs".to_owned(), process["libs"].clone());
    columns.insert(
        "samples".to_owned(),
        json!({ "stack": samples.column("stack"), "threadCPUDelta": cpu(&samples), "time": times(file, process, &samples) }),
    );
    columns.insert(
        "stackTable".to_owned(),
        json!({ "frame": stacks.column("frame"), "prefix": stacks.column("prefix") }),
    );
    columns.insert("frameTable".to_owned(), json!({ "func": of_frames, "line": frames.column("line") }));
    functions.fill(&mut columns);
    Value::Object(columns)
}

/// The column of processor time, if there is one.
fn cpu(samples: &Rows<'_>) -> Option<Vec<Value>> {
    samples.schema["threadCPUDelta"].is_u64().then(|| samples.column("threadCPUDelta"))
}

/// The times of samples in milliseconds since the start of the first process, if all have one.
fn times(file: &Value, process: &Value, samples: &Rows<'_>) -> Option<Vec<f64>> {
    let start = |of: &Value| of["meta"]["startTime"].as_f64().unwrap_or(0.0);
    let offset = start(process) - start(file);
    samples.column("time").iter().map(|time| time.as_f64().map(|time| time + offset)).collect()
}

/// The functions that frames name.
#[derive(Default)]
struct Functions<'a> {
    known: HashMap<&'a str, usize>,
    names: Vec<&'a str>,
    files: Vec<Option<&'a str>>,
    lines: Vec<Option<u32>>,
    /// The library of each, by its number.
    libraries: Vec<Option<usize>>,
}

impl<'a> Functions<'a> {
    fn number(&mut self, text: &'a str, libraries: &Value) -> usize {
        if let Some(&known) = self.known.get(text) {
            return known;
        }
        let place = Location::parse(text, Columns::Optional);
        self.known.insert(text, self.names.len());
        self.names.push(place.map_or(text, |place| place.name));
        self.files.push(place.map(|place| place.file));
        self.lines.push(place.map(|place| place.line));
        self.libraries.push(library(text, libraries));
        self.names.len() - 1
    }

    /// Writes the tables. Texts are the names, then the files.
    fn fill(self, columns: &mut Map<String, Value>) {
        let count = self.names.len();
        let files: Vec<&str> = self.files.iter().flatten().copied().collect();
        let mut next = count..;
        let file_of: Vec<Option<usize>> =
            self.files.iter().map(|file| file.and_then(|_| next.next())).collect();
        let texts: Vec<&str> = self.names.iter().copied().chain(files).collect();
        let is_script: Vec<bool> = self.files.iter().map(Option::is_some).collect();
        columns.insert("stringArray".to_owned(), json!(texts));
        // A resource for each function keeps its library.
        columns.insert("resourceTable".to_owned(), json!({ "lib": self.libraries }));
        let numbers: Vec<usize> = (0..count).collect();
        columns.insert(
            "funcTable".to_owned(),
            json!({ "name": numbers, "resource": numbers, "fileName": file_of, "lineNumber": self.lines, "isJS": is_script }),
        );
    }
}

/// The library that an address is in.
fn library(text: &str, libraries: &Value) -> Option<usize> {
    let address = u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()?;
    let holds = |library: &Value| {
        let [start, end] = ["start", "end"].map(|key| library[key].as_u64());
        start.is_some_and(|start| start <= address) && end.is_some_and(|end| address < end)
    };
    libraries.as_array()?.iter().position(holds)
}
