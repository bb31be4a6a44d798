//! The flat profile for spreadsheets, as comma-separated values (RFC 4180).

use std::borrow::Cow;

use treering_analysis::{CallGraph, FunctionCost, Interval, SortKey, flat, function_name};
use treering_profile::{Profile, Unit};

/// How a file of ours begins.
pub(crate) const CSV_START: &str = "function,module,file,line,calls,recursive calls,cycle,";

/// Writes the flat profile of one metric: a header that names the unit, then a row for each function, by self cost.
///
/// Costs are whole numbers in the metric's unit. A field is empty if it was not measured: calls of samples, totals of
/// arcs, intervals of exact costs. Names that a spreadsheet would take for a formula get an apostrophe.
///
/// # Panics
/// Never: the text is written to memory.
pub fn flat_csv(profile: &Profile, graph: &CallGraph) -> String {
    let metric = &profile.metrics[graph.basis.metric.index()];
    let unit = match metric.unit {
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
        _ => "count",
    };
    let cost = format!("{} ({unit})", metric.name);
    let known = CSV_START.split(',').filter(|name| !name.is_empty());
    let costs = ["self", "self low", "self high", "total", "total low", "total high"];
    let header = known.map(str::to_owned).chain(costs.map(|name| format!("{name} {cost}")));
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    writer.write_record(header).expect("memory takes everything");
    for row in flat(profile, graph, SortKey::SelfCost) {
        writer.write_record(fields(profile, graph, row.cost)).expect("all rows have as many fields");
    }
    let bytes = writer.into_inner().expect("memory takes everything");
    String::from_utf8(bytes).expect("all fields are text")
}

fn fields(profile: &Profile, graph: &CallGraph, cost: &FunctionCost) -> [String; 13] {
    let entry = &profile.functions[cost.function];
    let module = entry.module.map_or("", |module| &profile.strings[profile.modules[module].path]);
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    let bounds =
        |interval: Option<Interval>| interval.map(|interval| interval.of_cost(graph.basis.run.cost)).unzip();
    let (self_low, self_high) = bounds(cost.self_interval);
    let (total_low, total_high) = bounds(cost.total_interval);
    [
        inert(&function_name(profile, cost.function)).into_owned(),
        inert(module).into_owned(),
        inert(&profile.strings[entry.file]).into_owned(),
        number(Some(u64::from(entry.line)).filter(|&line| line > 0)),
        number(cost.calls.map(|calls| calls.all)),
        number(cost.calls.map(|calls| calls.recursive)),
        number(cost.cycle.map(|cycle| cycle as u64 + 1)),
        number(Some(cost.self_cost.cost)),
        number(self_low),
        number(self_high),
        number(graph.totals.is_known().then_some(cost.total_cost.cost)),
        number(total_low.filter(|_| graph.totals.is_known())),
        number(total_high.filter(|_| graph.totals.is_known())),
    ]
}

/// A text that no spreadsheet takes for a formula: OWASP, "CSV Injection".
fn inert(text: &str) -> Cow<'_, str> {
    match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => format!("'{text}").into(),
        false => text.into(),
    }
}
