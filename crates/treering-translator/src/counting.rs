//! From counters to counts: how often each block was executed, and where control went.

pub(crate) mod active_blocks;
pub(crate) mod branch_bias;
pub(crate) mod propagated_counts;
pub(crate) mod result;
pub(crate) mod slow_path;

/// The data that turns counters into counts.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    /// The block of each counter, brought up to date when a thread ends.
    pub(crate) owners: active_blocks::CounterOwners,
    /// The blocks that take over counts from others.
    pub(crate) propagation: propagated_counts::Propagation,
}
