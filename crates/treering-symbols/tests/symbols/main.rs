//! Tests of symbol tables, debugging information and names: one test program, a module for each subject.

mod agreement;
mod demangle;
mod entered;
mod kept;
mod segment_trap;
mod tree;
mod units;
