//! Arcs of the call graph.

use treering_profile::FunctionId;

use crate::measure::Measure;

/// How often a function was called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// All calls, recursive ones included.
    pub all: u64,
    /// The calls it made to itself directly.
    pub recursive: u64,
}

/// A part of a function's total cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The part of it that was spent in the callee's own code.
    pub self_cost: Measure,
    /// All of it.
    pub total: Measure,
}

impl Part {
    /// The part of it that was spent in functions that the callee called.
    pub fn children(&self) -> Measure {
        self.total.saturating_sub(self.self_cost)
    }
}

impl std::ops::AddAssign for Part {
    fn add_assign(&mut self, other: Self) {
        self.self_cost += other.self_cost;
        self.total += other.total;
    }
}

/// How the cost of an arc is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArcSource {
    /// It was measured: by the tree, or by the source of an arc-only profile.
    Measured,
    /// The callee's cost was divided among its callers in proportion to their calls, as gprof
    /// does, which is wrong when some callers ask for more than others.
    Apportioned,
}

/// Calls from one function to another.
///
/// Recursion makes it impossible that one number for each arc adds up both to the callee's
/// total, over its callers, and to the caller's total, over its callees. So there are two
/// contributions, one for each sum, beside the total cost. Without recursion all three are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arc {
    /// The function that calls; nothing when it is unknown (spontaneous).
    pub caller: Option<FunctionId>,
    /// The function that is called.
    pub callee: FunctionId,
    /// How often, where calls were counted; else 0.
    pub calls: u64,
    /// The total cost of the callee's activations made from this caller, nested ones of the
    /// same arc counted once.
    pub total_cost: Measure,
    /// This caller's contribution to the callee's total: the callee's outermost activations, divided by their
    /// callers. Over all callers it adds up to the callee's total.
    pub from_caller: Part,
    /// This callee's part of the caller's children cost: all cost below an activation
    /// of the caller, divided by what the innermost such activation had called. Over all callees
    /// it adds up to the caller's total less its self cost.
    pub to_callee: Part,
    /// How the costs are known.
    pub source: ArcSource,
}

impl Arc {
    /// Whether a function calls itself.
    pub fn is_recursive(&self) -> bool {
        self.caller == Some(self.callee)
    }
}
