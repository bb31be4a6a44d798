//! Writes folded stacks.

use std::collections::HashMap;
use std::io::{self, Write};

use treering_profile::{FunctionId, MetricId, NodeId, Profile};

use crate::Dropped;
use crate::dropped::Part;
use crate::folded::line::is_comment;
use crate::folded::{HASH, SEMICOLON, SPACE, SUFFIXES};
use crate::label::{label, one_line};

/// Writes the stacks that have a self cost in `metric`, each once, with that cost.
///
/// Kernel, JIT-compiled and inlined functions are marked `_[k]`, `_[j]` and `_[i]`. A `;` in a
/// name is written as U+037E, the blank before a number at its end as U+2007, the `#` of what looks like a comment as U+FF03, which look the same;
/// line breaks as spaces. What was charged to a thread itself is written as `[root]`.
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
    let mut dropped = dropped(profile, metric);
    dropped.note_shared(stacks.shared, "name");
    dropped.note_if(
        stacks.changed,
        "characters that folded stacks cannot have in names: `;` is written as U+037E, the blank before a number \
         at the end as U+2007, the `#` of a name that looks like a comment as U+FF03, line breaks as blanks",
    );
    Ok(dropped)
}

/// How many bytes [`write()`] writes: deep trees make long lines.
///
/// # Panics
/// When the profile has no such metric.
pub fn size(profile: &Profile, metric: MetricId) -> u64 {
    Stacks::of(profile, metric).size()
}

fn dropped(profile: &Profile, metric: MetricId) -> Dropped {
    use Part::{Arcs, Calls, Command, Lines, Marks, Modules, Threads, Times};
    let mut dropped = Dropped::default();
    dropped.note_other_metrics(profile, metric, None);
    dropped.note_sampling(profile, metric);
    dropped.note_parts(profile, &[Command, Threads, Times, Marks, Modules, Lines, Calls, Arcs]);
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
    /// How many functions that cost something are written under another's name.
    shared: usize,
    /// Whether characters of names were replaced.
    changed: bool,
}

impl Stacks {
    fn of(profile: &Profile, metric: MetricId) -> Self {
        let (names, all, index) = (Vec::new(), Vec::new(), HashMap::new());
        let mut stacks = Self { names, stacks: all, index, shared: 0, changed: false };
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
        let mut used = vec![false; profile.functions.len()];
        profile.tree.function_column().iter().for_each(|function| used[function.index()] = true);
        let functions = (0..profile.functions.len()).map(FunctionId::from_usize);
        functions
            .map(|function| {
                let (name, changed) = written_name(profile, function);
                let used = used[function.index()];
                self.changed |= changed && used;
                self.shared += usize::from(used && known.contains_key(&name));
                *known.entry(name.clone()).or_insert_with(|| {
                    self.names.push(name);
                    self.names.len() - 1
                })
            })
            .collect()
    }

    fn size(&self) -> u64 {
        // Callers come before what they call.
        let mut lengths: Vec<u64> = Vec::with_capacity(self.stacks.len());
        let mut size = 0_u64;
        for stack in &self.stacks {
            let above = stack.callers.map_or(0, |callers| lengths[callers] + 1);
            let length = above + self.names[stack.name].len() as u64;
            lengths.push(length);
            if stack.cost > 0 {
                let digits = u64::from(stack.cost.ilog10()) + 1;
                size = size.saturating_add(length + digits + 2);
            }
        }
        size
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
        // A function that a root calls starts a stack of its own, without the root.
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

/// The name of a function in the file, and whether characters of it were replaced.
fn written_name(profile: &Profile, function: FunctionId) -> (String, bool) {
    let kind = profile.functions[function].kind;
    let suffix = SUFFIXES.iter().find(|(_, marked)| *marked == kind).map_or("", |(suffix, _)| suffix);
    let label = label(profile, function);
    let mut name = one_line(&label).replace(';', SEMICOLON.encode_utf8(&mut [0; 2]));
    if is_comment(format!("{name} 1").as_bytes()) {
        name.replace_range(..1, HASH.encode_utf8(&mut [0; 3]));
    }
    if let Some(at) = name.rfind(' ').filter(|&at| suffix.is_empty() && is_number(&name[at + 1..])) {
        name.replace_range(at..=at, SPACE.encode_utf8(&mut [0; 3]));
    }
    let changed = name != *label;
    (name + suffix, changed)
}

/// Whether a reader would take it for a weight.
fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.'))
}
