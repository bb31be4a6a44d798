//! The rows that a profile has in the tables.

use std::collections::HashMap;

use treering_analysis::default_metric;
use treering_profile::{FunctionId, MetricId, NodeId, Profile, RecursionRule, Unit};

use crate::identity::{Key, Named, function};

/// A run in the tables, besides its costs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The whole name of the run in its archive.
    pub name: String,
    /// The project, or program.
    pub project: String,
    /// The version of the program.
    pub version: String,
    /// The machine's name.
    pub host: String,
    /// The rank in a parallel program.
    pub rank: Option<u32>,
    /// The day on which it began, in UTC: `2026-11-27`.
    pub day: String,
    /// When it began, in nanoseconds since the Unix epoch.
    pub start_unix_ns: u64,
}

/// A run's cost in one metric, with the losses of the profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunCost {
    /// The metric.
    pub metric: String,
    /// The unit of its costs.
    pub unit: &'static str,
    /// Whether reports show this one: a run has one row of which this is true.
    pub is_main: bool,
    /// The cost of the whole run.
    pub cost: i64,
    /// The number of samples, where costs were sampled.
    pub samples: Option<i64>,
}

/// Losses of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Samples that were dropped.
    pub samples: i64,
    /// Samples whose stacks were cut.
    pub truncated_stacks: i64,
    /// Samples without a function.
    pub unresolved_samples: i64,
    /// Events of calls that were dropped.
    pub dropped_events: i64,
    /// Whether the file does not tell what was lost.
    pub is_unknown: bool,
    /// Whether the collector was ended before its time.
    pub is_unfinished: bool,
}

/// A chain of callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// The chain without its last call; nothing for a root.
    pub parent: Option<Key>,
    /// The function that was called last.
    pub function: Key,
    /// The number of calls.
    pub depth: i64,
}

/// The cost of a chain of callers in one metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StackCost {
    /// Its index in [`Rows::runs`].
    pub metric: usize,
    /// The chain.
    pub stack: Key,
    /// Its last function.
    pub function: Key,
    /// The cost of its last function alone.
    pub self_cost: i64,
    /// The number of samples, where costs were sampled.
    pub samples: Option<i64>,
    /// The sum of the squares of the samples' weights, where these differ.
    pub squares: Option<f64>,
    /// Calls, where they were counted; in rows of the first metric only.
    pub calls: Option<i64>,
}

/// The cost of a function in one metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionCost {
    /// Its index in [`Rows::runs`].
    pub metric: usize,
    /// The function.
    pub function: Key,
    /// Its own cost.
    pub self_cost: i64,
    /// Its cost with all that it called, recursion once; nothing where the profile has no stacks.
    pub total: Option<i64>,
    /// Calls, where they were counted; in rows of the first metric only.
    pub calls: Option<i64>,
}

/// The rows of a profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// The collector.
    pub collector: String,
    /// The rule for recursion, in one word.
    pub recursion: &'static str,
    /// Losses.
    pub lost: Lost,
    /// The run's cost in each metric.
    pub runs: Vec<RunCost>,
    /// Functions.
    pub functions: HashMap<Key, Named>,
    /// Chains of callers.
    pub stacks: HashMap<Key, Stack>,
    /// Costs of chains.
    pub costs: Vec<StackCost>,
    /// Costs of functions.
    pub function_costs: Vec<FunctionCost>,
}

/// The profile cannot be put into the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A cost is above 2^63, which no column of SQL engines holds.
    #[error("a cost is above 2^63, which no column of the tables can hold")]
    TooLarge,
    /// Two functions or chains have the same key.
    #[error("two functions or chains of callers have the same key")]
    SameKey,
}

impl Rows {
    /// The rows of a profile.
    ///
    /// # Errors
    /// A cost is too large for the tables.
    pub fn of(profile: &Profile) -> Result<Self, Unfit> {
        let losses = &profile.metadata.losses;
        let mut rows = Self {
            collector: profile.metadata.collector.clone(),
            recursion: recursion(profile.recursion),
            lost: Lost {
                samples: number(losses.lost_samples)?,
                truncated_stacks: number(losses.truncated_stacks)?,
                unresolved_samples: number(losses.unresolved_samples)?,
                dropped_events: number(losses.dropped_events)?,
                is_unknown: losses.unknown,
                is_unfinished: profile.metadata.unfinished,
            },
            ..Self::default()
        };
        let contexts = Contexts::of(profile, &mut rows)?;
        for metric in metrics(profile) {
            rows.add(profile, &contexts, metric)?;
        }
        Ok(rows)
    }

