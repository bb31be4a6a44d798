//! Writes profiles of the Firefox Profiler.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Value, json};
use treering_profile::{
    FunctionId, FunctionKind, Mark, MarkKind, Metadata, MetricId, ModuleId, NodeId, Profile, StringId,
    ThreadId, Unit,
};

use crate::Dropped;
use crate::dropped::Part;
use crate::firefox::table::{EXEC, INSTANT, MARK, USER_TIMING};
use crate::label::{file_name, label};
use crate::our_run::OurRun;
use crate::speedscope::EXPORTER;
use crate::timed_costs::TimedCosts;

/// The version of the format; the profiler upgrades it.
const VERSION: u32 = 49;

/// Writes the stacks of every thread with the costs of one metric: where it is known when they arose, a sample for each
/// node and slot of time, else one for each node that costs something.
///
/// # Errors
/// When the output fails.
///
/// # Panics
/// When the profile has no such metric.
pub fn write(profile: &Profile, metric: MetricId, mut output: impl Write) -> io::Result<Dropped> {
    let of = &profile.metrics[metric.index()];
    let command = profile.runs.first().map(|run| run.command.join(" ")).unwrap_or_default();
    let start_ms = profile.runs.first().map_or(0, |run| run.start_unix_ns / 1_000_000);
    let product = if command.is_empty() { "treering" } else { &command };
    let mut meta = json!({
        "exporter": format!("{EXPORTER}{}", env!("CARGO_PKG_VERSION")),
        "treering": of.name, "treeringRun": OurRun::of(profile).json(), "interval": 1.0, "startTime": start_ms, "processType": 0, "product": product,
        "stackwalk": 1, "debug": false, "version": 24, "preprocessedProfileVersion": VERSION,
        "symbolicated": true, "markerSchema": [marker_schema()], "pausedRanges": [],
        "usesOnlyOneStackType": true, "doesNotUseFrameImplementation": true, "sourceCodeIsNotOnSearchfox": true,
        "sampleUnits": { "time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns" },
        "extensions": { "baseURL": [], "id": [], "length": 0, "name": [] },
        "categories": [{ "name": "Other", "color": "grey", "subcategories": ["Other"] }],
    });
    let costs = TimedCosts::of(profile, metric);
    if let Some(timed) = &costs {
        meta["interval"] = json!(timed.slot_ns as f64 / 1e6);
        meta["treeringTimes"] = json!(true);
    }
    let mut extra = run_entries(profile);
    if let Some(measuring) = profile.metadata.parameters.get(Metadata::MEASURING) {
        let entry = json!({ "label": "Cost of measuring", "format": "string", "value": measuring });
        extra.push(json!({ "label": "Costs", "entries": [entry] }));
    }
    meta["extra"] = json!(extra);
    write!(output, "{{\"meta\":{meta},\n\"libs\":{},\n\"threads\":[", libraries(profile))?;
    let threads = profile.node_threads();
    for at in 0..profile.threads.len() {
        let id = ThreadId::from_usize(at);
        let pieces = match &costs {
            Some(timed) => {
                let time_ms = |slot| timed.start_ns(slot) as f64 / 1e6;
                let costs = timed.of_thread(at).iter();
                costs.map(|cost| (Some(time_ms(cost.slot)), cost.node, cost.cost)).collect()
            }
            None => {
                let nodes = profile.tree.nodes().filter(|node| threads[node.index()] == id);
                let cost = |node| (None, node, profile.tree.self_cost(metric, node));
                nodes.map(cost).filter(|(.., cost)| *cost > 0).collect()
            }
        };
        let marks = if costs.is_some() { marks_of(profile, id) } else { Vec::new() };
        let thread = thread(profile, metric, id, (pieces, marks));
        write!(output, "{}\n{thread}", if at == 0 { "" } else { "," })?;
    }
    output.write_all(b"\n],\"pages\":[],\"profilerOverhead\":[],\"counters\":[]}\n")?;
    output.flush()?;
    let mut dropped = dropped(profile, metric);
    if let Some(timed) = &costs {
        timed.note(profile, metric, &mut dropped);
    }
    Ok(dropped)
}

/// The command and the wall time of the first run, as the profiler shows them beside the profile.
fn run_entries(profile: &Profile) -> Vec<Value> {
    let Some(run) = profile.runs.first() else { return Vec::new() };
    let command = run.command.join(" ");
    let command =
        (!command.is_empty()).then(|| json!({ "label": "Command", "format": "string", "value": command }));
    let ms = run.duration_ns as f64 / 1e6;
    let time =
        (run.duration_ns > 0).then(|| json!({ "label": "Wall time", "format": "duration", "value": ms }));
    let entries: Vec<Value> = command.into_iter().chain(time).collect();
    if entries.is_empty() { Vec::new() } else { vec![json!({ "label": "Run", "entries": entries })] }
}

