//! The files of Valgrind's Callgrind, which KCachegrind and `callgrind_annotate` show.
//!
//! Layout after the chapter "Callgrind Format Specification" of the Valgrind manual, details
//! after what KCachegrind and `callgrind_annotate` make of it. The format has arcs and no tree:
//!
//! - [`read`] gives a profile of arcs;
//! - [`write()`] measures the arcs of a tree, each with the cost of its outermost calls, so that
//!   no arc exceeds the run, however deep the recursion.

mod arc;
mod error;
mod event;
mod line;
mod name;
mod read;
mod write;

pub use error::{Problem, ReadError};
pub use read::read;
pub(crate) use read::read_within;
pub use write::{write, write_estimated};
