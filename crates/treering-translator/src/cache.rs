//! The code cache: translated blocks, and the ways from one to another.

pub(crate) mod block;
pub(crate) mod eviction;
pub(crate) mod indirect_lookup;
pub(crate) mod link;
pub(crate) mod return_watch;
pub(crate) mod target_check;
pub(crate) mod unit;
pub(crate) mod unload;
