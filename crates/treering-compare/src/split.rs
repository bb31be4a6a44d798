//! How a change divides into more calls and cost per call.
//!
//! Of a function that was called c₀ times at s₀ each and is called c₁ times at s₁ each, the change of c·s is
//! exactly (c₁ − c₀)·(s₀ + s₁)/2, *more calls*, and (s₁ − s₀)·(c₀ + c₁)/2, *cost per call*. It is taken context by
//! context, so that other callers, which always made cheaper calls, are not a change of the cost per call. Contexts that
//! one profile has not are compared by caller, with what that caller's other calls cost where these are all, and then by
//! function.

use hashbrown::HashMap;

use crate::contexts::Contexts;
use crate::pairing::GroupIndex;
use crate::sides::Sides;

/// The two parts of a change; they add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// The part that more or fewer calls make.
    pub more_calls: i128,
    /// The part that dearer or cheaper calls make.
    pub cost_per_call: i128,
}

/// Costs and calls in both profiles.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Called {
    pub(crate) cost: Sides<u64>,
    pub(crate) calls: Sides<u64>,
}

impl Called {
    /// The part of the change that dearer or cheaper calls make.
    pub(crate) fn per_call(self) -> f64 {
        // Code that costs something ran, if not as a call: a thread begins with it.
        let calls = |calls: u64, cost: u64| if calls == 0 && cost > 0 { 1.0 } else { calls as f64 };
        let base = calls(self.calls.base, self.cost.base);
        let head = calls(self.calls.head, self.cost.head);
        if base == 0.0 || head == 0.0 {
            return 0.0;
        }
        (base + head) / 2.0 * (self.cost.head as f64 / head - self.cost.base as f64 / base)
    }

    /// The same of calls that one profile alone has, against what other calls by the same caller cost in the other one.
    fn per_call_beside(self, known: Self) -> f64 {
        let each = |cost: u64, calls: u64| cost as f64 / calls.max(1) as f64;
        let (base, head) = (self.calls.base, self.calls.head);
        if base > 0 {
            let then = each(known.cost.head, known.calls.head);
            base as f64 / 2.0 * (then - each(self.cost.base, base))
        } else {
            let before = each(known.cost.base, known.calls.base);
            head as f64 / 2.0 * (each(self.cost.head, head) - before)
        }
    }

    fn add(&mut self, other: Self) {
        self.cost.base += other.cost.base;
        self.cost.head += other.cost.head;
        self.calls.base += other.calls.base;
        self.calls.head += other.calls.head;
    }

    fn is_of_both(self) -> bool {
        let occurs = |calls: u64, cost: u64| calls > 0 || cost > 0;
        occurs(self.calls.base, self.cost.base) && occurs(self.calls.head, self.cost.head)
    }
}

/// By group, the part of the change of its self cost that dearer or cheaper calls make. Nothing for a function whose cost
/// in the contexts is not its own: those of functions that are parts of their callers there are in it.
pub(crate) fn per_call_by_context(contexts: &Contexts, self_costs: Sides<&[u64]>) -> Vec<Option<f64>> {
    let groups = self_costs.base.len();
    let mut in_contexts = Sides { base: vec![0_u64; groups], head: vec![0_u64; groups] };
    let mut per_call = vec![0.0; groups];
    let mut by_caller: HashMap<(GroupIndex, GroupIndex), Called> = HashMap::new();
    // Of contexts that both have.
    let mut known: HashMap<(GroupIndex, GroupIndex), Called> = HashMap::new();
    for node in &contexts.nodes {
        in_contexts.base[node.group] += node.self_cost.base;
        in_contexts.head[node.group] += node.self_cost.head;
        let called = Called { cost: node.self_cost, calls: node.calls };
        let caller = node.parent.map_or(0, |parent| contexts.nodes[parent].group);
        if called.is_of_both() {
            per_call[node.group] += called.per_call();
            known.entry((caller, node.group)).or_default().add(called);
        } else {
            by_caller.entry((caller, node.group)).or_default().add(called);
        }
    }
    let mut by_function: HashMap<GroupIndex, Called> = HashMap::new();
    for ((caller, group), called) in by_caller {
        if called.is_of_both() {
            per_call[group] += called.per_call();
        } else if let Some(known) = known.get(&(caller, group)) {
            per_call[group] += called.per_call_beside(*known);
        } else {
            by_function.entry(group).or_default().add(called);
        }
    }
    for (group, called) in by_function {
        per_call[group] += called.per_call();
    }
    let is_its_own = |group: usize| {
        in_contexts.base[group] == self_costs.base[group] && in_contexts.head[group] == self_costs.head[group]
    };
    per_call.into_iter().enumerate().map(|(group, part)| is_its_own(group).then_some(part)).collect()
}

/// Divides a change so that both parts are whole numbers.
pub(crate) fn split(change: i128, per_call: f64) -> Split {
    let cost_per_call = per_call.round() as i128;
    Split { more_calls: change - cost_per_call, cost_per_call }
}
