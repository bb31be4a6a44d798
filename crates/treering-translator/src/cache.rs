//! The code cache: units of translated code, blocks, exit stubs and tables.
//!
//! This room holds the data; `linking` decides which blocks are linked, and `emit` makes the code.

pub(crate) mod batch;
pub(crate) mod block;
pub(crate) mod code_cache;
pub(crate) mod emitter;
pub(crate) mod indirect;
pub(crate) mod indirect_lookup;
pub(crate) mod link;
pub(crate) mod return_table;
pub(crate) mod return_watch;
pub(crate) mod target_check;
pub(crate) mod tree_routines;
pub(crate) mod unit;
