//! Samples by address.

use crate::{FunctionId, LineId, MetricId, NodeId, Profile, StatedAddress, ThreadId};

/// The part of a thread's self costs that samples at one address stand for.
///
/// The rows of a function add up to its self cost but for what has no address. There are at most as many
/// rows as samples, and as threads times addresses at which any was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressCost {
    /// The thread that was sampled.
    pub thread: ThreadId,
    /// The function that was executing: the innermost one where functions are inlined.
    pub function: FunctionId,
    /// The function whose code holds the address; its module is that of the address.
    pub holder: FunctionId,
    /// The address of the instruction.
    pub address: StatedAddress,
    /// Its source line, where known.
    pub line: Option<LineId>,
    /// The metric.
    pub metric: MetricId,
    /// The cost in the metric's unit.
    pub cost: u64,
}

impl AddressCost {
    fn key(&self) -> impl Ord + use<> {
        (self.thread, self.holder, self.address, self.function, self.line, self.metric)
    }
}

impl Profile {
    /// Joins rows of [`address_costs`](Self::address_costs) that differ in the cost only, and sorts them.
    pub fn compact_address_costs(&mut self) {
        self.address_costs.sort_unstable_by_key(AddressCost::key);
        self.address_costs.dedup_by(|next, kept| {
            let same = next.key() == kept.key();
            if same {
                kept.cost = kept.cost.saturating_add(next.cost);
            }
            same
        });
    }

    /// Adds what `from`, whose tables are the same, has by address to the threads that its threads stand
    /// for here by their roots; what belongs to threads that stand for none is left out.
    pub fn add_address_costs_of(&mut self, from: &Profile, nodes: &[Option<NodeId>]) {
        if from.address_costs.is_empty() {
            return;
        }
        let roots = self.threads_by_root();
        let rows = from.address_costs.iter().filter_map(|row| {
            let root = nodes[from.threads[row.thread.index()].root.index()]?;
            Some(AddressCost { thread: *roots.get(&root)?, ..*row })
        });
        let rows: Vec<_> = rows.collect();
        self.address_costs.extend(rows);
        self.compact_address_costs();
    }

    /// States the squared weights of what `metric` has by address, over `per`, where all its samples, which
    /// `counted_by` counts, weigh the same.
    pub(crate) fn add_squares_by_address(
        &mut self,
        metric: MetricId,
        counted_by: MetricId,
        squares: MetricId,
        per: u64,
    ) {
        let place = |row: &AddressCost| AddressCost { metric, cost: 0, ..*row };
        let counted = self.address_costs.iter().filter(|row| row.metric == counted_by);
        let samples: std::collections::HashMap<_, _> = counted.map(|row| (place(row), row.cost)).collect();
        let weighed = self.address_costs.iter().filter(|row| row.metric == metric);
        let squared = weighed.map(|row| {
            let (cost, samples) = (row.cost as f64, samples.get(&place(row)).copied().unwrap_or(1));
            let cost = (cost * cost / samples.max(1) as f64 / per as f64).round() as u64;
            AddressCost { metric: squares, cost, ..*row }
        });
        let squared: Vec<_> = squared.collect();
        self.address_costs.extend(squared);
    }
}
