//! Exact counts of unmodified x86-64 programs by dynamic binary translation (Linux).
//!
//! The tracer is another process: it translates the program's code block by block into memory that both
//! share, and the program runs from there. Each translated block adds one to a counter of its thread, and the
//! program does not notice it. Control stays in translated code, except when it reaches code for the first
//! time.
//!
//! It refuses a program that it cannot count exactly, or reports the missing part: see [`NotCounted`]. It
//! knows no symbols and no formats; [`treering_recover`] makes basic blocks from its counts.
//!
//! ```
//! use treering_translator::{Command, Ended, count};
//!
//! let command = Command { words: vec!["true".into()], ..Command::default() };
//! let counts = count(&command).expect("it may be traced");
//! assert_eq!(counts.ended, Ended::Exited(0));
//! assert!(counts.programs[0].instructions() > 10_000);
//! assert!(counts.not_counted.is_empty());
//! ```

#![deny(unsafe_code)]

mod address_map;
mod address_space;
mod areas;
mod cache;
mod chunked_vec;
mod context;
mod counting;
mod emit;
mod error;
mod history;
mod journal;
mod linking;
pub mod model;
mod profile;
mod program;
mod run;
mod surroundings;
mod sys;
mod tracer;

pub use areas::tree_layout::FOLDED;
pub use areas::trees::TreeLimits;
pub use context::ContextNode;
pub use context::ContextTree;
pub use counting::branch_bias::BranchBias;
pub use counting::result::{
    Branch, CodeRegion, CountedBlock, NotCounted, Partial, ProgramCounts, ThreadCounts,
};
pub use error::{CountError, Exhausted};
pub use journal::salvage::{Salvaged, is_kept, salvage};
pub use profile::ProfileBuilder;
pub use program::container_file::HiddenFile;
pub use program::watch::{FindFunctions, START, STOP, Selection};
pub use run::{Command, Counts, Ended, Progress, count, count_and_tell, count_each};
pub use surroundings::{BeyondLevel, HeldFacts};
pub use sys::heap::prepare_heap;
pub use sys::{Senders, end_by, pass_on, pass_on_to, stop_after_children, stop_with_program};
pub use tracer::thread::Left;
pub use treering_x86::processor::Level;
