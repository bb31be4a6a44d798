//! The code cache: units of translated code, its blocks, exit stubs and tables. It knows how code is linked, and nothing
//! of how it is made.

pub(crate) mod batch;
pub(crate) mod block;
pub(crate) mod code_cache;
pub(crate) mod emitter;
pub(crate) mod indirect;
pub(crate) mod indirect_lookup;
pub(crate) mod link;
pub(crate) mod return_table;
pub(crate) mod target_check;
pub(crate) mod tree_routines;
pub(crate) mod unit;
