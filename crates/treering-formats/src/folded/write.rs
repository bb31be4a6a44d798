//! Writes folded stacks.

use std::collections::HashMap;
use std::io::{self, Write};

use treering_profile::{FunctionId, MetricId, NodeId, Profile};

use crate::Dropped;
use crate::folded::{SEMICOLON, SUFFIXES};
use crate::label::{label, one_line};

/// Writes the stacks that have a self cost in `metric`, each once, with that cost.
///
/// Kernel, JIT-compiled and inlined functions are marked `_[k]`, `_[j]` and `_[i]`. A `;` in a
/// name is written as U+037E, which looks the same; line breaks as spaces. What was charged to a
/// thread itself is written as `[root]`.
///
/// # Errors
/// When the output fails.
///
/// # Panics
/// When the profile has no such metric.
pub fn write(profile: &Profile, metric: MetricId, mut output: impl Write) -> io::Result<Dropped> {
    let stacks = Stacks::of(profile, metric);
    for (at, stack) in stacks.stacks.iter().enumerate() {
        if stack.cost > 0 {
            stacks.write(at, &mut output)?;
        }
    }
    output.flush()?;
    Ok(dropped(profile, metric))
}

fn dropped(profile: &Profile, metric: MetricId) -> Dropped {
    let mut dropped = Dropped::default();
    let others = profile.metrics().filter(|&(other, described)| other != metric && !described.is_level);
    let others: Vec<_> = others.map(|(_, metric)| metric.name.as_str()).collect();
    if !others.is_empty() {
        dropped.note(format!(
            "all metrics but {}: {}",
            profile.metrics[metric.index()].name,
            others.join(", ")
        ));
    }
    dropped.note_if(profile.threads.len() > 1, "threads: their costs are added up");
    dropped.note_if(!profile.modules.is_empty(), "modules");
    dropped.note_if(!profile.lines.is_empty(), "source lines and call sites");
    dropped.note_if(profile.tree.has_calls(), "call counts");
    let arcs = profile.is_arcs_only();
    dropped.note_if(arcs, "arcs: the profile has no stacks, so each function is a stack of its own");
    dropped.note_details(profile);
    dropped
}

/// A stack: the one of its callers, and a name.
struct Stack {
    /// The index of the callers' stack; nothing for the outermost function.
    callers: Option<usize>,
    name: usize,
    cost: u64,
}

/// The stacks of all threads, where nodes whose names agree all the way are one.
struct Stacks {
    names: Vec<String>,
    stacks: Vec<Stack>,
    index: HashMap<(Option<usize>, usize), usize>,
}

impl Stacks {
    fn of(profile: &Profile, metric: MetricId) -> Self {
        let mut stacks = Self { names: Vec::new(), stacks: Vec::new(), index: HashMap::new() };
        let name_of = stacks.name_functions(profile);
        let mut stack_of: Vec<Option<usize>> = Vec::with_capacity(profile.tree.len());
        for node in profile.tree.nodes() {
            let cost = profile.tree.self_cost(metric, node);
            let stack = stacks.add(profile, node, &stack_of, &name_of, cost);
            stack_of.push(stack);
        }
        stacks
    }

    /// The index of every function's name; functions of the same name share one.
    fn name_functions(&mut self, profile: &Profile) -> Vec<usize> {
        let mut known: HashMap<String, usize> = HashMap::new();
        let functions = (0..profile.functions.len()).map(FunctionId::from_usize);
        functions
            .map(|function| {
                let name = written_name(profile, function);
                *known.entry(name.clone()).or_insert_with(|| {
                    self.names.push(name);
                    self.names.len() - 1
                })
            })
            .collect()
    }

    /// The stack of a node, with its cost; nothing for a root that has none.
    fn add(
        &mut self,
        profile: &Profile,
        node: NodeId,
        stack_of: &[Option<usize>],
        name_of: &[usize],
        cost: u64,
    ) -> Option<usize> {
        let parent = profile.tree.parent(node);
        let root = profile.tree.function(node) == Profile::ROOT;
        if root && cost == 0 {
            return None;
        }
        let callers = parent.and_then(|parent| stack_of[parent.index()]);
        // What a root calls starts a stack of its own, without the root.
        let below_root = parent.is_some_and(|parent| profile.tree.function(parent) == Profile::ROOT);
        let callers = callers.filter(|_| !below_root);
        let name = name_of[profile.tree.function(node).index()];
        let stacks = &mut self.stacks;
        let at = *self.index.entry((callers, name)).or_insert_with(|| {
            stacks.push(Stack { callers, name, cost: 0 });
            stacks.len() - 1
        });
        self.stacks[at].cost = self.stacks[at].cost.saturating_add(cost);
        Some(at)
    }

    fn write(&self, at: usize, output: &mut impl Write) -> io::Result<()> {
        let path = std::iter::successors(Some(at), |&at| self.stacks[at].callers);
        let mut names: Vec<_> = path.map(|at| self.names[self.stacks[at].name].as_str()).collect();
        names.reverse();
        writeln!(output, "{} {}", names.join(";"), self.stacks[at].cost)
    }
}

fn written_name(profile: &Profile, function: FunctionId) -> String {
    let kind = profile.functions[function].kind;
    let suffix = SUFFIXES.iter().find(|(_, marked)| *marked == kind).map_or("", |(suffix, _)| suffix);
    let name = label(profile, function);
    let name = name.replace(';', SEMICOLON.encode_utf8(&mut [0; 2]));
    one_line(&name).into_owned() + suffix
}
