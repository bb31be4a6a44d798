//! Tests of the reports: one test program, a module for each subject.

mod exact;
mod json;
mod sums;
mod text;
mod timed;
