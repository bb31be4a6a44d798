//! The emitter: it translates the program's code to code that counts itself.

mod block;
pub(crate) mod count_batch;
pub(crate) mod count_register;
pub(crate) mod counter_code;
pub(crate) mod inquiry;
mod model_code;
mod propagation;
pub(crate) mod self_modifying;
pub(crate) mod side_exit;
pub(crate) mod terminator;
pub(crate) mod trace_writer;
pub(crate) mod translate;
pub(crate) mod tree_code;
