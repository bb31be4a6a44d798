//! The call, or the function, that explains most of a change.
//!
//! Per call of a context, its cost t is its self cost s and, for each callee, r calls at t each. So the change of the run
//! is exactly the sum of c·Δs, which is the fault of functions, and of c·Δr·t, which is that of callers that call more
//! often: over all contexts, each averaged over (c of base, t of head) and (c of head, t of base).

use hashbrown::HashMap;

use crate::contexts::{ContextChange, Contexts};
use crate::difference::{ArcChange, FunctionChange};
use crate::pairing::GroupIndex;
use crate::sides::Sides;
use crate::split::Called;

/// Why the run costs more or less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A function calls another more or less often.
    Calls {
        /// The function that calls.
        caller: GroupIndex,
        /// How often it did.
        calls: Sides<u64>,
        /// A function that it calls no longer, and how often it did.
        instead_of: Option<(GroupIndex, u64)>,
    },
    /// A call costs more or less in the function itself.
    CostPerCall,
}

/// The call, or the function, that explains most of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The function that is called, or that costs more.
    pub function: GroupIndex,
    /// Why.
    pub reason: Reason,
    /// How much of the change it explains, in the metric's unit.
    pub part: i128,
}

/// The cause of `change`; nothing where there is no change, or nothing explains a tenth of it.
pub(crate) fn cause(
    change: i128,
    contexts: Option<&Contexts>,
    functions: &[FunctionChange],
    arcs: &[ArcChange],
    changed: impl Fn(GroupIndex) -> bool,
) -> Option<Cause> {
    let blame = match contexts {
        Some(contexts) => by_context(contexts),
        None => by_function(functions, arcs),
    };
    let explains = |part: f64| part * (change.signum() as f64);
    let matters = |part: f64| change != 0 && explains(part) * 10.0 >= change.unsigned_abs() as f64;
    // A function whose code is equal may cost more because of its input; one that was changed is the likelier cause.
    let is_changed =
        |&(caller, function): &(Option<GroupIndex>, GroupIndex)| changed(caller.unwrap_or(function));
    let parts = blame.iter().filter(|(_, part)| matters(**part));
    let (&(caller, function), &part) = parts.max_by(|a, b| {
        // Of equal parts the first by index, so that two runs agree.
        let by_part = explains(*a.1).total_cmp(&explains(*b.1)).then_with(|| b.0.cmp(a.0));
        is_changed(a.0).cmp(&is_changed(b.0)).then(by_part)
    })?;
    let reason = match caller {
        None => Reason::CostPerCall,
        Some(caller) => Reason::Calls {
            caller,
            calls: arcs
                .iter()
                .find(|arc| (arc.caller, arc.callee) == (caller, function))
                .map_or(Sides::default(), |arc| arc.calls),
            instead_of: instead_of(caller, function, arcs),
        },
    };
    Some(Cause { function, reason, part: part.round() as i128 })
}

/// By callee, and its caller where calls are the reason: how much of the change it explains.
type Blame = HashMap<(Option<GroupIndex>, GroupIndex), f64>;

fn by_context(contexts: &Contexts) -> Blame {
    let mut blame = Blame::new();
    for node in &contexts.nodes {
        if node.is_paired() {
            let own = Called { cost: node.self_cost, calls: node.calls };
            *blame.entry((None, node.group)).or_default() += own.per_call();
        }
        let Some(parent) = node.parent.map(|parent| &contexts.nodes[parent]) else { continue };
        // A context of one side only holds the cost of all contexts below it.
        if parent.is_paired() {
            *blame.entry((Some(parent.group), node.group)).or_default() += more_calls(parent, node);
        }
    }
    blame
}

/// The part of the change that a caller's context makes by calling more often.
fn more_calls(parent: &ContextChange, node: &ContextChange) -> f64 {
    let calls = |calls: u64, total: u64| if calls == 0 && total > 0 { 1.0 } else { calls as f64 };
    let of = |node: &ContextChange| {
        (calls(node.calls.base, node.total_cost.base), calls(node.calls.head, node.total_cost.head))
    };
    let (of_parent, of_node) = (of(parent), of(node));
    if of_parent.0 == 0.0 || of_parent.1 == 0.0 {
        return 0.0;
    }
    let each = |total: u64, calls: f64| (calls > 0.0).then(|| total as f64 / calls);
    let (base, head) = (each(node.total_cost.base, of_node.0), each(node.total_cost.head, of_node.1));
    let (Some(in_base), Some(in_head)) = (base.or(head), head.or(base)) else { return 0.0 };
    let rate = of_node.1 / of_parent.1 - of_node.0 / of_parent.0;
    rate * (of_parent.0 * in_head + of_parent.1 * in_base) / 2.0
}

/// Without contexts: the parts of the changes of self costs, calls by the caller that calls more than the others.
fn by_function(functions: &[FunctionChange], arcs: &[ArcChange]) -> Blame {
    let mut blame = Blame::new();
    for function in functions {
        let Some(split) = function.split else { continue };
        blame.insert((None, function.group), split.cost_per_call as f64);
        let direction = split.more_calls.signum();
        let callers = arcs.iter().filter(|arc| arc.callee == function.group);
        if let Some(arc) = callers.max_by_key(|arc| arc.calls.change() * direction) {
            blame.insert((Some(arc.caller), function.group), split.more_calls as f64);
        }
    }
    blame
}

/// The function that a caller called most often in the base, and calls no longer.
fn instead_of(caller: GroupIndex, callee: GroupIndex, arcs: &[ArcChange]) -> Option<(GroupIndex, u64)> {
    let gone = arcs.iter().filter(|arc| arc.caller == caller && arc.callee != callee);
    let gone = gone.filter(|arc| arc.calls.base > 0 && arc.calls.head == 0);
    gone.max_by_key(|arc| arc.calls.base).map(|arc| (arc.callee, arc.calls.base))
}
