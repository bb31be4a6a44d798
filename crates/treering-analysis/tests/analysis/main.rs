//! Tests of the analysis: one test program, a module for each subject.

mod call_graph;
mod correct;
mod gprof;
mod laws;
mod run_spread;
mod weights;
