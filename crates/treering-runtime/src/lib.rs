//! Profiles the program that it is linked into.
//!
//! # What it does
//!
//! Tasks and functions of the program report when they are entered and left. From these *call
//! events* and a clock it builds the calling context tree: how often each chain of callers was
//! reached, how long it took, itself and with all that it called, with the shortest, the longest
//! and the deviation. The tree lives in a file that other processes can read at any moment and
//! that survives the death of the program; when the program ends it becomes a `.trg` file.
//!
//! ```
//! use treering_runtime::scope;
//!
//! fn solve(steps: u32) -> u32 {
//!     scope!("solve");
//!     (0..steps).map(|step| { scope!("step"); step }).sum()
//! }
//! # treering_runtime::clear_profiler();
//! assert_eq!(solve(4), 6);
//! ```
//! Then: `treering report`, or `treering watch` while it runs. [`instrument`] does the same for a
//! whole function, and [`Allocator`] tells which of them takes memory.
//!
//! With `default-features = false` all of this remains in the program and compiles to nothing.
//!
//! # What it does not do
//!
//! It prints nothing, but for one line on standard error when there can be no profile, and the
//! reports that a program lets the user ask for on its command line. It starts no thread, uses no
//! asynchronous code and depends on nothing but `libc` and one macro. It does not format profiles
//! and does not look up symbols.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

/// Items that exist with the feature `enabled` only.
macro_rules! when_enabled {
    ($($item:item)*) => { $(#[cfg(feature = "enabled")] $item)* };
}

pub mod counting;

when_enabled! {
    mod arguments;
    pub mod benchmark;
    pub mod c_abi;
    mod calibrate;
    mod children;
    mod compact;
    mod control;
    mod course;
    mod environment;
    mod event;
    mod frame;
    mod function;
    mod future;
    #[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
    mod jump;
    mod leaf;
    mod leave;
    mod line;
    mod mark;
    mod memory;
    mod output;
    mod point;
    mod port;
    mod process;
    mod record;
    mod registry;
    mod scope;
    mod session;
    mod snapshot;
    mod store;
    mod stray;
    mod sys;
    mod table;
    mod task;
    mod thread;
    mod trg;
    #[cfg(all(target_pointer_width = "64", target_os = "linux"))]
    mod unseen_plugin;

    pub use calibrate::set_call_cost;
    pub use control::{clear_profiler, finish, mark, note, parameter, point, result, set_profiler};
    pub use function::{Call, Function, Place};
    pub use future::Instrumented;
    pub use line::{line, rest_of_line};
    pub use memory::{Allocator, allocated, freed};
    pub use scope::{Leaf, Scope, Site};
    pub use snapshot::{Snapshot, discard, keep_live, output, save, snapshot, snapshot_of, ticks, ticks_and_ns};
}

#[cfg(not(feature = "enabled"))]
mod disabled;
#[cfg_attr(not(feature = "enabled"), allow(dead_code, reason = "no code reads the wishes"))]
mod filter;
#[cfg_attr(not(feature = "enabled"), allow(dead_code, reason = "no code reads the wishes"))]
mod options;

#[cfg(not(feature = "enabled"))]
pub use disabled::{
    Allocator, Call, Function, Instrumented, Leaf, Place, Scope, Site, allocated, clear_profiler, finish,
    freed, line, mark, note, parameter, point, rest_of_line, result, set_call_cost, set_profiler, ticks,
};
pub use filter::Filter;
pub use options::{Kind, Options, Recursion};
/// The layout of the recorded data, for programs that read it during the run.
pub use treering_events as events;
pub use treering_macros::instrument;

/// Enters a part of a function until the end of the block: `scope!("name")`, or with
/// `scope!("name", timed_one_in = 16)` for parts that run very often.
#[macro_export]
macro_rules! scope {
    ($($site:tt)*) => {
        let _scope = $crate::site!($($site)*).enter();
    };
}

/// Counts a short part of a function, in which nothing else is entered, until the end of the block:
/// `leaf!("name")`, or with `leaf!("name", timed_one_in = 16)` for parts that run very often.
///
/// It costs less than [`scope!`], a third of it where few calls are timed. A call or an allocation inside
/// of it belongs to its caller, and the times of such leaves are not used.
#[macro_export]
macro_rules! leaf {
    ($($site:tt)*) => {
        let _leaf = $crate::site!($($site)*).enter_leaf();
    };
}
