//! Linking: how blocks of the code cache lead to each other, and how they are unlinked and evicted when code changes.

pub(crate) mod entry;
pub(crate) mod eviction;
pub(crate) mod incoming;
pub(crate) mod indirect;
pub(crate) mod propagation;
pub(crate) mod tree_stubs;
pub(crate) mod unload;
