//! The content of a profile: flat profile, call graph, cycles, lines, trees, and how sure it all is.
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

mod address_histogram;
mod apportion;
mod arc;
mod arc_selection;
mod arc_tree;
mod basis;
mod block_list;
mod block_table;
mod build;
mod call_tree;
mod category;
mod contexts;
mod correct;
mod counted_calls;
mod coverage;
mod cycle;
mod detail;
mod exact_cost;
mod find;
mod flat;
#[cfg(test)]
mod flat_profile;
mod flat_totals;
mod graph;
mod growth;
mod identity;
mod interval;
mod join;
mod line_table;
mod measure;
mod own;
mod owner;
mod point_series;
mod preorder;
mod propagate;
mod reliability;
mod run_spread;
mod selection;
mod snapshot;
mod time_course;
mod wakers;
mod walk;

pub use address_histogram::{AddressBin, AddressHistogram, Sampled};
pub use apportion::with_apportioned_arcs;
pub use arc::{Arc, ArcSource, Calls, Part};
pub use basis::{Basis, Correction, RUNS_FOR_SPREAD};
pub use block_list::{BlockList, ListedBlock};
pub use block_table::{BlockRow, BlockTable, Exit, InstructionRow, Ways};
pub use build::tell_builds_apart;
pub use call_tree::{CallTree, Direction, Hidden, Pruning, SharedNode, TreeNode, TreeRow};
pub use category::{Categories, Category};
pub use correct::{Corrected, correct};
pub use coverage::{
    BranchCoverage, Coverage, CoveredModule, FileCoverage, FunctionCoverage, LineCoverage, block_ends,
    idle_code,
};
pub use cycle::Cycle;
pub use detail::{Detail, Details, SizeBucket};
pub use exact_cost::ExactCost;
pub use find::{FindError, find_function};
pub use flat::{FlatRow, SortKey, flat, sort_functions};
pub use flat_totals::{TotalSource, folded_cost};
pub use graph::{CallGraph, CycleCost, FunctionCost, Presentation};
pub use growth::Growth;
pub use identity::{Identity, OUTSIDE, function_name, module_name};
pub use interval::{Interval, mean_margin, student, t_975, wilson};
pub use join::{Joined, NotJoinable, Unmatched, join};
pub use line_table::{LineCall, LineRow, LineTable};
pub use measure::{Measure, add_calls_metric, default_metric, samples_metric};
pub use owner::{OwnerCost, process_costs, thread_costs};
pub use point_series::{PointSeries, Series, value_at};
pub use preorder::{places, preorder};
pub use propagate::{ExcessiveArcs, limit_arcs};
pub use reliability::Reliability;
pub use run_spread::{FunctionSpread, RunSpread};
pub use selection::{FunctionSet, NoTree, Selection};
pub use snapshot::{Change, CostSnapshot, Passed};
pub use time_course::{ThreadCourse, TimeCourse};
pub use wakers::{WaitingPlace, Waker, wait_metrics, waiting_places};
