//! Shows what the frames of a file hold.

mod code;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use treering_profile::{
    ActivationStatistics, AddressCost, Arc, Function, FunctionId, LineCost, Module, NodeId, NodeMemory,
    Point, Process, SizeCost, Source, Thread,
};

use crate::budget::Budget;
use crate::trg::content::{Columns, Content, Decoded, End, Nodes, Table, VERSION, Values};
use crate::trg::frame::{MAJOR, read_header};
use crate::trg::scan::{Frames, Unpacker};
use crate::trg::{Damage, Kind, Loss, RawFrame, ReadError};

/// A frame of a file, or a damaged part of it. It serialises as JSON, an entry after the other, so that
/// a frame of millions of entries takes no memory for each.
#[derive(Debug)]
pub struct FrameDump {
    /// What there is to see beside the content: `kind`, `offset`, lengths, `crc_ok`; for a damaged part
    /// `damage`.
    head: Map<String, Value>,
    /// The decoded content; nothing where there is none, and nothing in it where it is not known.
    content: Option<Option<Content>>,
    /// What is wrong with it, if anything.
    pub loss: Option<Loss>,
}

impl FrameDump {
    /// All of it at once.
    pub fn json(&self) -> Value {
        json!(self)
    }
}

impl Serialize for FrameDump {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(content) = &self.content {
            map.serialize_entry("content", &content.as_ref().map(ContentJson))?;
        }
        self.head.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
        map.end()
    }
}

/// The file header and every frame in order; a damaged frame does not end it.
///
/// # Errors
/// When it is not a `.trg` file, or one of a newer major version.
pub fn dump(bytes: &[u8]) -> Result<impl Iterator<Item = FrameDump> + '_, ReadError> {
    let minor = read_header(bytes)?;
    let header = head(json!({ "kind": "HEADER", "offset": 0, "major": MAJOR, "minor": minor }));
    let header = FrameDump { head: header, content: None, loss: None };
    let mut decoding = Decoding { unpacker: Unpacker::new(), budget: Budget::new(bytes.len()) };
    let frames = Frames::new(bytes).map(move |frame| match frame {
        Ok(frame) => dump_frame(&frame, &mut decoding),
        Err(loss) => dump_loss(loss),
    });
    Ok(std::iter::once(header).chain(frames))
}

/// The members of an object.
fn head(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Decodes frames within what a file of its length may take.
struct Decoding {
    unpacker: Unpacker,
    budget: Budget,
}

impl Decoding {
    fn content(&mut self, kind: Kind, frame: &RawFrame<'_>) -> Result<Content, Damage> {
        self.budget.unpack(frame.raw_length)?;
        let payload = self.unpacker.unpack(frame)?;
        Ok(Decoded::from_payload(kind, payload, self.budget.room())?.content)
    }
}

fn dump_frame(frame: &RawFrame<'_>, decoding: &mut Decoding) -> FrameDump {
    let kind = Kind::from_number(frame.kind);
    let mut head = head(json!({
        "kind": kind.map_or_else(|| json!(frame.kind), |kind| json!(kind.as_str())),
        "version": frame.version,
        "offset": frame.offset,
        "raw_length": frame.raw_length,
        "stored_length": frame.stored.len(),
        "crc_ok": true,
    }));
    let known = kind.filter(|_| frame.version <= VERSION);
    match known.map(|kind| decoding.content(kind, frame)).transpose() {
        Ok(content) => FrameDump { head, content: Some(content), loss: None },
        Err(damage) => {
            head.insert("damage".to_owned(), json!(damage.to_string()));
            FrameDump { head, content: None, loss: Some(frame.loss(damage)) }
        }
    }
}

fn dump_loss(loss: Loss) -> FrameDump {
    let kind = loss.kind.and_then(Kind::from_number).map(Kind::as_str);
    let head = head(json!({
        "kind": kind.map_or_else(|| json!(loss.kind), |kind| json!(kind)),
        "offset": loss.offset,
        "skipped": loss.length,
        "crc_ok": false,
        "damage": loss.damage.to_string(),
    }));
    FrameDump { head, content: None, loss: Some(loss) }
}

/// A content as JSON.
struct ContentJson<'a>(&'a Content);

