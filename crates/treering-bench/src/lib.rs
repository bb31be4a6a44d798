//! A harness for `cargo bench`: shuffled rounds of processor time, exact instructions, and the call that changed.
//!
//! ```no_run
//! // benches/words.rs; in Cargo.toml: [[bench]] name = "words", harness = false
//! use std::hint::black_box;
//! use treering_bench::Suite;
//!
//! fn main() -> std::process::ExitCode {
//!     let mut suite = Suite::new();
//!     suite.function("parse", |bench| bench.iter(|| black_box("17").parse::<u32>()));
//!     suite.parameter("sort", "n", [1_000, 2_000, 4_000], |bench, &n| {
//!         bench.iter_with(|| (0..n).rev().collect::<Vec<u32>>(), |mut words| words.sort())
//!     });
//!     suite.main()
//! }
//! ```
//!
//! `cargo bench` measures all benchmarks, `cargo bench -- sort` those whose names contain `sort`. All of them take turns in
//! shuffled rounds, so that what slows down the machine for a while slows down all; the time is the processor time of the
//! process, all threads together.
//!
//! `cargo bench -- --count` has `treering count` count the instructions of one call, after one that is not counted: the
//! same number in every run, on a busy machine as well. `--save-baseline NAME` keeps the counts, and `--baseline NAME`
//! compares with them: `treering diff` says by how much each benchmark changed, and names the call or function behind it.
//! With `--limit 1%` the exit status is 1 where one grew by more. Times of another day are not compared: they differ by
//! more than what they are to show.
//!
//! `--list`, filters, `--exact`, `--skip` and `--test` (each benchmark once, without measuring) are those of libtest.
#![forbid(unsafe_code)]

mod bencher;
mod counted;
mod options;
mod suite;
mod timed;

pub use bencher::Bencher;
pub use suite::Suite;