    fn add(&mut self, profile: &Profile, contexts: &Contexts, id: MetricId) -> Result<(), Unfit> {
        let (at, is_main) = (self.runs.len(), self.runs.is_empty());
        let (metric, tree) = (&profile.metrics[id.index()], &profile.tree);
        let (counter, weights) = (metric.counted_by(), metric.weights());
        let calls = (is_main && tree.has_calls()).then_some(());
        let mut costs: HashMap<Key, StackCost> = HashMap::new();
        for node in tree.nodes() {
            let own = tree.self_cost(id, node);
            let samples = counter.map(|counter| tree.self_cost(counter, node));
            let node_calls = calls.map(|()| tree.calls(node));
            if own == 0 && samples.unwrap_or(0) == 0 && node_calls.unwrap_or(0) == 0 {
                continue;
            }
            let (stack, function) = contexts.nodes[node.index()];
            let row = costs.entry(stack).or_insert(StackCost {
                metric: at,
                stack,
                function,
                self_cost: 0,
                samples: samples.map(|_| 0),
                squares: weights.map(|_| 0.0),
                calls: node_calls.map(|_| 0),
            });
            row.self_cost = add(row.self_cost, own)?;
            row.samples = samples.map(|samples| add(row.samples.unwrap_or(0), samples)).transpose()?;
            row.calls = node_calls.map(|calls| add(row.calls.unwrap_or(0), calls)).transpose()?;
            row.squares = weights.map(|weights| {
                let stored = tree.self_cost(MetricId::new(weights.squares), node);
                row.squares.unwrap_or(0.0) + stored as f64 * weights.per as f64
            });
        }
        let mut costs: Vec<StackCost> = costs.into_values().collect();
        costs.sort_unstable_by_key(|row| row.stack);
        self.function_costs.extend(contexts.functions(profile, id, at, calls.is_some())?);
        let samples = counter.map(|counter| number(profile.run_cost(counter))).transpose()?;
        self.runs.push(RunCost {
            metric: metric.name.clone(),
            unit: unit(metric.unit),
            is_main,
            cost: total(profile, id)?,
            samples,
        });
        self.costs.extend(costs);
        Ok(())
    }
}

/// The metrics that have rows: those of costs, without the numbers of samples behind others. The first is the main one, which
/// reports show.
fn metrics(profile: &Profile) -> Vec<MetricId> {
    let counters: Vec<MetricId> = profile.metrics.iter().filter_map(|metric| metric.counted_by()).collect();
    let costs = || profile.cost_metrics().map(|(id, _)| id);
    let mut ids: Vec<MetricId> = costs().filter(|id| !counters.contains(id)).collect();
    // A profile of numbers of samples alone has these.
    if ids.is_empty() {
        ids = costs().collect();
    }
    let main = default_metric(profile);
    ids.sort_by_key(|id| main != Some(*id));
    ids
}

/// The keys of all nodes, and the order in which a tree is walked.
struct Contexts {
    /// The chain of callers and the function of each node.
    nodes: Vec<(Key, Key)>,
    /// Nodes in the order of a walk that enters each after its parent, with how deep it is.
    walk: Vec<(NodeId, usize)>,
    has_totals: bool,
}

impl Contexts {
    fn of(profile: &Profile, rows: &mut Rows) -> Result<Self, Unfit> {
        let tree = &profile.tree;
        let mut known: HashMap<FunctionId, Key> = HashMap::new();
        let mut nodes: Vec<(Key, Key)> = Vec::with_capacity(tree.len());
        let mut depths: Vec<i64> = Vec::with_capacity(tree.len());
        let root = Key::root(profile.recursion);
        for node in tree.nodes() {
            let id = tree.function(node);
            let key = match known.get(&id) {
                Some(key) => *key,
                None => {
                    let (key, named) = function(profile, id);
                    let before = rows.functions.entry(key).or_insert_with(|| named.clone());
                    if *before != named {
                        return Err(Unfit::SameKey);
                    }
                    known.insert(id, key);
                    key
                }
            };
            let parent = tree.parent(node);
            let above = parent.map(|parent| nodes[parent.index()].0);
            let stack = above.map_or(root, |above| Key::call(above, key));
            let depth = parent.map_or(0, |parent| depths[parent.index()] + 1);
            let row = Stack { parent: above, function: key, depth };
            if *rows.stacks.entry(stack).or_insert(row) != row {
                return Err(Unfit::SameKey);
            }
            nodes.push((stack, key));
            depths.push(depth);
        }
        let has_totals = !profile.is_arcs_only() && profile.recursion != RecursionRule::Flat;
        Ok(Self { nodes, walk: walk(profile), has_totals })
    }

