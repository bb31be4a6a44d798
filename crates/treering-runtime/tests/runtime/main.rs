//! Tests of programs that are compiled with the library or the headers: one test program, a module for each subject.
//!
//! Tests that record in their own process are test programs of their own, in the folder above: a process has one
//! recording, one allocator and one address space, and these tests are about what is in them.

mod benchmark;
mod build;
mod c_headers;
mod cbs;
mod compact;
mod instrument_functions;
mod jumps;
mod no_number;
mod packaging;
mod places;
mod probe;
mod profilers;
mod program;
mod robustness;
mod stack_machine;
