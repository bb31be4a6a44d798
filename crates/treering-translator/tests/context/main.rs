//! Calling context trees: as many instructions as the blocks count, and the calls that programs make.
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]
#![allow(clippy::print_stdout, reason = "tests say when they skip")]

mod callgrind;
mod large;
mod programs;
mod tree;
mod trees_in_files;
