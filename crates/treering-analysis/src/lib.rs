//! What a profile says: flat profile, call graph, cycles, lines, trees, and how sure it all is.
//!
//! Everything here is a function of a [`Profile`](treering_profile::Profile) and does no I/O,
//! prints nothing and formats nothing: how numbers look is for `treering-report`. Costs stay
//! integers in the metric's unit, so that sums can be checked to the last unit.
//!
//! ```
//! use treering_analysis::{Basis, CallGraph, Presentation, SortKey, flat};
//!
//! let profile = treering_testing::trace("
//!      0 enter main
//!      1   enter work
//!      4   leave work
//!     10 leave main
//! ");
//! let time = profile.find_metric("time").expect("traces have a time");
//! let graph = CallGraph::of(&profile, &Basis::of(&profile, time), Presentation::Contexts);
//! let rows = flat(&profile, &graph, SortKey::SelfCost);
//! assert_eq!(rows[0].cost.self_cost.cost, 7);
//! assert_eq!(rows[0].cost.total_cost.cost, 10);
//! assert_eq!(rows[1].running_sum, 10);
//! ```
#![forbid(unsafe_code)]

mod arc;
mod basis;
mod call_tree;
mod contexts;
mod cycle;
mod find;
mod flat;
mod graph;
mod identity;
mod interval;
mod line_table;
mod measure;
mod propagate;
mod run_spread;
mod selection;
mod walk;

pub use arc::{Arc, ArcSource, Calls, Part};
pub use basis::{Basis, RUNS_FOR_SPREAD};
pub use call_tree::{CallTree, Direction, Hidden, Pruning, TreeNode, TreeRow};
pub use cycle::Cycle;
pub use find::{FindError, find_function};
pub use flat::{FlatRow, SortKey, flat, sort_functions};
pub use graph::{CallGraph, CycleCost, FunctionCost, Presentation};
pub use identity::{Identity, OUTSIDE, function_name, module_name};
pub use interval::{Interval, student, wilson};
pub use line_table::{LineCall, LineRow, LineTable};
pub use measure::{Measure, default_metric, samples_metric};
pub use run_spread::{FunctionSpread, RunSpread};
pub use selection::{FunctionSet, NoTree, Selection};
