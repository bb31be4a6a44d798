//! Arcs of sources that have no tree.

use crate::{FunctionId, LineId, MetricId};

/// Calls from one function to another, from a source that has arcs but no tree.
///
/// Self costs of such a profile are in one node for each function, directly below its thread's
/// root. A profile with a tree needs no arcs: they are measured from the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arc {
    /// The function that calls.
    pub caller: FunctionId,
    /// The function that is called.
    pub callee: FunctionId,
    /// The line of the call in the caller, where known.
    pub call_site: Option<LineId>,
    /// How often it was called.
    pub calls: u64,
    /// The total cost of the calls for the metrics where the source measured it. Where it did
    /// not, analysis apportions the callee's cost by calls.
    pub total_costs: Vec<(MetricId, u64)>,
}
