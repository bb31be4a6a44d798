//! The difference of two profiles, and the call that is its cause; how costs grow over profiles of several sizes.
//!
//! [`compare`] pairs modules and functions of a *base* and a *head*, matches their trees by chains of callers, and gives
//! for every function, arc and context the cost in both. Where calls were counted, each change of a function is split in
//! two that add up to it exactly: *more calls*, and *cost per call*. Everything is base → head, and change = head − base.
//! Nothing here does I/O or words anything: that is for `treering-report`.
//!
//! [`growth`] fits how the costs of all functions grow over profiles of several sizes, and finds the function that makes
//! the run grow as it does.
//!
//! ```
//! use treering_compare::{Options, compare};
//!
//! let base = treering_testing::trace("0 enter main\n 1 enter work\n 4 leave work\n 10 leave main");
//! let head = treering_testing::trace("0 enter main\n 1 enter work\n 9 leave work\n 15 leave main");
//! let difference = compare(&base, &head, &Options::default()).expect("both have a time");
//! assert_eq!(difference.run.change(), 5);
//! let first = &difference.functions[0];
//! assert_eq!((first.name.as_str(), first.self_cost.change()), ("work", 5));
//! let split = first.split.expect("calls were counted");
//! assert_eq!((split.more_calls, split.cost_per_call), (0, 5));
//! ```
#![forbid(unsafe_code)]

mod apart;
mod blocks;
mod cause;
mod change_point;
pub mod code;
mod common_metric;
mod contexts;
mod difference;
mod growth;
mod join;
mod line_pairs;
mod lines;
mod name;
mod noise;
mod pairing;
mod side;
mod sides;
mod split;
#[cfg(test)]
mod tests;

pub use apart::Apart;
pub use blocks::{BlockChange, BlockChanges, ExecutedBlock, all_blocks, blocks};
pub use cause::{Against, Cause, Parts, Reason};
pub use change_point::change_points;
pub use contexts::{ContextChange, Contexts};
pub use difference::{
    ArcChange, Change, Difference, FunctionChange, NotComparable, Options, compare, compare_beyond_chance,
    compare_with_code,
};
pub use growth::{
    Culprit, Curve, FORETOLD, Form, FunctionGrowth, FunctionPart, LEAST_SIZES, Model, NotScalable, Scaling,
    Sized, growth,
};
pub use join::{Joined, join};
pub use line_pairs::{MatchedBy, PairedFile, PairedLines, line_pairs};
pub use lines::{LineChange, LineChanges, lines};
pub use name::{Spelling, spelled};
pub use pairing::{Group, GroupIndex, ModulePair, PairedBy, Pairing};
pub use side::of_samples;
pub use sides::{Cost, Sides};
pub use split::Split;
