//! From counters to counts: which blocks were executed how often, and where control went.

pub(crate) mod active_blocks;
pub(crate) mod branch_bias;
pub(crate) mod module_map;
pub(crate) mod profile;
pub(crate) mod propagated_counts;
pub(crate) mod result;
