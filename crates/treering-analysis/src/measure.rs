//! A cost together with the samples it was estimated from.

use std::ops::{Add, AddAssign, Sub, SubAssign};

use treering_profile::{Metadata, Metric, MetricId, NodeId, Profile, Tree, Unit};

/// A cost in the metric's unit, and the number of samples it was estimated from.
///
/// Samples are 0 when the metric is exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Measure {
    /// The cost, in the metric's unit.
    pub cost: u64,
    /// How many samples it is the sum of.
    pub samples: u64,
    /// The sum of their squared weights, as [`Weights`](treering_profile::Weights) describes it;
    /// 0 where all weigh the same.
    pub squares: u64,
    /// How much of the cost stands for what no sample can fall into.
    pub unseen: u64,
}

impl Measure {
    /// A cost, and the number of samples of equal weight that it was estimated from.
    pub fn new(cost: u64, samples: u64) -> Self {
        Self { cost, samples, ..Self::default() }
    }

    /// Whether there is neither cost nor a sample.
    pub fn is_zero(self) -> bool {
        self == Self::default()
    }

    /// The difference, or 0 where `other` is greater.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self {
            cost: self.cost.saturating_sub(other.cost),
            samples: self.samples.saturating_sub(other.samples),
            squares: self.squares.saturating_sub(other.squares),
            unseen: self.unseen.saturating_sub(other.unseen),
        }
    }
}

/// Sums stop at 2^64 − 1: profiles from broken files must not end the program.
impl Add for Measure {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            cost: self.cost.saturating_add(other.cost),
            samples: self.samples.saturating_add(other.samples),
            squares: self.squares.saturating_add(other.squares),
            unseen: self.unseen.saturating_add(other.unseen),
        }
    }
}

impl AddAssign for Measure {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Measure {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            cost: self.cost - other.cost,
            samples: self.samples - other.samples,
            squares: self.squares - other.squares,
            unseen: self.unseen - other.unseen,
        }
    }
}

impl SubAssign for Measure {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl std::iter::Sum for Measure {
    fn sum<I: Iterator<Item = Self>>(measures: I) -> Self {
        measures.fold(Self::default(), Add::add)
    }
}

/// The metric that counts the samples of `metric`: that of a sampled metric, or the metric
/// itself when it is the count of another's samples. Nothing for exact metrics.
pub fn samples_metric(profile: &Profile, metric: MetricId) -> Option<MetricId> {
    let counts_another = || profile.metrics.iter().any(|other| other.counted_by() == Some(metric));
    let own = profile.metrics.get(metric.index()).and_then(Metric::counted_by);
    own.or_else(|| counts_another().then_some(metric))
}

/// The metric shown when none is asked for: the first one that is not the count of another's
/// samples; nothing when there are no metrics. Levels have no costs to show and are passed over.
pub fn default_metric(profile: &Profile) -> Option<MetricId> {
    let counts = |id| profile.metrics.iter().any(|other: &Metric| other.counted_by() == Some(id));
    let costs = || profile.cost_metrics().map(|(id, _)| id);
    let stated = profile.metadata.parameters.get(Metadata::DEFAULT_METRIC);
    let stated = stated.and_then(|name| profile.find_metric(name));
    if let Some(stated) = stated.filter(|stated| costs().any(|id| id == *stated)) {
        return Some(stated);
    }
    let chosen = costs().find(|&id| !counts(id));
    chosen.or_else(|| costs().next())
}

/// Adds a metric `calls` whose cost in a node is how often it was called, for profiles in which
/// nothing else was measured.
pub fn add_calls_metric(profile: &mut Profile) -> MetricId {
    let metric = profile.add_metric(Metric::exact("calls", Unit::Count));
    for node in profile.tree.nodes() {
        let calls = profile.tree.calls(node);
        profile.tree.add_self_cost(metric, node, calls);
    }
    metric
}

/// The columns of a tree that make up its measures in one metric.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    costs: &'a [u64],
    samples: Option<&'a [u64]>,
    squares: Option<&'a [u64]>,
    unseen: Option<&'a [u64]>,
}

impl<'a> Columns<'a> {
    pub(crate) fn of(profile: &'a Profile, metric: MetricId, samples: Option<MetricId>) -> Self {
        let column = |metric| profile.tree.self_costs(metric);
        let weights = profile.metrics[metric.index()].weights();
        Self {
            costs: column(metric),
            samples: samples.map(column),
            squares: weights.map(|weights| column(MetricId::new(weights.squares))),
            unseen: weights.map(|weights| column(MetricId::new(weights.unseen))),
        }
    }

    /// The cost spent in the node itself.
    pub(crate) fn self_cost(&self, node: NodeId) -> Measure {
        let of = |column: Option<&[u64]>| column.map_or(0, |column| column[node.index()]);
        Measure {
            cost: self.costs[node.index()],
            samples: of(self.samples),
            squares: of(self.squares),
            unseen: of(self.unseen),
        }
    }

    /// The cost spent in each node and its subtree.
    pub(crate) fn totals(&self, tree: &Tree) -> Vec<Measure> {
        let mut totals: Vec<Measure> = tree.nodes().map(|node| self.self_cost(node)).collect();
        for node in tree.nodes().rev() {
            if let Some(parent) = tree.parent(node) {
                let total = totals[node.index()];
                totals[parent.index()] += total;
            }
        }
        totals
    }
}
