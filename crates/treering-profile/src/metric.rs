//! Metrics: their units, and how sure their numbers are.

use crate::MetricId;

/// A column of costs: what is counted, in which unit and how surely.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Metric {
    /// The name users choose it by, for instance `cpu-clock`, `instructions` or `samples`.
    pub name: String,
    /// The unit of the stored numbers.
    pub unit: Unit,
    /// How the numbers were estimated; nothing for those that are exact or measured directly.
    pub sampling: Option<Sampling>,
    /// Whether the numbers are what there is at a time, such as the bytes of resident memory,
    /// rather than what was used up. Levels cannot be added up, so they are there for
    /// [`Point`](crate::Point)s only, and their costs in the tree are 0.
    #[serde(default, skip_serializing_if = "is_false", rename = "level")]
    pub is_level: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// How a sampled metric was estimated.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Sampling {
    /// The index of the metric that counts this metric's samples: the stored cost is the sum of
    /// their weights.
    pub counted_by: u32,
    /// The mean weight of a sample in the metric's unit, when every sample has the same.
    pub period: Option<u64>,
    /// Whether the intervals between samples were drawn at random, so that a program in step
    /// with the timer cannot hide. Nothing where it is not known, as in imported files.
    pub jittered: Option<bool>,
    /// The spread of the weights of samples; nothing where all have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Weights>,
}

/// The spread of samples of different weights, from which intervals of confidence follow.
///
/// Both columns are metrics of the profile, so that they add up, merge and move with the costs;
/// they are no costs themselves, and views leave them out.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Weights {
    /// The index of the metric that holds the sums of squared weights, each square over `per`. Of
    /// samples that all weigh `per` it holds the cost. Squares of samples that cannot differ from
    /// each other are larger accordingly.
    pub squares: u32,
    /// The divisor of squares, in the metric's unit; never 0.
    pub per: u64,
    /// The index of the metric that holds how much of a cost stands for a part of the program
    /// that no sample can fall into, such as the first moments of a thread.
    pub unseen: u32,
    /// The most that a function may cost, with 95 % confidence, where samples were taken and none is of it,
    /// in the metric's unit, beyond what its own samples tell.
    pub hidden: u64,
    /// Whether costs are parts of what is known exactly, rather than of the sum of the weights.
    #[serde(default)]
    pub of_known_cost: bool,
}

/// The unit of a metric's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// A number of what the metric is named after.
    Count,
}

impl Unit {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nanoseconds => "nanoseconds",
            Self::Bytes => "bytes",
            Self::Count => "count",
        }
    }
}

impl Metric {
    /// A metric that is counted or measured rather than sampled.
    pub fn exact(name: impl Into<String>, unit: Unit) -> Self {
        Self { name: name.into(), unit, sampling: None, is_level: false }
    }

    /// A metric of what there is at a time, for points.
    pub fn level(name: impl Into<String>, unit: Unit) -> Self {
        Self { is_level: true, ..Self::exact(name, unit) }
    }

    /// A metric estimated from samples that `counted_by` counts, each worth `period`.
    pub fn sampled(name: impl Into<String>, unit: Unit, counted_by: MetricId, period: Option<u64>) -> Self {
        let sampling = Sampling { counted_by: counted_by.raw(), period, jittered: None, weights: None };
        Self { sampling: Some(sampling), ..Self::exact(name, unit) }
    }

    /// The metric that counts the samples of this one, if it is sampled.
    pub fn counted_by(&self) -> Option<MetricId> {
        self.sampling.as_ref().map(|sampling| MetricId::new(sampling.counted_by))
    }

    pub(crate) fn weights_mut(&mut self) -> Option<&mut Weights> {
        self.sampling.as_mut().and_then(|sampling| sampling.weights.as_mut())
    }

    /// The spread of the weights of its samples, if they differ.
    pub fn weights(&self) -> Option<&Weights> {
        self.sampling.as_ref().and_then(|sampling| sampling.weights.as_ref())
    }
}

impl Weights {
    /// Whether its columns are below `metrics`.
    pub fn is_sound(&self, metrics: usize) -> bool {
        let known = |metric: u32| (metric as usize) < metrics;
        known(self.squares) && known(self.unseen) && self.per > 0
    }
}
