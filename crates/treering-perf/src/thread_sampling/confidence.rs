//! The numbers that intervals of confidence need.

use std::collections::HashMap;

use treering_profile::{MetricId, NodeId, Profile, Weights};

use super::ThreadSampling;
use super::stratum::Stratum;

impl ThreadSampling {
    /// Adds up the squares of weights. Samples with the same interval and number are at the same
    /// age of their threads; where these do the same they are in the same place, and tell no more
    /// than one.
    pub(super) fn add_squares(&self, strata: &mut [Stratum], of_task: &[usize]) {
        let mut alike: HashMap<(usize, u64), Vec<u64>> = HashMap::new();
        for stream in self.streams.values() {
            alike.entry((of_task[stream.task], stream.interval)).or_default().push(stream.samples);
        }
        for ((stratum, interval), mut lengths) in alike {
            lengths.sort_unstable();
            let longest = lengths.last().copied().unwrap_or(0);
            let mut shorter = 0;
            for number in 1..=longest {
                while lengths[shorter] < number {
                    shorter += 1;
                }
                let together = (lengths.len() - shorter) as f64;
                let square = (self.intervals.weight(interval, number, self.mean) as f64).powi(2);
                strata[stratum].squares += together * square;
                strata[stratum].clustered += together * together * square * self.losses;
            }
        }
    }

    /// Adds the numbers that intervals of confidence need.
    pub(super) fn write_weights(
        &mut self,
        profile: &mut Profile,
        metric: MetricId,
        strata: &[Stratum],
        factors: &[f64],
        stratum_of: &[usize],
        exact: bool,
    ) {
        let costs = profile.tree.self_costs(metric);
        self.squares.resize(costs.len(), 0.0);
        let square = |node: NodeId| {
            let (stratum, at) = (stratum_of[node.index()], node.index());
            let effect = strata[stratum].design_effect(self.losses);
            (self.squares[at] * factors[stratum].powi(2) * effect).round() as u64
        };
        let unseen = |node: NodeId| {
            (costs[node.index()] as f64 * strata[stratum_of[node.index()]].unseen_share()).round() as u64
        };
        let hidden = strata.iter().map(Stratum::hidden).map(|hidden| hidden * hidden).sum::<f64>().sqrt();
        let squares = profile.tree.nodes().map(square).collect();
        let unseen = profile.tree.nodes().map(unseen).collect();
        let (per, hidden) = (self.mean, hidden.round() as u64);
        let weights = Weights {
            squares: 0,
            unseen: 0,
            per,
            hidden,
            of_known_cost: exact && !self.vary_by_losses(strata),
        };
        profile.add_weights(metric, weights, squares, unseen);
    }

    /// Whether shares vary more by losses than as threads are alike. Then they vary as ratios do: one of nearly all hardly does.
    /// Samples of threads that are alike all miss the same function, whatever its share was among them.
    fn vary_by_losses(&self, strata: &[Stratum]) -> bool {
        let squares: f64 = strata.iter().map(|of| of.squares).sum();
        let clustered: f64 = strata.iter().map(|of| of.clustered).sum();
        self.losses > 1.0 && clustered <= self.losses.powi(2) * squares
    }
}

/// The square of the 97.5 % quantile of the normal distribution.
const Z2: f64 = 3.841_458_820_694_124;

impl Stratum {
    /// How many times larger the variance is than if all samples could differ and none was lost.
    fn design_effect(&self, losses: f64) -> f64 {
        if self.squares > 0.0 { self.clustered / self.squares } else { losses }
    }

    fn unseen_share(&self) -> f64 {
        if self.used == 0 { 0.0 } else { (self.unseen as f64 / self.used as f64).min(1.0) }
    }

    /// The possible cost of a function without samples here, with 95 % confidence: Wilson's upper bound for none of
    /// all samples. Nothing in the first thread, where samples are equal.
    fn hidden(&self) -> f64 {
        if self.clustered == 0.0 {
            return 0.0;
        }
        let samples = (self.weight as f64).powi(2) / self.clustered;
        self.used as f64 * (1.0 - self.unseen_share()) * Z2 / (samples + Z2)
    }
}
