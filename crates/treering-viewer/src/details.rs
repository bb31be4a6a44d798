//! Details beside costs: statistics of calls, argument sizes, ports, memory, points.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use treering_analysis::{Detail, Details, Growth, value_at};
use treering_profile::{MetricId, Point, Ports, Profile};

use crate::columns::Columns;
use crate::functions::Functions;

/// Details of functions, and of arcs where a fit by caller says more.
pub(crate) fn details(profile: &Profile, functions: &Functions) -> Value {
    let metric = profile.activations.as_ref().map_or(MetricId::new(0), |activations| activations.metric);
    if profile.metrics.is_empty() {
        return json!([]);
    }
    let details = Details::of(profile, metric);
    let of_functions = functions.entries().iter().enumerate().filter_map(|(number, &function)| {
        details.function(function).map(|detail| object(&details, detail, number as u32, None))
    });
    let mut rows: Vec<Value> = of_functions.collect();
    for ((caller, callee), detail) in details.arcs() {
        if let (Some(caller), Some(callee)) = (functions.known(caller), functions.known(callee))
            && detail.sizes.len() > 2
        {
            rows.push(object(&details, detail, callee, Some(caller)));
        }
    }
    Value::Array(rows)
}

fn object(details: &Details, detail: &Detail, function: u32, caller: Option<u32>) -> Value {
    let statistics = Some(&detail.statistics).filter(|known| known.timed > 0).map(|known| {
        json!({
            "timed": known.timed, "mean": known.mean, "calm": known.calm,
            "calm_mean": known.calm_mean().unwrap_or(0.0), "least": known.least, "greatest": known.greatest,
            "deviation": known.variance().map(f64::sqrt),
        })
    });
    let ports = details.has_ports.then(|| {
        let ports = &detail.ports;
        json!({
            "exits": ports.exits, "redos": ports.redos, "fails": ports.fails, "exceptions": ports.exceptions,
            "cuts": ports.cuts,
        })
    });
    let sizes: Vec<Value> = detail
        .sizes
        .iter()
        .map(|size| {
            let (least, greatest) = size.sizes();
            json!({ "least": least, "greatest": greatest, "calls": size.calls, "total": size.total_cost })
        })
        .collect();
    let growth = Growth::of(&detail.sizes)
        .map(|growth| json!({ "exponent": growth.exponent, "low": growth.low, "high": growth.high }));
    json!({
        "fn": function, "caller": caller, "statistics": statistics, "ports": ports, "sizes": sizes, "growth": growth,
        "live_bytes": details.has_memory.then_some(detail.memory.live_bytes),
        "peak_bytes": details.has_memory.then_some(detail.memory.peak_bytes),
    })
}

/// The ports of functions and of arcs, by function, where the profile has them: exits, redos, fails, exceptions.
pub(crate) fn ports(profile: &Profile, functions: &Functions, columns: &mut Columns) -> Value {
    if profile.ports.is_empty() || profile.metrics.is_empty() {
        return Value::Null;
    }
    let details = Details::of(profile, MetricId::new(0));
    let of_functions = functions
        .entries()
        .iter()
        .enumerate()
        .filter_map(|(number, &function)| Some((None, number as u32, details.function(function)?.ports)));
    let of_arcs = details.arcs().filter_map(|((caller, callee), detail)| {
        Some((Some(functions.known(caller)?), functions.known(callee)?, detail.ports))
    });
    let mut rows: Vec<_> = of_functions.chain(of_arcs).collect();
    rows.sort_by_key(|&(caller, callee, _)| (caller, callee));
    let mut column = |read: &dyn Fn(&Ports) -> u64| {
        columns.add(&rows.iter().map(|(_, _, ports)| read(ports)).collect::<Vec<_>>())
    };
    let (exits, redos, fails, exceptions) = (
        column(&|ports| ports.exits),
        column(&|ports| ports.redos),
        column(&|ports| ports.fails),
        column(&|ports| ports.exceptions),
    );
    json!({
        // 0 for functions, else 1 + the caller.
        "caller": columns.add_indexes(rows.iter().map(|row| row.0.map_or(0, |caller| caller + 1))),
        "fn": columns.add_indexes(rows.iter().map(|row| row.1)),
        "exits": exits, "redos": redos, "fails": fails, "exceptions": exceptions,
    })
}

/// The points of the profile in the order of time. Each becomes JSON when it is written: there may be
/// millions.
pub(crate) struct Points<'a> {
    profile: &'a Profile,
    functions: &'a Functions,
}

impl<'a> Points<'a> {
    pub(crate) fn of(profile: &'a Profile, functions: &'a Functions) -> Self {
        Self { profile, functions }
    }

    fn json(&self, point: &Point) -> Value {
        let (profile, functions) = (self.profile, self.functions);
        let thread = &profile.threads[point.thread.index()];
        let run = profile.processes[thread.process.index()].run.index();
        let values: Vec<Value> = profile
            .metrics()
            .filter_map(|(metric, _)| {
                Some(json!({ "metric": metric.index(), "value": value_at(point, metric)? }))
            })
            .collect();
        json!({
            "run": run, "time_ns": point.time_ns, "thread": thread.name,
            "fn": functions.known(profile.tree.function(point.node)).unwrap_or(0),
            "description": &profile.strings[point.description], "values": values,
        })
    }
}

impl Serialize for Points<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let series = treering_analysis::PointSeries::of(self.profile);
        to.collect_seq(series.points.iter().map(|point| self.json(point)))
    }
}
