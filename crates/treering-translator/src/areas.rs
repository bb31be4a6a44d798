//! Thread areas: the memory of each thread, with its saved registers, its counters and its calling context tree.

pub(crate) mod counter_file;
pub(crate) mod counters;
pub(crate) mod frame_spill;
pub(crate) mod thread_areas;
pub(crate) mod tree_frame;
pub(crate) mod tree_layout;
pub(crate) mod tree_memory;
pub(crate) mod tree_node;
pub(crate) mod trees;
