//! A comparison as JSON. The keys are described in `docs/json.md`.

use serde_json::{Value, json};
use treering_measure::{Estimate, Sample, Summary};
use treering_report::difference_json;

use super::Comparison;
use super::exact::Exact;
use super::timed::Timed;
use super::verdict::{Verdict, exact_change, exact_outcome, exact_text, time_text};

/// Everything, the samples too.
pub(super) fn json(comparison: &Comparison, verdict: &Verdict, status: u8) -> String {
    let document = json!({
        "view": "compare",
        "verdict": {"outcome": verdict.outcome.as_str(), "text": verdict.text, "disagreement": verdict.disagrees},
        "commands": {"base": comparison.commands.base, "head": comparison.commands.head},
        "exact": comparison.exact.as_ref().map(exact),
        "time": comparison.timed.as_ref().map(|timed| time(timed, verdict)),
        "limit": comparison.limit,
        "exit": status,
    });
    format!("{document:#}\n")
}

fn exact(exact: &Exact) -> Value {
    let difference: Value =
        serde_json::from_str(&difference_json(&exact.difference, false)).unwrap_or_default();
    let apart = exact.difference.apart.functions.iter().map(|&(group, change)| {
        let group = &exact.difference.pairing.groups[group];
        json!({"function": group.name, "module": group.module, "self_change": number(change)})
    });
    json!({
        "outcome": exact_outcome(exact).as_str(),
        "text": exact_text(exact),
        "change": exact_change(exact),
        "difference": difference,
        "control": {
            "runs": exact.runs,
            "functions": exact.difference.apart.differing,
            "moved": exact.difference.apart.moved.min(u128::from(u64::MAX)) as u64,
            "output_varies": exact.output_varies,
        },
        "held": exact.held,
        "paths_differ": exact.paths_differ,
        "not_counted": exact.not_counted,
        "moved": exact.moved,
        "other_compiler": exact.compilers.as_ref().map(|of| json!({"base": of.base, "head": of.head})),
        "set_apart": apart.collect::<Vec<_>>(),
    })
}

fn number(change: i128) -> i64 {
    i64::try_from(change).unwrap_or(if change < 0 { i64::MIN } else { i64::MAX })
}

fn time(timed: &Timed, verdict: &Verdict) -> Value {
    json!({
        "outcome": verdict.time_outcome(timed).as_str(),
        "text": time_text(timed),
        "metric": "cpu-time",
        "change": timed.change.change,
        "change_low": timed.change.low,
        "change_high": timed.change.high,
        "floor": timed.floor,
        "rounds": timed.samples.base.len(),
        "rounds_to_settle": timed.judgement.rounds_to_settle,
        "control": timed.control.as_ref().map(estimate),
        "cpu_ns": {"base": times(&timed.cpu.base), "head": times(&timed.cpu.head)},
        "wall_ns": {"base": times(&timed.wall.base), "head": times(&timed.wall.head)},
        "wall": timed.wall_change.as_ref().map(estimate),
        "peak_bytes": {"base": timed.memory.base.median as u64, "head": timed.memory.head.median as u64},
        "output_varies": timed.output_varies,
        "samples": {
            "base": samples(&timed.samples.base),
            "base_again": samples(&timed.again),
            "head": samples(&timed.samples.head),
        },
    })
}

fn estimate(estimate: &Estimate) -> Value {
    json!({"change": estimate.change, "change_low": estimate.low, "change_high": estimate.high})
}

fn times(summary: &Summary) -> Value {
    let nanoseconds = |seconds: f64| (seconds * 1e9).round() as u64;
    json!({
        "median": nanoseconds(summary.median),
        "mean": nanoseconds(summary.mean),
        "deviation": summary.deviation.map(nanoseconds),
        "least": nanoseconds(summary.least),
        "greatest": nanoseconds(summary.greatest),
    })
}

fn samples(samples: &[Sample]) -> Vec<Value> {
    let nanoseconds = |time: std::time::Duration| time.as_nanos() as u64;
    let of = |sample: &Sample| {
        json!({
            "wall_ns": nanoseconds(sample.wall),
            "user_ns": nanoseconds(sample.user),
            "system_ns": nanoseconds(sample.system),
            "peak_bytes": sample.peak_bytes,
        })
    };
    samples.iter().map(of).collect()
}
