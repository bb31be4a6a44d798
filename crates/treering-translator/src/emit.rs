//! From the program's code to code that counts itself.

pub(crate) mod counter_code;
pub(crate) mod self_modifying;
pub(crate) mod side_exit;
pub(crate) mod terminator;
pub(crate) mod translate;
