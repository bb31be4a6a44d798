//! How much runs differ, and whether that is more than chance.

use treering_profile::FunctionId;

use crate::basis::{Basis, RUNS_FOR_SPREAD};
use crate::graph::CallGraph;
use crate::interval::{chi_squared_999_over_freedom, mean, standard_deviation};

/// How much the runs of a merged profile differ, compared with chance.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSpread {
    /// How many runs there are.
    pub runs: usize,
    /// Functions that were seen, largest mean share first.
    pub functions: Vec<FunctionSpread>,
    /// The spread of the important functions over the spread expected by chance; about 1 when
    /// samples fall independently. Nothing when no function is important enough.
    pub ratio: Option<f64>,
    /// From which ratio on chance is no explanation.
    pub threshold: f64,
}

/// How much the self cost of a function differs from run to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FunctionSpread {
    /// The function.
    pub function: FunctionId,
    /// The mean over the runs of its share of the run.
    pub mean_share: f64,
    /// The standard deviation of that share between runs.
    pub sd: f64,
    /// The standard deviation that independent samples would have: √(p(1 − p) / samples).
    pub binomial_sd: f64,
}

impl FunctionSpread {
    /// The spread found over the spread expected; nothing where none is expected.
    pub fn ratio(&self) -> Option<f64> {
        (self.binomial_sd > 0.0).then(|| self.sd / self.binomial_sd)
    }
}

/// Functions below this share of the run say little about the spread.
const IMPORTANT_SHARE: f64 = 0.02;

/// The ratio from which on a program is suspected to be in step with the sampling timer: with
/// a fixed period it was measured at about 9, with random intervals at 1.0.
const SUSPICIOUS: f64 = 2.0;

impl RunSpread {
    /// Compares the runs of a sampled profile; nothing when there are fewer than
    /// [`RUNS_FOR_SPREAD`] or the metric was not sampled.
    pub fn of(graph: &CallGraph) -> Option<Self> {
        let basis = &graph.basis;
        if basis.samples.is_none() || !basis.has_spread() {
            return None;
        }
        debug_assert!(basis.runs.len() >= RUNS_FOR_SPREAD);
        let spread = |cost: &crate::graph::FunctionCost| spread(basis, cost.function, &cost.self_by_run);
        let mut functions: Vec<_> = graph.functions.iter().filter_map(spread).collect();
        functions.sort_by(|a, b| b.mean_share.total_cmp(&a.mean_share).then(a.function.cmp(&b.function)));
        let freedom = basis.runs.len() - 1;
        let threshold = chi_squared_999_over_freedom(freedom).sqrt().max(SUSPICIOUS);
        Some(Self { runs: basis.runs.len(), ratio: pooled_ratio(&functions), functions, threshold })
    }

    /// Whether the runs differ so much that the program was probably in step with the timer, or
    /// did not do the same each time.
    pub fn is_suspicious(&self) -> bool {
        self.ratio.is_some_and(|ratio| ratio > self.threshold)
    }
}

fn spread(basis: &Basis, function: FunctionId, costs: &[u64]) -> Option<FunctionSpread> {
    let shares = basis.shares(costs);
    let mean_share = mean(&shares);
    let chance = |run: &crate::Measure| mean_share * (1.0 - mean_share) / basis.samples_in_effect(run);
    let variances: Vec<f64> = basis.runs.iter().map(chance).collect();
    let sd = standard_deviation(&shares)?;
    let seen = mean_share > 0.0 && basis.runs.iter().all(|run| run.samples > 0);
    seen.then(|| FunctionSpread { function, mean_share, sd, binomial_sd: mean(&variances).sqrt() })
}

/// The root of the variances' ratio over all important functions. Pooling variances weighs
/// functions by how much they could vary; a mean of ratios would let small ones decide.
fn pooled_ratio(functions: &[FunctionSpread]) -> Option<f64> {
    let important = functions.iter().filter(|spread| spread.mean_share >= IMPORTANT_SHARE);
    let (found, expected) = important.fold((0.0, 0.0), |(found, expected), spread| {
        (found + spread.sd.powi(2), expected + spread.binomial_sd.powi(2))
    });
    (expected > 0.0).then(|| (found / expected).sqrt())
}