fn dropped(profile: &Profile, metric: MetricId) -> Dropped {
    let mut dropped = Dropped::default();
    dropped.note_other_metrics(profile, metric, None);
    dropped.note_sampling(profile, metric);
    dropped.note_parts(profile, &[Part::InnermostLines, Part::Code, Part::Calls, Part::Arcs, Part::Runs]);
    dropped.note_details(profile);
    dropped
}

fn libraries(profile: &Profile) -> Value {
    let library = |module: &treering_profile::Module| {
        let path = &profile.strings[module.path];
        let code: String = module.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        json!({
            "name": file_name(path), "path": path, "debugName": file_name(path), "debugPath": path,
            "breakpadId": "", "codeId": if code.is_empty() { Value::Null } else { code.into() }, "arch": null,
        })
    };
    profile.modules.entries().iter().map(library).collect()
}

/// The tables of a thread, as they grow.
#[derive(Default)]
struct Tables {
    texts: Vec<String>,
    text_of: HashMap<String, usize>,
    functions: Vec<FunctionId>,
    function_of: HashMap<FunctionId, usize>,
    /// The function of a frame, and the line from which it called the next one.
    frames: Vec<(usize, Option<u32>)>,
    frame_of: HashMap<(usize, Option<u32>), usize>,
    /// The frame and the caller.
    stacks: Vec<(usize, Option<usize>)>,
    stack_of: HashMap<(usize, Option<usize>), usize>,
    resources: Vec<ModuleId>,
    resource_of: HashMap<ModuleId, usize>,
}

/// The number of a row, which is added if it is new.
fn row<K: Clone + Eq + std::hash::Hash>(rows: &mut Vec<K>, known: &mut HashMap<K, usize>, key: K) -> usize {
    *known.entry(key.clone()).or_insert_with(|| {
        rows.push(key);
        rows.len() - 1
    })
}

impl Tables {
    fn text(&mut self, text: &str) -> usize {
        row(&mut self.texts, &mut self.text_of, text.to_owned())
    }

    fn stack(&mut self, function: FunctionId, line: Option<u32>, caller: Option<usize>) -> usize {
        let function = row(&mut self.functions, &mut self.function_of, function);
        let frame = row(&mut self.frames, &mut self.frame_of, (function, line));
        row(&mut self.stacks, &mut self.stack_of, (frame, caller))
    }

    fn json(mut self, profile: &Profile) -> Value {
        let mut names = Vec::new();
        let mut files = Vec::new();
        let mut resources = Vec::new();
        let mut scripts = Vec::new();
        let mut lines = Vec::new();
        for id in std::mem::take(&mut self.functions) {
            let function = profile.functions[id];
            names.push(self.text(&label(profile, id)));
            let file =
                (function.file != StringId::new(0)).then(|| self.text(&profile.strings[function.file]));
            files.push(file);
            let module =
                function.module.map(|module| row(&mut self.resources, &mut self.resource_of, module));
            resources.push(module.map_or(-1, |module| module as i64));
            scripts.push(matches!(function.kind, FunctionKind::Interpreted | FunctionKind::Anonymous));
            lines.push((function.line > 0).then_some(function.line));
        }
        let modules = std::mem::take(&mut self.resources);
        let module_names: Vec<_> = modules
            .iter()
            .map(|&module| self.text(file_name(&profile.strings[profile.modules[module].path])))
            .collect();
        let module_numbers: Vec<_> = modules.iter().map(|module| module.index()).collect();
        let (functions, frames, stacks) = (names.len(), self.frames.len(), self.stacks.len());
        let nothing = |length: usize| vec![Value::Null; length];
        let zeros = |length: usize| vec![0; length];
        json!({
            "funcTable": {
                "length": functions, "name": names, "isJS": scripts, "relevantForJS": vec![false; functions],
                "resource": resources, "fileName": files, "lineNumber": lines, "columnNumber": nothing(functions),
            },
            "resourceTable": {
                "length": modules.len(), "lib": module_numbers, "name": module_names, "host": nothing(modules.len()),
                "type": vec![1; modules.len()],
            },
            "frameTable": {
                "length": frames, "address": vec![-1; frames], "inlineDepth": zeros(frames),
                "category": zeros(frames), "subcategory": zeros(frames),
                "func": self.frames.iter().map(|&(function, _)| function).collect::<Vec<_>>(),
                "nativeSymbol": nothing(frames), "innerWindowID": nothing(frames), "implementation": nothing(frames),
                "line": self.frames.iter().map(|&(_, line)| line).collect::<Vec<_>>(), "column": nothing(frames),
            },
            "stackTable": {
                "length": stacks, "category": zeros(stacks), "subcategory": zeros(stacks),
                "frame": self.stacks.iter().map(|&(frame, _)| frame).collect::<Vec<_>>(),
                "prefix": self.stacks.iter().map(|&(_, caller)| caller).collect::<Vec<_>>(),
            },
            "stringArray": self.texts,
        })
    }
}

