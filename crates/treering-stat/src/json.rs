//! JSON for programs. The keys are described in `docs/stat.md`.

use serde_json::{Value, json};
use treering_measure::Summary;

use crate::row::{Row, State};
use crate::run::{Part, Stat, Unit};

/// All runs, as one document.
pub fn json(stat: &Stat) -> Value {
    let over = |quantity: &dyn Fn(&crate::Run) -> Option<f64>| {
        stat.over_runs(quantity).map(|(summary, margin)| summary_json(&summary, margin))
    };
    let mut document = json!({
        "view": "stat",
        "command": stat.command,
        "pid": stat.pid,
        "runs": stat.runs.len(),
        "ends": stat.runs.iter().map(|run| run.end.clone()).collect::<Vec<_>>(),
        "elapsed_ns": over(&|run| Some(run.elapsed_ns)),
        "user_ns": over(&|run| run.resources.map(|of| of.user_ns)),
        "system_ns": over(&|run| run.resources.map(|of| of.system_ns)),
        "peak_bytes": over(&|run| run.resources.and_then(|of| of.peak_bytes)),
        "events": stat.rows().iter().map(event_json).collect::<Vec<_>>(),
        "metrics": metrics_json(stat),
        "parts": stat.parts.iter().map(|part| part_json(stat, part)).collect::<Vec<_>>(),
        "notes": stat.notes,
    });
    if stat.command.is_empty() {
        document["command"] = Value::Null;
    }
    document
}

/// One interval, which is the only run of `stat`.
pub fn interval_json(stat: &Stat, from_ns: f64, until_ns: f64) -> Value {
    json!({
        "view": "stat interval",
        "from_ns": whole(from_ns),
        "until_ns": whole(until_ns),
        "events": stat.rows().iter().map(event_json).collect::<Vec<_>>(),
        "metrics": metrics_json(stat),
    })
}

fn part_json(stat: &Stat, part: &Part) -> Value {
    let names = stat.events.iter().map(|event| event.name.clone());
    let counts: serde_json::Map<String, Value> =
        names.zip(part.counts.iter().map(|count| json!(count))).collect();
    json!({"pid": part.pid, "tid": part.tid, "name": part.name, "counts": counts})
}

fn metrics_json(stat: &Stat) -> Vec<Value> {
    let of = |(at, metric): (usize, &crate::MetricName)| {
        let value = stat.over_runs(|run| run.metrics.get(at).copied().flatten());
        let value = value.map(|(summary, margin)| summary_json(&summary, margin));
        json!({"metric": metric.name, "level": metric.level, "unit": "percent of slots", "value": value})
    };
    stat.metrics.iter().enumerate().map(of).collect()
}

fn event_json(row: &Row) -> Value {
    let unit = match row.unit {
        Unit::Nanoseconds => "nanoseconds",
        Unit::Count => "count",
    };
    let rate = row.rate.as_ref().map(|rate| json!({"value": rate.value, "unit": rate.unit}));
    match &row.state {
        State::Absent(absence) => json!({
            "event": row.name, "unit": unit, "state": absence.as_str(), "source": null,
            "value": null, "running": null, "rate": null, "samples": [],
        }),
        State::Counted { summary, margin, values, running, source } => json!({
            "event": row.name,
            "unit": unit,
            "state": "counted",
            "source": source.as_str(),
            "value": summary_json(summary, *margin),
            "running": running,
            "rate": rate,
            "samples": values.iter().map(|&value| whole(value)).collect::<Vec<_>>(),
        }),
    }
}

fn summary_json(summary: &Summary, margin: Option<f64>) -> Value {
    json!({
        "mean": summary.mean,
        "low": margin.map(|margin| (summary.mean - margin).max(0.0)),
        "high": margin.map(|margin| summary.mean + margin),
        "deviation": summary.deviation,
        "median": summary.median,
        "least": summary.least,
        "greatest": summary.greatest,
    })
}

fn whole(value: f64) -> u64 {
    value.round() as u64
}