    /// The costs of functions in one metric.
    fn functions(
        &self,
        profile: &Profile,
        id: MetricId,
        metric: usize,
        with_calls: bool,
    ) -> Result<Vec<FunctionCost>, Unfit> {
        let tree = &profile.tree;
        let mut totals: Vec<u64> = tree.nodes().map(|node| tree.self_cost(id, node)).collect();
        for node in (0..tree.len()).rev().map(NodeId::from_usize) {
            if let Some(parent) = tree.parent(node) {
                let total = totals[node.index()];
                let above = &mut totals[parent.index()];
                *above = above.checked_add(total).ok_or(Unfit::TooLarge)?;
            }
        }
        let mut costs: HashMap<Key, FunctionCost> = HashMap::new();
        // How often each function is on the path from the root.
        let mut open: HashMap<Key, usize> = HashMap::new();
        let mut path: Vec<Key> = Vec::new();
        for &(node, depth) in &self.walk {
            for left in path.drain(depth..) {
                open.entry(left).and_modify(|times| *times -= 1);
            }
            let function = self.nodes[node.index()].1;
            let times = open.entry(function).or_default();
            let is_outermost = *times == 0;
            *times += 1;
            path.push(function);
            let row = costs.entry(function).or_insert(FunctionCost {
                metric,
                function,
                self_cost: 0,
                total: self.has_totals.then_some(0),
                calls: with_calls.then_some(0),
            });
            row.self_cost = add(row.self_cost, tree.self_cost(id, node))?;
            row.calls = row.calls.map(|calls| add(calls, tree.calls(node))).transpose()?;
            if is_outermost && let Some(total) = row.total {
                row.total = Some(add(total, totals[node.index()])?);
            }
        }
        let has_cost = |row: &FunctionCost| {
            row.self_cost != 0 || row.total.unwrap_or(0) != 0 || row.calls.unwrap_or(0) != 0
        };
        let mut costs: Vec<FunctionCost> = costs.into_values().filter(has_cost).collect();
        costs.sort_unstable_by_key(|row| row.function);
        Ok(costs)
    }
}

/// All nodes, each before those that it called, and these before its next sibling; with the depth of each.
fn walk(profile: &Profile) -> Vec<(NodeId, usize)> {
    let tree = &profile.tree;
    // Children of a node are linked: a column of first children and one of next siblings.
    let mut first = vec![None; tree.len()];
    let mut next = vec![None; tree.len()];
    for node in (0..tree.len()).rev().map(NodeId::from_usize) {
        if let Some(parent) = tree.parent(node) {
            next[node.index()] = first[parent.index()].replace(node);
        }
    }
    let roots = (0..tree.len()).rev().map(NodeId::from_usize).filter(|&node| tree.parent(node).is_none());
    let mut waiting: Vec<(NodeId, usize)> = roots.map(|root| (root, 0)).collect();
    let mut order = Vec::with_capacity(tree.len());
    while let Some((node, depth)) = waiting.pop() {
        order.push((node, depth));
        waiting.extend(next[node.index()].map(|sibling| (sibling, depth)));
        waiting.extend(first[node.index()].map(|child| (child, depth + 1)));
    }
    order
}

fn total(profile: &Profile, metric: MetricId) -> Result<i64, Unfit> {
    let mut costs = profile.tree.self_costs(metric).iter();
    costs.try_fold(0, |sum, &cost| add(sum, cost))
}

fn number(value: u64) -> Result<i64, Unfit> {
    i64::try_from(value).map_err(|_| Unfit::TooLarge)
}

fn add(sum: i64, value: u64) -> Result<i64, Unfit> {
    sum.checked_add(number(value)?).ok_or(Unfit::TooLarge)
}

fn recursion(rule: RecursionRule) -> &'static str {
    match rule {
        RecursionRule::Full => "full",
        RecursionRule::Direct => "direct",
        RecursionRule::SwiClassic => "swi-classic",
        RecursionRule::Flat => "flat",
    }
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
        _ => "count",
    }
}

#[cfg(test)]
mod tests {
    use treering_profile::{
        Frame, Function, FunctionKind, Metadata, Metric, Module, ModuleKind, StatedAddress, ThreadId,
    };

    use super::*;

    fn named(rows: &Rows, name: &str) -> Key {
        *rows.functions.iter().find(|(_, named)| named.name == name).expect("it is there").0
    }

    fn cost_of(rows: &Rows, name: &str) -> (i64, Option<i64>, Option<i64>) {
        let key = named(rows, name);
        let row = rows.function_costs.iter().find(|row| row.function == key).expect("it costs something");
        (row.self_cost, row.total, row.calls)
    }

