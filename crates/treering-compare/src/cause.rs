//! The call, or the function, that explains most of a change.
//!
//! Per call of a context, its cost t is its self cost s and, for each callee, r calls at t each. So the change of the run
//! is exactly the sum of c·Δs, which is the fault of functions, and of c·Δr·t, which is that of callers that call more
//! often: over all contexts, each averaged over (c of base, t of head) and (c of head, t of base).
//!
//! Where the code of both programs is known, libraries of one build are parts of their callers for this: what they cost
//! more is due to what they are asked for.

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
    CostPerCall {
        /// The other costs that are counted as its own; nothing where its self cost is all.
        with: Option<Parts>,
    },
    /// It is the only function with other code that ran, and most of the change is elsewhere: where this says.
    ChangedCode {
        /// The function that calls, where calls are the reason.
        caller: Option<GroupIndex>,
        /// The function that is called, or that costs more.
        callee: GroupIndex,
        /// How often this caller called it.
        calls: Sides<u64>,
    },
}

/// Costs that are counted as those of a function, and are not spent in the function itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The cost of the function with all of it.
    pub cost: Sides<u64>,
    /// The function that costs most of those that are parts of their callers in the tree.
    pub function: Option<GroupIndex>,
    /// How many of these there are.
    pub functions: usize,
    /// Whether the libraries that it calls are counted, as these make a part of the change.
    pub has_libraries: bool,
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
    /// The change that makes up for most of it, where larger changes in both directions nearly cancel.
    pub against: Option<Against>,
}

/// A change in the other direction than that of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Against {
    /// The function that calls more or less often, where calls are the reason.
    pub caller: Option<GroupIndex>,
    /// The function that is called, or that costs more or less.
    pub function: GroupIndex,
    /// How much it changes, in the metric's unit.
    pub part: i128,
}

/// The facts about the code of both programs.
pub(crate) struct Code<'a> {
    /// Whether the code of a function differs.
    pub(crate) is_changed: &'a dyn Fn(GroupIndex) -> bool,
    /// Whether the change of a function may be chance.
    pub(crate) is_chance: &'a dyn Fn(GroupIndex) -> bool,
    /// Whether a function is of no module whose code was compared, while others are: of a library of one build, or a stub
    /// that leads to one.
    pub(crate) is_foreign: &'a dyn Fn(GroupIndex) -> bool,
    /// The only function that ran whose code differs, if all code and all constants were compared.
    pub(crate) only_changed: Option<GroupIndex>,
}

/// The cause of `change`; nothing where there is no change, or nothing explains a tenth of it.
pub(crate) fn cause(
    change: i128,
    contexts: Option<&Contexts>,
    functions: &[FunctionChange],
    arcs: &[ArcChange],
    code: &Code<'_>,
) -> Option<Cause> {
    if change == 0 {
        return None;
    }
    let mut blame = match contexts {
        Some(contexts) => by_context(contexts, code.is_foreign),
        None => by_function(functions, arcs),
    };
    blame.retain(|&(_, function), _| !(code.is_chance)(function));
    let found = likeliest(&blame, change, code.is_changed);
    let is_named =
        |only| found.is_some_and(|((caller, function), _)| caller == Some(only) || function == only);
    if let Some(only) = code.only_changed.filter(|&only| !is_named(only) && !(code.is_chance)(only)) {
        let ((caller, callee), part) = found.unwrap_or(((None, only), 0.0));
        let calls = caller.map_or(Sides::default(), |caller| calls(caller, callee, arcs));
        let reason = Reason::ChangedCode { caller, callee, calls };
        let against = against(&blame, change, part);
        return Some(Cause { function: only, reason, part: part.round() as i128, against });
    }
    let (mut key, mut part) = found?;
    let against = against(&blame, change, part);
    if let ((None, function), Some(contexts)) = (key, contexts)
        && let Some((callee, of_calls)) = library_call(contexts, function, part, code.is_foreign)
    {
        (key, part) = ((Some(function), callee), of_calls);
    }
    let (caller, function) = key;
    let reason = match caller {
        None => Reason::CostPerCall {
            with: contexts.and_then(|contexts| parts(contexts, function, code.is_foreign)),
        },
        Some(caller) => Reason::Calls {
            caller,
            calls: calls(caller, function, arcs),
            instead_of: instead_of(caller, function, arcs),
        },
    };
    Some(Cause { function, reason, part: part.round() as i128, against })
}

/// The largest change in the other direction, where `part` is many times the change of the run.
fn against(blame: &Blame, change: i128, part: f64) -> Option<Against> {
    const TIMES: f64 = 4.0;
    if part.abs() < TIMES * change.unsigned_abs() as f64 {
        return None;
    }
    let most = blame.iter().min_by(|a, b| {
        let explained = |part: f64| part * change.signum() as f64;
        explained(*a.1).total_cmp(&explained(*b.1)).then_with(|| a.0.cmp(b.0))
    });
    let (&(caller, function), &part) = most.filter(|(_, part)| **part * (change.signum() as f64) < 0.0)?;
    Some(Against { caller, function, part: part.round() as i128 })
}

