//! Tests of profiles: one test program, a module for each subject.

mod builder;
mod code;
mod detail;
mod merge;