    /// Compilers inline a recursive function into itself.
    #[test]
    fn recursion_through_inlined_copies_counts_once() {
        let mut profile = treering_testing::stacks("main;fib;fib 3\n main;fib 2");
        let name = profile.strings.intern("fib");
        let native = Function::named(name);
        let inlined = profile.functions.intern(Function { kind: FunctionKind::Inlined, ..native });
        let native = profile.functions.intern(native);
        let frames = [Frame::new(native), Frame::new(inlined), Frame::new(native)];
        profile.add_stack(ThreadId::new(0), &frames, None, &[(MetricId::new(0), 7)]);
        let rows = Rows::of(&profile).unwrap();
        assert_eq!(rows.functions.values().filter(|named| named.name == "fib").count(), 1);
        assert_eq!(cost_of(&rows, "fib").1, Some(cost_of(&rows, "fib").0));
    }

    /// Of a recording that was cut short, only addresses are known: together they are their file's code without a name.
    #[test]
    fn addresses_without_a_name_count_once_for_their_file() {
        let mut profile = treering_testing::stacks("main 1");
        let path = profile.strings.intern("/bin/solve");
        let module = profile.modules.intern(Module {
            path,
            build_id: [0x25, 0x7c, 0x84, 0x53].into(),
            kind: ModuleKind::Elf,
        });
        let [one, other] = [0x10, 0x20].map(|address| {
            profile.functions.intern(Function::at_address(Some(module), StatedAddress(address)))
        });
        let frames = [Frame::new(one), Frame::new(other)];
        profile.add_stack(ThreadId::new(0), &frames, None, &[(MetricId::new(0), 7)]);
        let rows = Rows::of(&profile).unwrap();
        assert_eq!(cost_of(&rows, "[solve] (build 257c8453)"), (7, Some(7), None));
    }

    /// Heap profiles of Go name the last of their four metrics.
    #[test]
    fn the_main_metric_is_the_one_that_reports_show() {
        let mut profile = treering_testing::stacks("main 1");
        profile.add_metric(Metric::exact("inuse_space", Unit::Bytes));
        let stated = |profile: &mut Profile, name: &str| {
            profile.metadata.parameters.insert(Metadata::DEFAULT_METRIC.to_owned(), name.to_owned());
            let rows = Rows::of(profile).unwrap();
            let main: Vec<_> = rows.runs.iter().filter(|run| run.is_main).collect();
            assert_eq!(main.len(), 1);
            main[0].metric.clone()
        };
        assert_eq!(stated(&mut profile, "inuse_space"), "inuse_space");
        let first = profile.metrics[0].name.clone();
        assert_eq!(stated(&mut profile, "none of these"), first);
    }

    #[test]
    fn recursion_counts_once_and_costs_add_up() {
        let profile = treering_testing::trace(
            "
             0 enter main
             1   enter fib
             2     enter fib
             5     leave fib
             6     enter other
             7       enter fib
             9       leave fib
            10     leave other
            11   leave fib
            12 leave main
            ",
        );
        let rows = Rows::of(&profile).unwrap();
        assert_eq!(cost_of(&rows, "main"), (2, Some(12), Some(1)));
        assert_eq!(cost_of(&rows, "fib"), (8, Some(10), Some(3)));
        assert_eq!(cost_of(&rows, "other"), (3 - 1, Some(4), Some(1)));
        let sum: i64 = rows.costs.iter().map(|row| row.self_cost).sum();
        assert_eq!((sum, rows.runs[0].cost, rows.runs[0].is_main), (12, 12, true));
        let deepest = rows.stacks.values().map(|stack| stack.depth).max();
        assert_eq!(deepest, Some(4));
    }

    #[test]
    fn equal_chains_of_two_profiles_have_equal_keys() {
        let text = "0 enter main\n1   enter work\n4   leave work\n5 leave main";
        let (one, two) = (treering_testing::trace(text), treering_testing::trace(text));
        let (one, two) = (Rows::of(&one).unwrap(), Rows::of(&two).unwrap());
        assert_eq!(one.stacks, two.stacks);
        assert_eq!(one.costs, two.costs);
    }

    #[test]
    fn a_cost_that_no_column_holds_is_refused() {
        let mut profile = treering_testing::trace("0 enter main\n1 leave main");
        let metric = metrics(&profile)[0];
        profile.tree.add_self_cost(metric, NodeId::new(0), u64::MAX / 2);
        assert_eq!(Rows::of(&profile), Err(Unfit::TooLarge));
    }
}
