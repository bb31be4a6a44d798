//! The function that makes a run grow as it does.

use hashbrown::HashMap;

use super::curve::Curve;
use super::form::Form;
use super::model::Model;
use super::{FunctionGrowth, Grower, Sum};

/// A function within the culprit and what it calls, or elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionPart {
    /// The function, as an index of [`Scaling::functions`](super::Scaling::functions).
    pub function: usize,
    /// Spent in it there.
    pub self_cost: Curve,
    /// How often it was called there, where calls were counted.
    pub calls: Option<Curve>,
}

/// The function that makes the run grow faster than n.
#[derive(Clone, Debug, PartialEq)]
pub struct Culprit {
    /// The function, as an index of [`Scaling::functions`](super::Scaling::functions).
    pub function: usize,
    /// It and everything it called.
    pub total_cost: Curve,
    /// How the number of calls grows, and what one costs, where calls were counted. Recursive calls are part of what a
    /// call costs.
    pub calls: Option<(Curve, Form)>,
    /// The chain of callers that most of its growth comes from, from the first one to itself.
    pub chain: Vec<usize>,
    /// It and the functions below it, from the one that is foretold to cost most; itself first.
    pub parts: Vec<FunctionPart>,
    /// All other parts of the run, from the one that is foretold to cost most.
    pub elsewhere: Vec<FunctionPart>,
}

/// Where calls were counted: a function is looked into if another one below it explains this part of its growth.
const EXPLAINED: f64 = 0.5;
/// Where they were not, nothing tells a callee that is called too often from one that is slow.
const EXPLAINED_WITHOUT_CALLS: f64 = 0.9;
/// A culprit makes this part of the run that is foretold.
const LEAST_SHARE: f64 = 0.1;

/// The function that makes a run grow faster than n: of those with all they call that grow as fast as the run, and of
/// which each call costs more at larger sizes, one that calls no other such function to which it owes half its growth.
pub(super) fn find(
    grower: &Grower,
    run: &Curve,
    functions: &[FunctionGrowth],
    totals: &[Sum],
) -> Option<Culprit> {
    if run.form <= Form::LINEAR || !grower.has_contexts {
        return None;
    }
    let foretold = grower.fitter.foretold();
    let least = run.model.at(foretold) * LEAST_SHARE;
    let outer = outer_calls(grower);
    let total = |function: usize| functions[function].total_cost.as_ref();
    let per_call = |function: usize| Some(total(function)?.form.per(outer[function].as_ref()?.form));
    let grows = |function: usize| {
        let fast =
            total(function).is_some_and(|total| total.form >= run.form && total.model.at(foretold) >= least);
        fast && per_call(function).is_none_or(|form| form > Form::CONSTANT)
    };
    let candidates: Vec<bool> =
        (0..functions.len()).map(|function| function > 0 && grows(function)).collect();
    let cost = |function: usize| total(function).map_or(0.0, |total| total.model.at(foretold));
    let explained = if grower.has_calls { EXPLAINED } else { EXPLAINED_WITHOUT_CALLS };
    let growing = growing(grower, run, functions, totals);
    let within = within(grower, &candidates, &growing);
    let is_explained = |function: usize| {
        let mut below =
            within.iter().filter(|((above, callee), _)| *above == function && *callee != function);
        let all = within.get(&(function, function)).copied().unwrap_or(0.0);
        below.any(|(_, &part)| part >= explained * all)
    };
    let left = (0..functions.len()).filter(|&function| candidates[function] && !is_explained(function));
    let function = left.max_by(|&a, &b| cost(a).total_cmp(&cost(b)).then_with(|| b.cmp(&a)))?;
    let (parts, elsewhere) = parts(grower, function);
    Some(Culprit {
        function,
        total_cost: total(function)?.clone(),
        calls: outer[function].clone().zip(per_call(function)),
        chain: chain(grower, function, &growing, totals),
        parts,
        elsewhere,
    })
}

/// By function, calls that are not recursive.
fn outer_calls(grower: &Grower) -> Vec<Option<Curve>> {
    let mut sums = vec![Sum::default(); grower.contexts.functions.len()];
    for (at, node) in grower.contexts.nodes.iter().enumerate() {
        sums[node.function].add(&grower.own(at, false));
    }
    sums.iter().map(|sum| grower.calls(sum)).collect()
}