impl Serialize for ContentJson<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Content::Meta(meta) => meta.serialize(to),
            Content::Strings(table) => table_json(to, table, |text| json!(text)),
            Content::Modules(table) => table_json(to, table, module_json),
            Content::Functions(table) => table_json(to, table, function_json),
            Content::Lines(table) => table_json(to, table, |line| json!([line.file.raw(), line.line])),
            Content::Processes(table) => table_json(to, table, process_json),
            Content::Threads(table) => table_json(to, table, thread_json),
            Content::Nodes(nodes) => nodes_json(to, nodes),
            Content::Costs(columns) | Content::Calls(columns) => columns_json(to, columns),
            Content::LineCosts(costs) => to.collect_seq(costs.iter().map(line_cost_json)),
            Content::AddressCosts(costs) => to.collect_seq(costs.iter().map(address_cost_json)),
            Content::Arcs(arcs) => to.collect_seq(arcs.iter().map(arc_json)),
            Content::Sources(sources) => to.collect_seq(sources.iter().map(source_json)),
            Content::Statistics(stated) => {
                let nodes = Entries(&stated.rows, |row: &(_, _)| row_json(row, statistics_json));
                pair(to, ("metric", &stated.metric.raw()), ("nodes", &nodes))
            }
            Content::Ports(rows) => {
                to.collect_seq(rows.iter().map(|row| row_json(row, |ports| json!(ports.counts()))))
            }
            Content::Sizes(stated) => {
                let rows = Entries(&stated.rows, size_json);
                pair(to, ("metric", &stated.metric.raw()), ("rows", &rows))
            }
            Content::Points(points) => to.collect_seq(points.iter().map(point_json)),
            Content::Memory(rows) => to.collect_seq(rows.iter().map(|row| row_json(row, memory_json))),
            Content::Code(part) => code::code_json(to, part),
            Content::End(end) => end_json(end).serialize(to),
        }
    }
}

/// Entries, each turned into JSON when it is written.
struct Entries<'a, T, F>(&'a [T], F);

impl<T, J: Serialize, F: Fn(&T) -> J> Serialize for Entries<'_, T, F> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(&self.1))
    }
}

/// An object of two members.
fn pair<S: Serializer>(
    to: S,
    first: (&str, &impl Serialize),
    second: (&str, &impl Serialize),
) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(2))?;
    map.serialize_entry(first.0, first.1)?;
    map.serialize_entry(second.0, second.1)?;
    map.end()
}

fn table_json<S: Serializer, T>(
    to: S,
    table: &Table<T>,
    entry: impl Fn(&T) -> Value,
) -> Result<S::Ok, S::Error> {
    pair(to, ("entries", &Entries(&table.entries, entry)), ("first", &table.first))
}

fn module_json(module: &Module) -> Value {
    let build_id: String = module.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "path": module.path.raw(), "kind": module.kind as u8, "build_id": build_id })
}

fn process_json(process: &Process) -> Value {
    json!({ "run": process.run.raw(), "pid": process.pid, "name": process.name })
}

fn thread_json(thread: &Thread) -> Value {
    let (process, root) = (thread.process.raw(), thread.root.raw());
    json!({ "process": process, "tid": thread.tid, "root": root, "name": thread.name })
}

fn source_json(source: &Source) -> Value {
    json!({ "file": source.file.raw(), "text": source.text })
}

fn function_json(function: &Function) -> Value {
    json!({
        "kind": function.kind.as_str(),
        "name": function.name.raw(),
        "linkage_name": function.linkage_name.raw(),
        "module": function.module.map(|module| module.raw()),
        "file": function.file.raw(),
        "line": function.line,
        "address": function.address,
    })
}

