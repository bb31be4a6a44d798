//! Runs commands side by side, and says from their times which of two is faster, and how sure that is.
//!
//! [`run()`] runs a command once: processor time, wall time, peak of memory, status and output, by a launcher so small that
//! the program's memory is its own. [`turns`] puts several commands into shuffled rounds. [`Summary`] and [`Estimate`] sum
//! up samples, and a [`Judgement`] is the conclusion: more, less, the same, or undecided, with the rounds that would settle
//! it.
//!
//! It prints nothing, keeps nothing, and draws no conclusion from fewer than [`LEAST_ROUNDS`] rounds.
//!
//! ```
//! use treering_measure::{Estimate, Judgement, Launch, Outcome, run};
//!
//! let sample = run(&Launch::new(vec!["true".into()])).unwrap();
//! assert!(sample.ended.is_success() && sample.output.bytes == 0);
//!
//! let base = [10.1, 10.0, 10.2, 10.1, 9.9, 10.0, 10.1, 10.0, 10.2, 10.1];
//! let head = base.map(|time| time * 1.1);
//! let change = Estimate::of_change(&[&base], &head, 1).unwrap();
//! let control = Estimate::of_change(&[&base], &base, 1);
//! assert_eq!(Judgement::of(change, control, 0.02, base.len()).outcome, Outcome::More);
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking"))]

mod judgement;
mod launch;
mod launcher;
mod rounds;
mod statistics;
mod step;

pub use judgement::{FLOOR, Judgement, LEAST_ROUNDS, Outcome};
pub use launch::{Ended, Launch, LaunchError, Output, Sample, run};
pub use rounds::{Turn, turns};
pub use statistics::{Estimate, Summary};
pub use step::clock_step_ms;
