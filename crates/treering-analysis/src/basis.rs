//! What percentages are of.

use treering_profile::{CallBias, MetricId, Profile, RunId};

use crate::interval::{Interval, student, wilson};
use crate::measure::{Columns, Measure, samples_metric};

/// What percentages are of: the cost of the whole run in one metric, before anything was
/// selected, and the samples it was estimated from.
#[derive(Clone, Debug, PartialEq)]
pub struct Basis {
    /// The metric.
    pub metric: MetricId,
    /// The metric that counts its samples, if it is sampled.
    pub samples: Option<MetricId>,
    /// The run cost: the sum of all self costs.
    pub run: Measure,
    /// The same for each run of a merged profile, by run index.
    pub runs: Vec<Measure>,
    /// What the costs were corrected by, if they were.
    pub correction: Option<Correction>,
}

/// What measuring the calls of a run cost, and what that was taken to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correction {
    /// The run cost as it was measured.
    pub raw_cost: u64,
    /// What was taken away from it.
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
        let columns = Columns::of(&profile.tree, metric, samples);
        let mut runs = vec![Measure::default(); profile.runs.len()];
        for (node, run) in profile.tree.nodes().zip(node_runs(profile)) {
            runs[run.index()] += columns.self_cost(node);
        }
        Self { metric, samples, run: runs.iter().copied().sum(), runs, correction: None }
    }

    /// The part of the run cost, 0..=1; 0 for an empty run.
    pub fn share(&self, cost: u64) -> f64 {
        if self.run.cost == 0 { 0.0 } else { cost as f64 / self.run.cost as f64 }
    }

    /// The 95 % interval of a share estimated from samples; nothing for exact metrics.
    pub fn interval(&self, measure: Measure) -> Option<Interval> {
        self.samples?;
        wilson(self.share(measure.cost), self.run.samples)
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
