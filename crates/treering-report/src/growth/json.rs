//! Growth as JSON, for programs. The keys are described in `docs/json.md`.

use serde::Serialize;
use treering_compare::{Curve, FunctionGrowth, Scaling};

use super::{GrowthView, growth_verdict};

#[derive(Serialize)]
struct Document<'a> {
    view: &'static str,
    verdict: VerdictObject<'a>,
    parameter: &'a str,
    sizes: &'a [f64],
    foretold_size: f64,
    metric: &'a str,
    exact: bool,
    notes: &'a [String],
    run: CurveObject,
    functions: Vec<FunctionObject<'a>>,
}

#[derive(Serialize)]
struct VerdictObject<'a> {
    text: String,
    growth: String,
    function: Option<&'a str>,
    calls_growth: Option<String>,
    cost_per_call_growth: Option<String>,
    share: Option<f64>,
    foretold_share: Option<f64>,
    callers: Option<Vec<&'a str>>,
    functions_within: Option<Vec<&'a str>>,
}

#[derive(Serialize)]
struct FunctionObject<'a> {
    function: &'a str,
    module: Option<&'a str>,
    share: f64,
    foretold_share: f64,
    self_cost: CurveObject,
    total_cost: Option<CurveObject>,
    calls: Option<CurveObject>,
}

#[derive(Serialize)]
struct CurveObject {
    values: Vec<u64>,
    growth: String,
    outgrown: bool,
    settled: bool,
    slope: Option<f64>,
    slope_low: Option<f64>,
    slope_high: Option<f64>,
    terms: Vec<TermObject>,
    foretold: f64,
}

#[derive(Serialize)]
struct TermObject {
    form: String,
    coefficient: f64,
}

/// Growth as JSON.
///
/// # Panics
/// Never: texts and numbers can always be written.
pub fn growth_json(scaling: &Scaling, view: GrowthView<'_>) -> String {
    let parameter = view.parameter;
    let curve = |curve: &Curve| curve_object(scaling, curve, parameter);
    let mut functions: Vec<&FunctionGrowth> = scaling.functions.iter().collect();
    functions.retain(|function| {
        let calls = function.calls.iter().flat_map(|calls| &calls.costs);
        function.self_cost.costs.iter().chain(calls).any(|&value| value > 0)
    });
    let cost = |function: &FunctionGrowth| function.self_cost.model.at(scaling.foretold());
    functions.sort_by(|a, b| cost(b).total_cmp(&cost(a)));
    let functions = functions.into_iter().map(|function| FunctionObject {
        function: &function.name,
        module: function.module.as_deref(),
        share: scaling.share(&function.self_cost),
        foretold_share: scaling.foretold_share(&function.self_cost),
        self_cost: curve(&function.self_cost),
        total_cost: function.total_cost.as_ref().map(curve),
        calls: function.calls.as_ref().map(curve),
    });
    let document = Document {
        view: "growth",
        verdict: verdict(scaling, parameter),
        parameter,
        sizes: &scaling.sizes,
        foretold_size: scaling.foretold(),
        metric: &scaling.metric,
        exact: scaling.is_exact,
        notes: view.notes,
        run: curve(&scaling.run),
        functions: functions.collect(),
    };
    serde_json::to_string_pretty(&document).expect("texts and numbers can be written") + "\n"
}

fn verdict<'a>(scaling: &'a Scaling, parameter: &str) -> VerdictObject<'a> {
    let (cause, share) = growth_verdict(scaling, parameter);
    let culprit = scaling.culprit.as_ref();
    let name = |function: usize| scaling.functions[function].name.as_str();
    let calls = culprit.and_then(|culprit| culprit.calls.as_ref());
    VerdictObject {
        text: format!("{cause}; {share}"),
        growth: scaling.run.form.text(parameter),
        function: culprit.map(|culprit| name(culprit.function)),
        calls_growth: calls.map(|(calls, _)| calls.form.text(parameter)),
        cost_per_call_growth: calls.map(|(_, per_call)| per_call.text(parameter)),
        share: culprit.map(|culprit| scaling.share(&culprit.total_cost)),
        foretold_share: culprit.map(|culprit| scaling.foretold_share(&culprit.total_cost)),
        callers: culprit
            .map(|culprit| culprit.chain.iter().rev().skip(1).rev().map(|&at| name(at)).collect()),
        functions_within: culprit
            .map(|culprit| culprit.parts.iter().map(|part| name(part.function)).collect()),
    }
}

fn curve_object(scaling: &Scaling, curve: &Curve, parameter: &str) -> CurveObject {
    CurveObject {
        values: curve.costs.clone(),
        growth: curve.form.text(parameter),
        outgrown: curve.outgrows(),
        settled: curve.is_settled,
        slope: curve.slope,
        slope_low: curve.slope_interval.map(|interval| interval.0),
        slope_high: curve.slope_interval.map(|interval| interval.1),
        terms: curve
            .model
            .terms()
            .map(|(form, coefficient)| TermObject { form: form.text(parameter), coefficient })
            .collect(),
        foretold: curve.model.at(scaling.foretold()),
    }
}
