//! How costs grow with the size of what a program works on.
//!
//! [`growth`] takes profiles of one program at several sizes, pairs their functions and contexts, fits a model to each
//! context, and adds these up: to functions, to functions with all they call, and to the run. It then looks for the
//! function that makes the run grow as it does.

mod blocks;
mod contexts;
mod culprit;
mod curve;
mod form;
mod model;
#[cfg(test)]
mod tests;

use treering_analysis::{Basis, Measure, default_metric};
use treering_profile::{MetricId, Profile, Unit};

pub use culprit::{Culprit, FunctionPart};
pub use curve::{Curve, FORETOLD};
pub use form::Form;
pub use model::Model;

use crate::side::{basis, has_contexts};
use contexts::Contexts;
use curve::{Estimates, Fitter, Models};

/// A profile, and the size of what the program worked on.
#[derive(Clone, Copy, Debug)]
pub struct Sized<'a> {
    /// The size, 1 or more.
    pub size: f64,
    /// The profile.
    pub profile: &'a Profile,
}

/// Why nothing can be said of growth.
#[derive(Clone, Debug, PartialEq)]
pub enum NotScalable {
    /// There are too few sizes.
    TooFew(usize),
    /// A size is below 1.
    TooSmall(f64),
    /// Two profiles have the same size.
    Twice(f64),
    /// The profile of a size does not have the metric.
    NotMeasured(f64, String),
    /// Several metrics of the profile of a size are called what was asked for. All are named, with their units.
    Ambiguous(f64, Vec<String>),
    /// None of the profiles has a metric.
    NoMetric,
    /// The metric has another unit at a size.
    OtherUnit(f64, String),
    /// Profiles are sums of different numbers of runs.
    OtherRuns(f64),
}

/// With fewer sizes any form fits.
pub const LEAST_SIZES: usize = 3;

impl std::fmt::Display for NotScalable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooFew(1) => write!(f, "one size tells nothing of growth"),
            Self::TooFew(sizes) => write!(f, "{sizes} sizes tell too little of growth"),
            Self::TooSmall(size) => write!(f, "the size {size} is below 1"),
            Self::Twice(size) => write!(f, "the size {size} is there twice"),
            Self::NotMeasured(size, metric) => {
                write!(f, "the profile of size {size} does not have the metric {metric:?}")
            }
            Self::Ambiguous(size, names) => {
                write!(
                    f,
                    "the name is that of several metrics of the profile of size {size}: {}",
                    names.join(", ")
                )
            }
            Self::NoMetric => write!(f, "the profiles have no metric"),
            Self::OtherUnit(size, metric) => {
                write!(f, "{metric} has another unit in the profile of size {size}")
            }
            Self::OtherRuns(size) => {
                write!(f, "the profile of size {size} is the sum of another number of runs")
            }
        }
    }
}

impl std::error::Error for NotScalable {}

/// How the cost of a function grows.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionGrowth {
    /// Its name.
    pub name: String,
    /// The file name of its module.
    pub module: Option<String>,
    /// Spent in the function itself.
    pub self_cost: Curve,
    /// Spent in it and everything it called, recursion counted once; nothing where profiles do not know.
    pub total_cost: Option<Curve>,
    /// How often it was called, where calls were counted.
    pub calls: Option<Curve>,
}

/// How the costs of a program grow.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    /// The name of the metric.
    pub metric: String,
    /// Its unit.
    pub unit: Unit,
    /// Whether costs are counts, which two runs of a deterministic program have in common.
    pub is_exact: bool,
    /// The sizes, from the smallest.
    pub sizes: Vec<f64>,
    /// The cost of the run.
    pub run: Curve,
    /// Every function; the first one stands for the roots of threads.
    pub functions: Vec<FunctionGrowth>,
    /// The function that makes the run grow faster than n, if it does.
    pub culprit: Option<Culprit>,
}

impl Scaling {
    /// The largest size.
    pub fn largest(&self) -> f64 {
        self.sizes.last().copied().unwrap_or(1.0)
    }

