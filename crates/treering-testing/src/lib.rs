//! Notations for tests: call traces and stacks as text, a scripted clock, synthetic profiles.
//!
//! A test says what a program did as data, so that a hundred cases survive a redesign of the
//! interfaces. This crate is for tests and benchmarks only: it panics, with the line, on text
//! that it does not understand, and no other crate may depend on it outside of its tests.
//!
//! ```
//! let profile = treering_testing::trace(
//!     "
//!      0 enter main
//!      1   enter work
//!      4   leave work
//!     10 leave main
//!     ",
//! );
//! let time = profile.find_metric("time").unwrap();
//! assert_eq!(profile.run_cost(time), 10);
//! ```
#![deny(unsafe_code)]

mod clock;
pub mod programs;
mod shared_runs;
pub mod single_step;
mod stacks;
pub mod synthetic;
mod trace;

pub use clock::ScriptedClock;
pub use shared_runs::SharedRuns;
pub use stacks::{STACK_PERIOD_NS, stacks, stacks_with};
pub use trace::{timed_trace_with, trace, trace_with};
