//! Statistics of single activations.

use treering_events::ActivationStatistics;

use crate::{MetricId, NodeId, NodeTable};

/// Measurements of single activations, in one metric.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Activations {
    /// The metric of all costs here.
    pub metric: MetricId,
    /// By node: statistics of its activations' total costs.
    pub nodes: NodeTable<ActivationStatistics>,
    /// Activations by the size of their argument, in no order. A (node, bucket) may occur more
    /// than once; the calls and costs add up.
    pub sizes: Vec<SizeCost>,
}

impl Activations {
    /// Nothing measured so far.
    pub fn new(metric: MetricId) -> Self {
        Self { metric, nodes: NodeTable::default(), sizes: Vec::new() }
    }

    /// Joins rows of [`sizes`](Self::sizes) that agree in node and bucket, and sorts them.
    pub fn compact_sizes(&mut self) {
        let key = |row: &SizeCost| (row.node, row.bucket);
        self.sizes.sort_unstable_by_key(key);
        self.sizes.dedup_by(|next, kept| {
            let same = key(next) == key(kept);
            if same {
                kept.calls = kept.calls.saturating_add(next.calls);
                kept.total_cost = kept.total_cost.saturating_add(next.total_cost);
            }
            same
        });
    }
}

/// Activations of a node with arguments of about the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SizeCost {
    /// The node.
    pub node: NodeId,
    /// The binary logarithm of the size, rounded down; 0 for size 0 as well. At most 63.
    pub bucket: u8,
    /// How many activations had such an argument.
    pub calls: u64,
    /// Their total costs together, in the unit of [`Activations::metric`].
    pub total_cost: u64,
}

impl SizeCost {
    /// The bucket that a size belongs to.
    pub fn bucket_of(size: u64) -> u8 {
        size.checked_ilog2().unwrap_or(0) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_fall_into_buckets_by_powers_of_two() {
        let buckets = [0, 1, 2, 3, 4, 1023, 1024, u64::MAX].map(SizeCost::bucket_of);
        assert_eq!(buckets, [0, 0, 1, 1, 2, 9, 10, 63]);
    }
}