    /// The size that costs are foretold for.
    pub fn foretold(&self) -> f64 {
        self.largest() * FORETOLD
    }

    /// The part of the run at the largest size.
    pub fn share(&self, curve: &Curve) -> f64 {
        let of = |curve: &Curve| curve.costs.last().map_or(0.0, |&cost| cost as f64);
        if of(&self.run) > 0.0 { of(curve) / of(&self.run) } else { 0.0 }
    }

    /// The part of the run that is foretold.
    pub fn foretold_share(&self, curve: &Curve) -> f64 {
        let at = self.foretold();
        let run = self.run.model.at(at);
        if run > 0.0 { (curve.model.at(at) / run).min(1.0) } else { 0.0 }
    }
}

/// How costs grow over profiles of several sizes, in `metric` or the first one that the largest has.
///
/// # Errors
/// When there are fewer than three sizes, or they cannot be compared.
pub fn growth(profiles: &[Sized<'_>], metric: Option<&str>) -> Result<Scaling, NotScalable> {
    let mut sorted = profiles.to_vec();
    sorted.sort_by(|a, b| a.size.total_cmp(&b.size));
    check(&sorted)?;
    let metrics = common_metric(&sorted, metric)?;
    Ok(Grower::new(&sorted, &metrics).scaling())
}

fn check(sorted: &[Sized<'_>]) -> Result<(), NotScalable> {
    if sorted.len() < LEAST_SIZES {
        return Err(NotScalable::TooFew(sorted.len()));
    }
    let smallest = sorted[0].size;
    if smallest.is_nan() || smallest < 1.0 {
        return Err(NotScalable::TooSmall(smallest));
    }
    for pair in sorted.windows(2) {
        if pair[0].size == pair[1].size {
            return Err(NotScalable::Twice(pair[0].size));
        }
        if pair[0].profile.runs.len() != pair[1].profile.runs.len() {
            return Err(NotScalable::OtherRuns(pair[1].size));
        }
    }
    Ok(())
}

/// The metric in each profile.
fn common_metric(sorted: &[Sized<'_>], wanted: Option<&str>) -> Result<Vec<MetricId>, NotScalable> {
    let largest = sorted[sorted.len() - 1].profile;
    let first = || default_metric(largest).map(|id| largest.metric_label(id).into_owned());
    let name = wanted.map(str::to_owned).or_else(first).ok_or(NotScalable::NoMetric)?;
    let mut metrics = Vec::new();
    for Sized { size, profile } in sorted {
        match profile.cost_metrics_called(&name).as_slice() {
            [] => return Err(NotScalable::NotMeasured(*size, name)),
            [found] => metrics.push(*found),
            many => {
                let labels = many.iter().map(|&id| profile.metric_label(id).into_owned());
                return Err(NotScalable::Ambiguous(*size, labels.collect()));
            }
        }
    }
    let unit = |at: usize| sorted[at].profile.metrics[metrics[at].index()].unit;
    match (0..metrics.len()).find(|&at| unit(at) != unit(metrics.len() - 1)) {
        Some(at) => Err(NotScalable::OtherUnit(sorted[at].size, name)),
        None => Ok(metrics),
    }
}

/// Curves of contexts, and of sets of them.
pub(crate) struct Grower {
    pub(crate) contexts: Contexts,
    pub(crate) fitter: Fitter,
    bases: Vec<Basis>,
    metric: (String, Unit),
    is_exact: bool,
    pub(crate) is_sampled: bool,
    pub(crate) has_calls: bool,
    pub(crate) has_contexts: bool,
    /// By context.
    models: Vec<Models>,
    /// By context: of its calls, and of recursive ones.
    call_models: Vec<[Models; 2]>,
}

/// A set of contexts, added up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    /// The contexts that make much of the run by themselves.
    large: Vec<usize>,
    costs: Vec<u64>,
    models: Models,
    calls: Vec<u64>,
    call_models: Models,
}

impl Grower {
    fn new(sorted: &[Sized<'_>], metrics: &[MetricId]) -> Self {
        let profiles: Vec<&Profile> = sorted.iter().map(|sized| sized.profile).collect();
        let bases: Vec<Basis> =
            profiles.iter().zip(metrics).map(|(profile, metric)| basis(profile, *metric)).collect();
        let contexts = Contexts::of(&profiles, metrics);
        let fitter = Fitter::new(sorted.iter().map(|sized| sized.size).collect());
        let last = &profiles[profiles.len() - 1].metrics[metrics[metrics.len() - 1].index()];
        let has_calls = profiles
            .iter()
            .zip(metrics)
            .all(|(profile, metric)| profile.tree.has_calls() && profile.has_averages_of(*metric));
        let is_sampled = bases.iter().any(|basis| basis.samples.is_some());
        let mut known = hashbrown::HashMap::new();
        let mut fit = |costs: &Vec<u64>| *known.entry(costs.clone()).or_insert_with(|| fitter.models(costs));
        let mut models: Vec<Models> = contexts.nodes.iter().map(|node| fit(&node.self_costs)).collect();
        for (function, pieces) in blocks::pieces(&profiles, &contexts.function_of) {
            let Some(only) = contexts.only_context(function) else { continue };
            // Code that other functions were inlined into, or that has another metric, has other sums.
            let sums = pieces.values().fold(vec![0; profiles.len()], |mut sums: Vec<u64>, piece| {
                sums.iter_mut().zip(piece).for_each(|(sum, cost)| *sum += cost);
                sums
            });
            if sums == contexts.nodes[only].self_costs {
                models[only] = pieces.values().fold(Models::default(), |mut sum, piece| {
                    sum.add(&fit(piece));
                    sum
                });
            }
        }
        let call_models =
            contexts.nodes.iter().map(|node| [fit(&node.calls), fit(&node.recursive_calls)]).collect();
        Self {
            fitter,
            has_contexts: profiles
                .iter()
                .zip(metrics)
                .all(|(profile, metric)| has_contexts(profile, *metric)),
            is_exact: !is_sampled && has_calls && last.unit != Unit::Nanoseconds,
            metric: (last.name.clone(), last.unit),
            contexts,
            bases,
            is_sampled,
            has_calls,
            models,
            call_models,
        }
    }

    fn scaling(self) -> Scaling {
        let all = self.contexts.functions.len();
        let totals = self.totals();
        let mut own = vec![Sum::default(); all];
        let mut with_callees = vec![Sum::default(); all];
        for (at, node) in self.contexts.nodes.iter().enumerate() {
            own[node.function].add(&self.own(at, true));
            // No function is twice in a chain, so that nothing is added twice.
            with_callees[node.function].add(&totals[at]);
        }
        let functions = (0..all).map(|function| {
            let named = &self.contexts.functions[function];
            FunctionGrowth {
                name: named.name.clone(),
                module: named.module.clone(),
                self_cost: self.curve(&own[function]),
                total_cost: self.has_contexts.then(|| self.curve(&with_callees[function])),
                calls: self.calls(&own[function]),
            }
        });
        let functions: Vec<FunctionGrowth> = functions.collect();
        let run = self.curve(&totals[0]);
        let culprit = culprit::find(&self, &run, &functions, &totals);
        Scaling {
            metric: self.metric.0,
            unit: self.metric.1,
            is_exact: self.is_exact,
            sizes: self.fitter.sizes.sizes,
            run,
            functions,
            culprit,
        }
    }

    /// One context by itself, with its recursive calls or without.
    pub(crate) fn own(&self, at: usize, with_recursive: bool) -> Sum {
        let node = &self.contexts.nodes[at];
        let [outer, recursive] = &self.call_models[at];
        let (mut calls, mut call_models) = (node.calls.clone(), *outer);
        if with_recursive {
            calls.iter_mut().zip(&node.recursive_calls).for_each(|(calls, more)| *calls += more);
            call_models.add(recursive);
        }
        let is_large = self.is_sampled && self.share(&node.self_costs) >= LARGE;
        let large = if is_large { vec![at] } else { Vec::new() };
        Sum { large, costs: node.self_costs.clone(), models: self.models[at], calls, call_models }
    }

    /// By context, it and all below it.
    fn totals(&self) -> Vec<Sum> {
        let mut totals: Vec<Sum> = (0..self.contexts.nodes.len()).map(|at| self.own(at, false)).collect();
        for at in (1..totals.len()).rev() {
            let Some(parent) = self.contexts.nodes[at].parent else { continue };
            let (callers, callees) = totals.split_at_mut(at);
            let (sum, added) = (&mut callers[parent], &callees[0]);
            sum.costs.iter_mut().zip(&added.costs).for_each(|(sum, added)| *sum += added);
            sum.models.add(&added.models);
            sum.large.extend(&added.large);
        }
        totals
    }

    /// The curve of a set of contexts.
    ///
    /// Few samples fit any form: of sampled costs, contexts that make little of the run are fitted together.
    pub(crate) fn curve(&self, sum: &Sum) -> Curve {
        /// Less of the run is in no table.
        const SHOWN: f64 = 0.001;
        if !self.is_sampled {
            return self.fitter.curve(sum.costs.clone(), &sum.models);
        }
        let mut rest = sum.costs.clone();
        let mut parts = Vec::new();
        for &at in &sum.large {
            let costs = &self.contexts.nodes[at].self_costs;
            rest.iter_mut().zip(costs).for_each(|(rest, cost)| *rest = rest.saturating_sub(*cost));
            parts.push(self.estimates(costs));
        }
        parts.push(self.estimates(&rest));
        let is_shown = self.share(&sum.costs) >= SHOWN;
        self.fitter.estimated(sum.costs.clone(), &self.estimates(&sum.costs).errors, &parts, is_shown)
    }

    /// The part of the run at the largest size.
    fn share(&self, costs: &[u64]) -> f64 {
        let last = costs.len().saturating_sub(1);
        costs.last().map_or(0.0, |&cost| self.bases[last].share(cost))
    }

    pub(crate) fn calls(&self, sum: &Sum) -> Option<Curve> {
        self.has_calls.then(|| self.fitter.curve(sum.calls.clone(), &sum.call_models))
    }

    /// Sampled costs with their standard errors.
    fn estimates(&self, costs: &[u64]) -> Estimates {
        /// Two runs of one program differ by that at least.
        const BETWEEN_RUNS: f64 = 0.01;
        const Z95: f64 = 1.959_963_984_540_054;
        let error = |(at, &cost): (usize, &u64)| {
            let basis = &self.bases[at];
            let interval = basis.interval(alike(basis, cost));
            let by_chance = interval.map_or(0.0, |interval| (interval.high - interval.low) / (2.0 * Z95));
            (by_chance * basis.run.cost as f64).hypot(BETWEEN_RUNS * cost as f64)
        };
        let errors = costs.iter().enumerate().map(error).collect();
        Estimates { costs: costs.iter().map(|&cost| cost as f64).collect(), errors }
    }
}

/// A cost with as many samples as such a part of the run usually has.
fn alike(basis: &Basis, cost: u64) -> Measure {
    let share = basis.share(cost);
    let part = |whole: u64| (whole as f64 * share).round() as u64;
    Measure {
        cost,
        samples: part(basis.run.samples),
        squares: part(basis.run.squares),
        unseen: part(basis.run.unseen),
    }
}

/// Sampled contexts that make this part of the run are fitted one by one.
const LARGE: f64 = 0.02;

impl Sum {
    pub(crate) fn add(&mut self, other: &Self) {
        self.large.extend(&other.large);
        for (sum, added) in [(&mut self.costs, &other.costs), (&mut self.calls, &other.calls)] {
            sum.resize(added.len(), 0);
            sum.iter_mut().zip(added).for_each(|(sum, added)| *sum += added);
        }
        self.models.add(&other.models);
        self.call_models.add(&other.call_models);
    }
}
