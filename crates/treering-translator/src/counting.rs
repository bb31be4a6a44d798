//! From counters to counts: how often each block was executed, and where control went.

pub(crate) mod active_blocks;
pub(crate) mod branch_bias;
pub(crate) mod propagated_counts;
pub(crate) mod result;
pub(crate) mod slow_path;

/// What is needed to make counts of counters.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    /// What each counter says something of, as far as a thread has ended since.
    pub(crate) owners: active_blocks::CounterOwners,
    /// Which blocks take over their counts from others.
    pub(crate) propagation: propagated_counts::Propagation,
}