/// A cost of a node, and the time in milliseconds at which it arose, if that is known.
type Piece = (Option<f64>, NodeId, u64);

/// The marks of a thread.
fn marks_of(profile: &Profile, thread: ThreadId) -> Vec<&Mark> {
    let all = profile.timeline.iter().flat_map(|timeline| &timeline.marks);
    all.filter(|mark| mark.thread == thread).collect()
}

/// How the profiler shows marks: as those that a page sets by `performance.mark`.
fn marker_schema() -> Value {
    json!({
        "name": USER_TIMING, "tooltipLabel": "{marker.data.name}", "tableLabel": "{marker.data.name}",
        "chartLabel": "{marker.data.name}", "display": ["marker-chart", "marker-table", "timeline-overview"],
        "data": [{ "key": "name", "label": "Name", "format": "string" }],
    })
}

/// Marks as markers of user timing without an end.
fn markers(profile: &Profile, marks: &[&Mark], tables: &mut Tables) -> Value {
    let (name, length) = (tables.text(USER_TIMING), marks.len());
    let data = |mark: &&Mark| {
        let kind = if mark.kind == MarkKind::Exec { EXEC } else { MARK };
        json!({ "type": USER_TIMING, "entryType": kind, "name": &profile.strings[mark.name] })
    };
    json!({
        "length": length, "category": vec![0; length], "data": marks.iter().map(data).collect::<Vec<_>>(),
        "endTime": vec![Value::Null; length], "name": vec![name; length], "phase": vec![INSTANT; length],
        "startTime": marks.iter().map(|mark| mark.time_ns as f64 / 1e6).collect::<Vec<_>>(),
    })
}

fn thread(
    profile: &Profile,
    metric: MetricId,
    id: ThreadId,
    (pieces, marks): (Vec<Piece>, Vec<&Mark>),
) -> Value {
    let unit = profile.metrics[metric.index()].unit;
    let mut tables = Tables::default();
    let (mut stacks, mut weights, mut times) = (Vec::new(), Vec::new(), Vec::new());
    let mut time_ms = 0.0;
    // A frame has the line from which it called the next one: the same caller is several frames, one for
    // each line. So a node's callers are looked up anew for each.
    let mut path = Vec::new();
    for (time, node, cost) in pieces {
        path.clear();
        path.extend(profile.tree.path(node).filter(|&node| profile.tree.parent(node).is_some()));
        let mut caller = None;
        for (at, &node) in path.iter().enumerate().rev() {
            let next = at.checked_sub(1).map(|next| path[next]);
            let site = next.and_then(|next| profile.tree.call_site(next));
            let line = site.map(|line| profile.lines[line].line).filter(|&line| line > 0);
            caller = Some(tables.stack(profile.tree.function(node), line, caller));
        }
        stacks.push(caller);
        let weight = match unit {
            Unit::Nanoseconds => json!(cost as f64 / 1e6),
            _ => json!(cost),
        };
        weights.push(weight);
        times.push(time.unwrap_or(time_ms));
        time_ms += if unit == Unit::Nanoseconds { cost as f64 / 1e6 } else { 1.0 };
    }
    let thread = &profile.threads[id.index()];
    let process = &profile.processes[thread.process.index()];
    let name = if thread.name.is_empty() { "thread" } else { &thread.name };
    let weight_type = match unit {
        Unit::Nanoseconds => "tracing-ms",
        Unit::Bytes => "bytes",
        _ => "samples",
    };
    let markers = markers(profile, &marks, &mut tables);
    let mut value = tables.json(profile);
    let rest = json!({
        "name": name, "isMainThread": thread.tid == process.pid, "processType": "default",
        "processName": process.name, "pid": process.pid.to_string(), "tid": thread.tid,
        "processStartupTime": 0, "processShutdownTime": null, "registerTime": 0, "unregisterTime": null,
        "pausedRanges": [], "showMarkersInTimeline": !marks.is_empty(), "markers": markers,
        "nativeSymbols": { "length": 0, "address": [], "functionSize": [], "libIndex": [], "name": [] },
        "samples": {
            "length": stacks.len(), "stack": stacks, "time": times, "weight": weights, "weightType": weight_type,
        },
    });
    if let (Value::Object(all), Value::Object(rest)) = (&mut value, rest) {
        all.extend(rest);
    }
    value
}