/// The change that explains most, if it explains a tenth: of those with changed code, if there are any. A function
/// whose code is equal may cost more because of its input; one that was changed is the likelier cause.
fn likeliest(blame: &Blame, change: i128, changed: impl Fn(GroupIndex) -> bool) -> Option<(Key, f64)> {
    let explains = |part: f64| part * (change.signum() as f64);
    let matters = |part: f64| explains(part) * 10.0 >= change.unsigned_abs() as f64;
    let is_changed = |&(caller, function): &Key| changed(caller.unwrap_or(function));
    let parts = blame.iter().filter(|(_, part)| matters(**part));
    let found = parts.max_by(|a, b| {
        // Of equal parts the first by index, so that two runs agree.
        let by_part = explains(*a.1).total_cmp(&explains(*b.1)).then_with(|| b.0.cmp(a.0));
        is_changed(a.0).cmp(&is_changed(b.0)).then(by_part)
    });
    found.map(|(key, part)| (*key, *part))
}

/// The function of a library that a function calls more often, if that makes half of `part`, and how much.
fn library_call(
    contexts: &Contexts,
    caller: GroupIndex,
    part: f64,
    is_foreign: &dyn Fn(GroupIndex) -> bool,
) -> Option<(GroupIndex, f64)> {
    let blame = by_context(contexts, &|_| false);
    let calls = blame.into_iter().filter_map(|((from, callee), of_calls)| {
        (from == Some(caller) && is_foreign(callee)).then_some((callee, of_calls))
    });
    let most = calls.max_by(|a, b| (a.1 / part).total_cmp(&(b.1 / part)).then_with(|| b.0.cmp(&a.0)));
    most.filter(|(_, of_calls)| of_calls / part >= 0.5)
}

/// The costs that are counted as those of a function: of functions that are parts of it, and of libraries unless they
/// cost the same.
fn parts(
    contexts: &Contexts,
    function: GroupIndex,
    is_foreign: &dyn Fn(GroupIndex) -> bool,
) -> Option<Parts> {
    let (place, costs) = fold(contexts, is_foreign);
    let (mut own, mut all) = (Sides::<u64>::default(), Sides::<u64>::default());
    for (at, node) in contexts.nodes.iter().enumerate() {
        if node.group == function && place[at] == at {
            own = Sides { base: own.base + node.self_cost.base, head: own.head + node.self_cost.head };
            all = Sides { base: all.base + costs[at].base, head: all.head + costs[at].head };
        }
    }
    let has_libraries = all.change() != own.change();
    let of_it = contexts.parts.iter().filter(|((caller, _), cost)| *caller == function && !cost.is_zero());
    let inlined: Vec<(GroupIndex, Sides<u64>)> = of_it.map(|((_, part), cost)| (*part, *cost)).collect();
    let most = inlined.iter().max_by_key(|(part, cost)| (cost.base.max(cost.head), std::cmp::Reverse(*part)));
    let cost = if has_libraries { all } else { own };
    (has_libraries || most.is_some()).then(|| Parts {
        cost,
        function: most.map(|(part, _)| *part),
        functions: inlined.len(),
        has_libraries,
    })
}

/// How often one function called another.
fn calls(caller: GroupIndex, callee: GroupIndex, arcs: &[ArcChange]) -> Sides<u64> {
    let arc = arcs.iter().find(|arc| (arc.caller, arc.callee) == (caller, callee));
    arc.map_or(Sides::default(), |arc| arc.calls)
}

/// By callee, and its caller where calls are the reason: how much of the change it explains.
type Blame = HashMap<Key, f64>;
type Key = (Option<GroupIndex>, GroupIndex);

/// Contexts of functions that are folded are parts of the nearest caller that is not.
fn by_context(contexts: &Contexts, is_folded: &dyn Fn(GroupIndex) -> bool) -> Blame {
    let mut blame = Blame::new();
    let nodes = &contexts.nodes;
    let (place, costs) = fold(contexts, is_folded);
    for (at, node) in nodes.iter().enumerate().filter(|&(at, _)| place[at] == at) {
        if node.is_paired() {
            let own = Called { cost: costs[at], calls: node.calls };
            *blame.entry((None, node.group)).or_default() += own.per_call();
        }
        let Some(parent) = node.parent.map(|parent| &nodes[place[parent]]) else { continue };
        // A context of one side only holds the cost of all contexts below it.
        if parent.is_paired() {
            *blame.entry((Some(parent.group), node.group)).or_default() += more_calls(parent, node);
        }
    }
    blame
}

/// By context, the one that it is a part of, and the self costs with those of its parts. What has no caller but folded ones,
/// as the start of a program, is a part of none.
fn fold(contexts: &Contexts, is_folded: &dyn Fn(GroupIndex) -> bool) -> (Vec<usize>, Vec<Sides<u64>>) {
    let nodes = &contexts.nodes;
    let mut place: Vec<usize> = (0..nodes.len()).collect();
    let mut costs: Vec<Sides<u64>> = nodes.iter().map(|node| node.self_cost).collect();
    let groups = nodes.iter().map(|node| node.group + 1).max().unwrap_or(0);
    let folds: Vec<bool> = (0..groups).map(is_folded).collect();
    for (at, node) in nodes.iter().enumerate() {
        let Some(parent) = node
            .parent
            .map(|parent| place[parent])
            .filter(|&of| folds[node.group] && !folds[nodes[of].group])
        else {
            continue;
        };
        place[at] = parent;
        costs[parent].base += node.self_cost.base;
        costs[parent].head += node.self_cost.head;
    }
    (place, costs)
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