fn optional(&stored: &u32) -> Value {
    if stored == u32::MAX { Value::Null } else { json!(stored) }
}

fn nodes_json<S: Serializer>(to: S, nodes: &Nodes) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(4))?;
    map.serialize_entry("call_sites", &Entries(&nodes.call_sites, optional))?;
    map.serialize_entry("first", &nodes.first)?;
    map.serialize_entry("functions", &Entries(&nodes.functions, |function: &FunctionId| function.raw()))?;
    map.serialize_entry("parents", &Entries(&nodes.parents, optional))?;
    map.end()
}

fn columns_json<S: Serializer>(to: S, columns: &Columns) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(3))?;
    let all: Vec<_> = columns.columns.iter().map(ColumnJson).collect();
    map.serialize_entry("columns", &all)?;
    map.serialize_entry("count", &columns.count)?;
    map.serialize_entry("first", &columns.first)?;
    map.end()
}

struct ColumnJson<'a>(&'a (u32, Values));

impl Serialize for ColumnJson<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            (index, Values::Dense(values)) => pair(to, ("column", index), ("dense", values)),
            (index, Values::Sparse(values)) => pair(to, ("column", index), ("sparse", values)),
        }
    }
}

fn line_cost_json(cost: &LineCost) -> Value {
    json!({
        "node": cost.node.raw(), "line": cost.line.raw(), "metric": cost.metric.raw(), "cost": cost.cost,
    })
}

fn address_cost_json(cost: &AddressCost) -> Value {
    json!({
        "thread": cost.thread.raw(), "function": cost.function.raw(), "holder": cost.holder.raw(),
        "address": cost.address.0, "line": cost.line.map(|line| line.raw()), "metric": cost.metric.raw(),
        "cost": cost.cost,
    })
}

fn arc_json(arc: &Arc) -> Value {
    let costs = arc.total_costs.iter().map(|(metric, cost)| json!([metric.raw(), cost]));
    json!({
        "caller": arc.caller.raw(),
        "callee": arc.callee.raw(),
        "call_site": arc.call_site.map(|line| line.raw()),
        "calls": arc.calls,
        "total_costs": costs.collect::<Value>(),
    })
}

fn row_json<T>((node, row): &(NodeId, T), entry: impl Fn(&T) -> Value) -> Value {
    json!([node.raw(), entry(row)])
}

fn memory_json(memory: &NodeMemory) -> Value {
    json!({ "live": memory.live_bytes, "peak": memory.peak_bytes })
}

fn statistics_json(statistics: &ActivationStatistics) -> Value {
    json!({
        "timed": statistics.timed,
        "total": statistics.total,
        "least": statistics.least,
        "greatest": statistics.greatest,
        "mean": statistics.mean,
        "squares": statistics.squares,
        "calm": statistics.calm,
        "calm_total": statistics.calm_total,
    })
}

fn size_json(row: &SizeCost) -> Value {
    json!({
        "node": row.node.raw(), "bucket": row.bucket, "calls": row.calls, "total_cost": row.total_cost,
    })
}

fn point_json(point: &Point) -> Value {
    let values = point.values.iter().map(|(metric, value)| json!([metric.raw(), value]));
    json!({
        "time_ns": point.time_ns,
        "thread": point.thread.raw(),
        "node": point.node.raw(),
        "description": point.description.raw(),
        "values": values.collect::<Value>(),
    })
}

fn end_json(end: &End) -> Value {
    let totals = &end.totals;
    json!({
        "strings": totals.strings,
        "modules": totals.modules,
        "functions": totals.functions,
        "lines": totals.lines,
        "threads": totals.threads,
        "nodes": totals.nodes,
        "line_costs": totals.line_costs,
        "arcs": totals.arcs,
        "run_costs": totals.run_costs,
        "frames": end.frames.iter().map(|(kind, offset)| json!([kind, offset])).collect::<Value>(),
    })
}
