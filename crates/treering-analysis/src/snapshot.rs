//! The change between two times of a program that runs.

use hashbrown::HashMap;
use treering_profile::{FunctionId, Profile};

use crate::graph::CallGraph;

/// Self costs and calls of all functions up to a time.
///
/// Functions are known by what they are called, since another reading of a growing profile may
/// number them in another way.
#[derive(Clone, Debug, Default)]
pub struct CostSnapshot {
    functions: HashMap<Key, Passed>,
}

/// The cost spent in a function, or in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// In the function itself, in the unit of the metric.
    pub self_cost: u64,
    /// How often it was called.
    pub calls: u64,
}

/// The cost between two times.
#[derive(Clone, Debug, Default)]
pub struct Change {
    functions: HashMap<Key, Passed>,
    /// In all functions together.
    pub all: Passed,
}

/// Name, linkage name, module and address of a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key(Box<str>, Box<str>, Box<str>, Option<u64>);

impl Key {
    fn of(profile: &Profile, function: FunctionId) -> Self {
        let function = &profile.functions[function];
        let module = function.module.map(|module| &profile.strings[profile.modules[module].path]);
        let text = |id| profile.strings[id].into();
        Self(
            text(function.name),
            text(function.linkage_name),
            module.unwrap_or_default().into(),
            function.address.map(|address| address.0),
        )
    }
}

impl CostSnapshot {
    /// The cost up to now; `profile` is the one that `graph` was made of.
    pub fn of(profile: &Profile, graph: &CallGraph) -> Self {
        let mut snapshot = Self::default();
        for cost in &graph.functions {
            let passed = snapshot.functions.entry(Key::of(profile, cost.function)).or_default();
            passed.add(Passed {
                self_cost: cost.self_cost.cost,
                calls: cost.calls.map_or(0, |calls| calls.all),
            });
        }
        snapshot
    }

    /// The cost since an earlier time. A cost that became less, as a corrected cost may by a
    /// little, did not change.
    pub fn since(&self, before: &Self) -> Change {
        let mut change = Change::default();
        for (key, now) in &self.functions {
            let passed = now.less(before.functions.get(key).copied().unwrap_or_default());
            change.all.add(passed);
            if passed != Passed::default() {
                change.functions.insert(key.clone(), passed);
            }
        }
        change
    }
}

impl Change {
    /// The cost spent in a function; `profile` is that of the later time.
    pub fn function(&self, profile: &Profile, function: FunctionId) -> Passed {
        self.functions.get(&Key::of(profile, function)).copied().unwrap_or_default()
    }

    /// The share of all cost in between; 0 when there was none.
    pub fn share(&self, passed: Passed) -> f64 {
        passed.self_cost as f64 / self.all.self_cost.max(1) as f64
    }
}

impl Passed {
    fn add(&mut self, other: Self) {
        self.self_cost = self.self_cost.saturating_add(other.self_cost);
        self.calls = self.calls.saturating_add(other.calls);
    }

    fn less(self, other: Self) -> Self {
        Self {
            self_cost: self.self_cost.saturating_sub(other.self_cost),
            calls: self.calls.saturating_sub(other.calls),
        }
    }
}

#[cfg(test)]
mod tests {
    use treering_profile::MetricId;

    use super::*;
    use crate::{Basis, Presentation};

    fn at(trace: &str) -> (Profile, CallGraph) {
        let profile = treering_testing::trace(trace);
        let graph = CallGraph::of(&profile, &Basis::of(&profile, MetricId::new(0)), Presentation::Contexts);
        (profile, graph)
    }

    fn passed(change: &Change, profile: &Profile, name: &str) -> Passed {
        let is_it = |(_, function): &(FunctionId, &treering_profile::Function)| {
            &profile.strings[function.name] == name
        };
        let (function, _) = profile.functions.iter().find(is_it).expect("it is in the trace");
        change.function(profile, function)
    }

    #[test]
    fn a_change_is_what_came_since_in_whatever_order_functions_are_numbered() {
        let (first, first_graph) = at("0 enter main\n 1 enter old\n 3 leave old\n 4 leave main");
        let later = "
            0 enter main
            1   enter new
            2   leave new
            3   enter old
            5   leave old
            6   enter old
            9   leave old
           10 leave main
        ";
        let (second, second_graph) = at(later);
        let before = CostSnapshot::of(&first, &first_graph);
        let change = CostSnapshot::of(&second, &second_graph).since(&before);
        assert_eq!(passed(&change, &second, "old"), Passed { self_cost: 3, calls: 1 });
        assert_eq!(passed(&change, &second, "new"), Passed { self_cost: 1, calls: 1 });
        assert_eq!(passed(&change, &second, "main"), Passed { self_cost: 2, calls: 0 });
        assert_eq!(change.all, Passed { self_cost: 6, calls: 2 });
        assert_eq!(change.share(Passed { self_cost: 3, calls: 0 }), 0.5);
    }

    #[test]
    fn nothing_has_changed_since_now() {
        let (profile, graph) = at("0 enter main\n 4 leave main");
        let now = CostSnapshot::of(&profile, &graph);
        let change = now.since(&now);
        assert_eq!(change.all, Passed::default());
        assert_eq!(change.share(Passed::default()), 0.0);
    }
}
