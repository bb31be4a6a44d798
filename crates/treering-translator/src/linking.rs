//! How blocks of the code cache are linked with each other, and unlinked and evicted when the program's code changes.

pub(crate) mod entry;
pub(crate) mod eviction;
pub(crate) mod incoming;
pub(crate) mod indirect;
pub(crate) mod propagation;
pub(crate) mod return_watch;
pub(crate) mod tree_stubs;
pub(crate) mod unload;
