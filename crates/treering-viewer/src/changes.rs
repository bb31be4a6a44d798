//! Why a run changed, in a page that shows a difference.

use serde_json::{Value, json};
use treering_profile::{FunctionId, MetricId};

use crate::columns::Columns;
use crate::functions::Functions;

/// Why a run changed: the verdict, and the two parts of the change of every function.
#[derive(Clone, Debug)]
pub struct Changes {
    /// How much, and why, in one sentence.
    pub verdict: String,
    /// The function at which to look first.
    pub cause: Option<FunctionId>,
    /// The metric that was compared.
    pub metric: MetricId,
    /// The functions whose calls were counted in both.
    pub functions: Vec<FunctionChange>,
    /// The arcs, where calls were counted in both.
    pub arcs: Vec<ArcChange>,
}

/// Why the total cost of an arc changed, in the metric's unit. Both parts add up to the change.
#[derive(Clone, Copy, Debug)]
pub struct ArcChange {
    /// The function that calls, in the profile of the page; that of the roots where it is not known.
    pub caller: FunctionId,
    /// The function that is called.
    pub callee: FunctionId,
    /// The part that more or fewer calls make.
    pub more_calls: i64,
    /// The part that dearer or cheaper calls make.
    pub cost_per_call: i64,
}

/// How often a function was called, and why its self cost changed, in the metric's unit. Both parts add up to the change.
#[derive(Clone, Copy, Debug)]
pub struct FunctionChange {
    /// The function, in the profile of the page.
    pub function: FunctionId,
    /// The calls in the base and in the head.
    pub calls: (u64, u64),
    /// The part that more or fewer calls make.
    pub more_calls: i64,
    /// The part that dearer or cheaper calls make.
    pub cost_per_call: i64,
}

/// The verdict, for the head of the page.
pub(crate) fn verdict(changes: &Changes, functions: &Functions) -> Value {
    let cause = changes.cause.and_then(|cause| functions.known(cause));
    json!({ "text": changes.verdict, "function": cause, "metric": changes.metric.index() })
}

/// The columns of the changes, by number of a function. Negative numbers stand between the others: 0, −1, 1, −2, 2 …
pub(crate) fn columns(changes: &Changes, functions: &Functions, columns: &mut Columns) -> Value {
    let mut calls = [vec![0; functions.len()], vec![0; functions.len()]];
    let mut parts = [vec![0_i64; functions.len()], vec![0_i64; functions.len()]];
    for change in &changes.functions {
        let Some(number) = functions.known(change.function) else { continue };
        let number = number as usize;
        calls[0][number] += change.calls.0;
        calls[1][number] += change.calls.1;
        parts[0][number] += change.more_calls;
        parts[1][number] += change.cost_per_call;
    }
    let [base_calls, calls] = calls.map(|column| columns.add(&column));
    let [more_calls, cost_per_call] =
        parts.map(|column| columns.add(&column.into_iter().map(zigzag).collect::<Vec<_>>()));
    let mut arcs = [const { Vec::new() }; 4];
    for arc in &changes.arcs {
        let numbers = functions.known(arc.caller).zip(functions.known(arc.callee));
        let Some((caller, callee)) = numbers else { continue };
        let row = [caller.into(), callee.into(), zigzag(arc.more_calls), zigzag(arc.cost_per_call)];
        arcs.iter_mut().zip(row).for_each(|(column, value): (&mut Vec<u64>, u64)| column.push(value));
    }
    let [caller, callee, arc_more_calls, arc_cost_per_call] = arcs.map(|column| columns.add(&column));
    json!({
        "metric": changes.metric.index(),
        "arcs": {
            "caller": caller, "callee": callee, "moreCalls": arc_more_calls, "costPerCall": arc_cost_per_call,
        },
        "baseCalls": base_calls,
        "calls": calls,
        "moreCalls": more_calls,
        "costPerCall": cost_per_call,
    })
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}
