//! The base of percentages.

use std::collections::BTreeSet;

use treering_profile::{CallBias, MetricId, Profile, RunId, Thread, Weights};

use crate::interval::{Interval, student, wilson};
use crate::measure::{Columns, Measure, samples_metric};
use crate::selection::Selection;

/// The base of percentages: the cost of the whole run in one metric, before anything was
/// selected, and the samples it was estimated from.
#[derive(Clone, Debug, PartialEq)]
pub struct Basis {
    /// The metric.
    pub metric: MetricId,
    /// The metric that counts its samples, if it is sampled.
    pub samples: Option<MetricId>,
    /// The run cost: the sum of all self costs.
    pub run: Measure,
    /// The same for each run of a merged profile, by run index; none for a part that does not have all of them, and
    /// where runs were added up.
    pub runs: Vec<Measure>,
    /// The correction of the costs, if there was one.
    pub correction: Option<Correction>,
    /// The weights of its samples, where they differ.
    pub weights: Option<Weights>,
}

/// The cost of measuring the calls of a run, and the bias that was assumed for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correction {
    /// The run cost as it was measured.
    pub raw_cost: u64,
    /// The cost taken away from it.
    pub removed: u64,
    /// The cost of measuring one call.
    pub bias: CallBias,
}

/// How many runs it takes to tell how much they differ.
pub const RUNS_FOR_SPREAD: usize = 3;

impl Basis {
    /// The basis of a profile in one metric.
    pub fn of(profile: &Profile, metric: MetricId) -> Self {
        let samples = samples_metric(profile, metric);
        let columns = Columns::of(profile, metric, samples);
        let mut runs = vec![Measure::default(); profile.runs.len()];
        for (node, run) in profile.tree.nodes().zip(node_runs(profile)) {
            runs[run.index()] += columns.self_cost(node);
        }
        let run = runs.iter().copied().sum();
        if !profile.has_runs_apart() {
            runs.clear();
        }
        let weights = profile.metrics[metric.index()].weights().cloned();
        Self { metric, samples, run, runs, correction: None, weights }
    }

    /// The basis of a part. Runs of which it has no thread do not tell how much runs differ.
    #[must_use]
    pub fn of_part(mut self, profile: &Profile, selection: &Selection) -> Self {
        let Some(kept) = &selection.threads else { return self };
        let run = |thread: &Thread| profile.processes[thread.process.index()].run;
        let kept = profile.threads.iter().zip(kept).filter(|(_, kept)| **kept).map(|(thread, _)| run(thread));
        if kept.collect::<BTreeSet<_>>().len() < profile.runs.len() {
            self.runs.clear();
        }
        self
    }

    /// The part of the run cost, 0..=1; 0 for an empty run.
    pub fn share(&self, cost: u64) -> f64 {
        if self.run.cost == 0 { 0.0 } else { cost as f64 / self.run.cost as f64 }
    }

    /// The 95 % interval of a share estimated from samples; nothing for exact metrics.
    ///
    /// Where samples weigh differently, the variance of a cost is the sum of its squared weights
    /// (Horvitz and Thompson, "A generalization of sampling without replacement", 1952), less the part
    /// that a share of the whole cannot vary, or plus the variance of the whole where that is not known.
    /// The interval is that of the number of equal samples with the same variance. Costs into which no
    /// sample of the run could fall widen it: all of them may belong to this function, or none.
    pub fn interval(&self, measure: Measure) -> Option<Interval> {
        self.samples?;
        let share = self.share(measure.cost);
        let Some(weights) = &self.weights else { return wilson(share, self.run.samples as f64) };
        let chance = wilson(share, self.equal_samples(measure, weights))?;
        let of_run = |cost: u64| cost as f64 / self.run.cost.max(1) as f64;
        let others = of_run(self.run.unseen.saturating_sub(measure.unseen));
        let above = (chance.high - share).hypot(of_run(weights.hidden));
        Some(Interval {
            low: (chance.low - of_run(measure.unseen)).clamp(0.0, share),
            high: (share + above + others).clamp(share, 1.0),
        })
    }

    /// How much of the run a function may be that no sample was of, with 95 % confidence; nothing for
    /// exact metrics.
    pub fn unlisted(&self) -> Option<f64> {
        self.interval(Measure::default()).map(|interval| interval.high)
    }

    /// How many samples of equal weight vary as much as those of `measure`.
    fn equal_samples(&self, measure: Measure, weights: &Weights) -> f64 {
        let all = self.run.samples as f64;
        let (share, run) = (self.share(measure.cost), self.run.cost as f64);
        let binomial = share * (1.0 - share);
        let in_shares = |squares: u64| squares as f64 * weights.per as f64 / (run * run);
        let (squares, all_squares) = (in_shares(measure.squares), in_shares(self.run.squares));
        let variance = if weights.of_known_cost {
            squares - share * share / all
        } else {
            (1.0 - share).powi(2) * squares + share * share * (all_squares - squares)
        };
        if binomial > 0.0 && variance > 0.0 { (binomial / variance).min(all) } else { all }
    }

    /// How many samples of equal weight vary as much as those of a run.
    pub(crate) fn samples_in_effect(&self, run: &Measure) -> f64 {
        match &self.weights {
            Some(weights) if run.squares > 0 => {
                let (cost, squares) = (run.cost as f64, run.squares as f64 * weights.per as f64);
                (cost * cost / squares).min(run.samples as f64)
            }
            _ => run.samples as f64,
        }
    }

    /// Like [`interval`](Self::interval), from the costs in each run when there are at least
    /// [`RUNS_FOR_SPREAD`] of them.
    ///
    /// The spread between runs includes what differs from run to run beyond chance. A few runs
    /// may also agree by chance, so the result is never narrower than the interval of the
    /// pooled samples.
    pub(crate) fn interval_of_runs(&self, measure: Measure, costs: Option<&[u64]>) -> Option<Interval> {
        let pooled = self.interval(measure)?;
        let between = costs.and_then(|costs| student(&self.shares(costs)));
        Some(between.map_or(pooled, |between| between.hull(pooled)))
    }

    /// Whether there are enough runs, each with cost, to tell how much they differ.
    pub fn has_spread(&self) -> bool {
        self.runs.len() >= RUNS_FOR_SPREAD && self.runs.iter().all(|run| run.cost > 0)
    }

    /// Costs by run as shares of each run's cost.
    pub(crate) fn shares(&self, costs: &[u64]) -> Vec<f64> {
        let runs = costs.iter().zip(&self.runs);
        runs.map(|(&cost, run)| if run.cost == 0 { 0.0 } else { cost as f64 / run.cost as f64 }).collect()
    }
}

/// The run of every node, by node index.
fn node_runs(profile: &Profile) -> impl Iterator<Item = RunId> + '_ {
    let of_thread = |thread: treering_profile::ThreadId| {
        let process = profile.threads[thread.index()].process;
        profile.processes[process.index()].run
    };
    profile.node_threads().into_iter().map(of_thread)
}
