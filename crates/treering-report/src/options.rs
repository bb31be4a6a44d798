//! The options of a view.

pub use treering_analysis::SortKey;

/// The form of shown costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Percent of the run cost.
    Percent,
    /// Numbers of samples; 0 where the metric was not sampled.
    Samples,
    /// The metric's own unit: time, bytes, counts.
    Natural,
}

/// The options of a view.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The form of shown costs; the view's own by default: percent in trees and lines, the
    /// metric's unit in tables.
    pub amount: Option<Amount>,
    /// The order of functions; the view's own by default: self cost in the flat
    /// profile, total cost in the call graph. Trees are always sorted by total cost.
    pub sort: Option<SortKey>,
    /// Functions below this share of the run cost are left out, and it is said how many. Trees
    /// are pruned before, by [`Pruning`](treering_analysis::Pruning).
    pub min_share: f64,
    /// The most functions that are shown.
    pub limit: Option<usize>,
    /// Whether the call graph shows statistics of single activations.
    pub statistics: bool,
}

impl Default for Options {
    /// The view's own choices, without limits.
    fn default() -> Self {
        Self { amount: None, sort: None, min_share: 0.0, limit: None, statistics: false }
    }
}