/// By context, the cost that is foretold of it with all it calls, and that grows as fast as the run. Contexts of samples are
/// too small to be fitted: there, that of a function is divided as the cost at the largest size is.
fn growing(grower: &Grower, run: &Curve, functions: &[FunctionGrowth], totals: &[Sum]) -> Vec<f64> {
    let foretold = grower.fitter.foretold();
    let fast = |model: &Model| -> f64 {
        let terms = model.terms().filter(|(form, _)| *form >= run.form);
        terms.map(|(form, coefficient)| coefficient * form.at(foretold)).sum()
    };
    let last = |costs: &[u64]| costs.last().map_or(0.0, |&cost| cost as f64);
    let contexts = grower.contexts.nodes.iter().zip(totals);
    let cost = contexts.map(|(node, total)| match &functions[node.function].total_cost {
        Some(whole) if grower.is_sampled && last(&whole.costs) > 0.0 => {
            fast(&whole.model) * last(&total.costs) / last(&whole.costs)
        }
        _ => fast(&total.models.all),
    });
    cost.collect()
}

/// By candidate and candidate below it, or itself, the cost of the latter there that grows.
fn within(grower: &Grower, candidates: &[bool], growing: &[f64]) -> HashMap<(usize, usize), f64> {
    let mut within = HashMap::new();
    for (at, node) in grower.contexts.nodes.iter().enumerate().filter(|(_, node)| candidates[node.function]) {
        for above in grower.contexts.chain(at) {
            let above = grower.contexts.nodes[above].function;
            if candidates[above] {
                *within.entry((above, node.function)).or_insert(0.0) += growing[at];
            }
        }
    }
    within
}

/// The chain of callers of the context in which a function grows most, or else costs most.
fn chain(grower: &Grower, function: usize, growing: &[f64], totals: &[Sum]) -> Vec<usize> {
    let nodes = &grower.contexts.nodes;
    let last = |at: usize| totals[at].costs.last().copied();
    let own = (0..nodes.len()).filter(|&at| nodes[at].function == function);
    let order = |&a: &usize, &b: &usize| {
        growing[a].total_cmp(&growing[b]).then_with(|| last(a).cmp(&last(b))).then_with(|| b.cmp(&a))
    };
    let Some(most) = own.max_by(order) else { return Vec::new() };
    let mut chain: Vec<usize> =
        grower.contexts.chain(most).map(|at| nodes[at].function).filter(|&of| of > 0).collect();
    chain.reverse();
    chain
}

/// The functions within `culprit` and what it calls, and all others.
fn parts(grower: &Grower, culprit: usize) -> (Vec<FunctionPart>, Vec<FunctionPart>) {
    let nodes = &grower.contexts.nodes;
    let mut is_within = vec![false; nodes.len()];
    let mut sums: [HashMap<usize, Sum>; 2] = Default::default();
    for (at, node) in nodes.iter().enumerate() {
        is_within[at] = node.function == culprit || node.parent.is_some_and(|parent| is_within[parent]);
        let sum = sums[usize::from(is_within[at])].entry(node.function).or_default();
        sum.add(&grower.own(at, true));
    }
    let [elsewhere, within] = sums.map(|sums| {
        let parts = sums.into_iter().map(|(function, sum)| FunctionPart {
            function,
            self_cost: grower.curve(&sum),
            calls: grower.calls(&sum),
        });
        let mut parts: Vec<FunctionPart> =
            parts.filter(|part| part.self_cost.costs.iter().any(|&cost| cost > 0)).collect();
        let cost = |part: &FunctionPart| part.self_cost.model.at(grower.fitter.foretold());
        parts.sort_by(|a, b| {
            let first = |part: &FunctionPart| part.function != culprit;
            first(a)
                .cmp(&first(b))
                .then_with(|| cost(b).total_cmp(&cost(a)))
                .then_with(|| a.function.cmp(&b.function))
        });
        parts
    });
    (within, elsewhere)
}
