//! Every instruction of a program is counted as often as the processor executes it, one by one.
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]
#![allow(clippy::print_stdout, reason = "tests say when they skip")]

mod as_alone;
mod counts_in_files;
mod exhausted;
mod instructions;
mod known;
mod memory;
mod programs;
mod requests;
mod selected;
mod sites;
