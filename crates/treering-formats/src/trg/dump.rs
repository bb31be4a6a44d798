//! Shows what the frames of a file hold.

mod code;

use serde_json::{Value, json};
use treering_profile::{
    ActivationStatistics, AddressCost, Arc, Function, Line, LineCost, Module, NodeId, Point, SizeCost,
};

use crate::trg::content::{Columns, Content, End, Nodes, Table, VERSION, Values};
use crate::trg::frame::{MAJOR, read_header};
use crate::trg::scan::{Frames, Unpacker};
use crate::trg::{Kind, Loss, RawFrame, ReadError};

/// A frame of a file, or a damaged part of it, as JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameDump {
    /// What there is to see: `kind`, `offset`, lengths, `crc_ok` and the decoded `content`; for a
    /// damaged part `damage`.
    pub json: Value,
    /// What is wrong with it, if anything.
    pub loss: Option<Loss>,
}

/// The file header and every frame in order; a damaged frame does not end it.
///
/// # Errors
/// When it is not a `.trg` file, or one of a newer major version.
pub fn dump(bytes: &[u8]) -> Result<impl Iterator<Item = FrameDump> + '_, ReadError> {
    let minor = read_header(bytes)?;
    let header = json!({ "kind": "HEADER", "offset": 0, "major": MAJOR, "minor": minor });
    let header = FrameDump { json: header, loss: None };
    let mut unpacker = Unpacker::new();
    let frames = Frames::new(bytes).map(move |frame| match frame {
        Ok(frame) => dump_frame(&frame, &mut unpacker),
        Err(loss) => dump_loss(loss),
    });
    Ok(std::iter::once(header).chain(frames))
}

fn dump_frame(frame: &RawFrame<'_>, unpacker: &mut Unpacker) -> FrameDump {
    let kind = Kind::from_number(frame.kind);
    let mut json = json!({
        "kind": kind.map_or_else(|| json!(frame.kind), |kind| json!(kind.as_str())),
        "version": frame.version,
        "offset": frame.offset,
        "raw_length": frame.raw_length,
        "stored_length": frame.stored.len(),
        "crc_ok": true,
    });
    let known = kind.filter(|_| frame.version <= VERSION);
    let content = known.map(|kind| Content::decode(kind, unpacker.unpack(frame)?)).transpose();
    let loss = match content {
        Ok(content) => {
            json["content"] = content.as_ref().map_or(Value::Null, content_json);
            None
        }
        Err(damage) => {
            json["damage"] = json!(damage.to_string());
            Some(frame.loss(damage))
        }
    };
    FrameDump { json, loss }
}

fn dump_loss(loss: Loss) -> FrameDump {
    let kind = loss.kind.and_then(Kind::from_number).map(Kind::as_str);
    let json = json!({
        "kind": kind.map_or_else(|| json!(loss.kind), |kind| json!(kind)),
        "offset": loss.offset,
        "skipped": loss.length,
        "crc_ok": false,
        "damage": loss.damage.to_string(),
    });
    FrameDump { json, loss: Some(loss) }
}

fn content_json(content: &Content) -> Value {
    match content {
        Content::Meta(meta) => json!(meta),
        Content::Strings(table) => table_json(table, |text| json!(text)),
        Content::Modules(table) => table_json(table, module_json),
        Content::Functions(table) => table_json(table, function_json),
        Content::Lines(table) => table_json(table, |line: &Line| json!([line.file.raw(), line.line])),
        Content::Processes(table) => table_json(
            table,
            |process| json!({ "run": process.run.raw(), "pid": process.pid, "name": process.name }),
        ),
        Content::Threads(table) => table_json(table, |thread| {
            let (process, root) = (thread.process.raw(), thread.root.raw());
            json!({ "process": process, "tid": thread.tid, "root": root, "name": thread.name })
        }),
        Content::Nodes(nodes) => nodes_json(nodes),
        Content::Costs(columns) | Content::Calls(columns) => columns_json(columns),
        Content::LineCosts(costs) => costs.iter().map(line_cost_json).collect(),
        Content::AddressCosts(costs) => costs.iter().map(address_cost_json).collect(),
        Content::Arcs(arcs) => arcs.iter().map(arc_json).collect(),
        Content::Sources(sources) => {
            sources.iter().map(|source| json!({ "file": source.file.raw(), "text": source.text })).collect()
        }
        Content::Statistics(stated) => {
            json!({ "metric": stated.metric.raw(), "nodes": rows_json(&stated.rows, statistics_json) })
        }
        Content::Ports(rows) => rows_json(rows, |ports| json!(ports.counts())),
        Content::Sizes(stated) => {
            let rows: Value = stated.rows.iter().map(size_json).collect();
            json!({ "metric": stated.metric.raw(), "rows": rows })
        }
        Content::Points(points) => points.iter().map(point_json).collect(),
        Content::Memory(rows) => {
            rows_json(rows, |memory| json!({ "live": memory.live_bytes, "peak": memory.peak_bytes }))
        }
        Content::Code(part) => code::code_json(part),
        Content::End(end) => end_json(end),
    }
}

fn table_json<T>(table: &Table<T>, entry: impl Fn(&T) -> Value) -> Value {
    json!({ "first": table.first, "entries": table.entries.iter().map(entry).collect::<Value>() })
}

fn module_json(module: &Module) -> Value {
    let build_id: String = module.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "path": module.path.raw(), "kind": module.kind as u8, "build_id": build_id })
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

fn optional(stored: u32) -> Value {
    if stored == u32::MAX { Value::Null } else { json!(stored) }
}

fn nodes_json(nodes: &Nodes) -> Value {
    json!({
        "first": nodes.first,
        "parents": nodes.parents.iter().map(|&parent| optional(parent)).collect::<Value>(),
        "functions": nodes.functions.iter().map(|function| json!(function.raw())).collect::<Value>(),
        "call_sites": nodes.call_sites.iter().map(|&line| optional(line)).collect::<Value>(),
    })
}

fn columns_json(columns: &Columns) -> Value {
    let column = |(index, values): &(u32, Values)| match values {
        Values::Dense(values) => json!({ "column": index, "dense": values }),
        Values::Sparse(values) => json!({ "column": index, "sparse": values }),
    };
    let all: Value = columns.columns.iter().map(column).collect();
    json!({ "first": columns.first, "count": columns.count, "columns": all })
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

fn rows_json<T>(rows: &[(NodeId, T)], entry: impl Fn(&T) -> Value) -> Value {
    rows.iter().map(|(node, row)| json!([node.raw(), entry(row)])).collect()
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
