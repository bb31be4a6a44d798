//! The nodes of V8's profiles, and what samples of them cost. Traces of Chrome hold the same.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use treering_profile::{
    Function, FunctionId, FunctionKind, Line, LineCost, MetricId, NodeId, Profile, ThreadId,
};

use crate::ReadError;

/// A function reached along one chain of callers.
#[derive(Deserialize)]
pub(crate) struct Node {
    pub(crate) id: u64,
    #[serde(rename = "callFrame")]
    pub(crate) call_frame: CallFrame,
    #[serde(default, rename = "hitCount")]
    pub(crate) hits: u64,
    #[serde(default)]
    pub(crate) children: Vec<u64>,
    /// The caller, where nodes name that rather than what they call.
    pub(crate) parent: Option<u64>,
    #[serde(default, rename = "positionTicks")]
    pub(crate) ticks: Vec<Tick>,
}

/// A function.
#[derive(Deserialize)]
pub(crate) struct CallFrame {
    #[serde(default, rename = "functionName")]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) url: String,
    /// The line of its definition, from 0; −1 where it has none.
    #[serde(default = "nowhere", rename = "lineNumber")]
    pub(crate) line: f64,
}

impl Node {
    /// A node of which only the name of its function and its caller are known.
    pub(crate) fn of_name(id: u64, name: &str, parent: Option<u64>) -> Self {
        let call_frame = CallFrame { name: name.to_owned(), url: String::new(), line: nowhere() };
        Self { id, call_frame, hits: 0, children: Vec::new(), parent, ticks: Vec::new() }
    }
}

fn nowhere() -> f64 {
    -1.0
}

/// How many samples ran in a line, from 1.
#[derive(Deserialize)]
pub(crate) struct Tick {
    pub(crate) line: u32,
    pub(crate) ticks: u64,
}

/// The function that stands for time in which nothing ran; it costs nothing.
const IDLE: &str = "(idle)";

/// The name of a function that has none.
pub(crate) const ANONYMOUS: &str = "(anonymous)";

/// The nodes of one profile as nodes of ours.
#[derive(Default)]
pub(crate) struct Nodes {
    /// By their ids; nothing for the function that stands for idle time.
    places: HashMap<u64, Option<NodeId>>,
    /// How long nothing ran, in nanoseconds.
    pub(crate) idle_ns: u64,
    /// How many nodes are named as callees and not there.
    pub(crate) missing: usize,
    /// Whether `(idle)` is a function, as in files that other profiles were written to.
    has_idle_function: bool,
}

impl Nodes {
    /// Adds the nodes below the root of a thread.
    pub(crate) fn add(profile: &mut Profile, thread: ThreadId, nodes: &[Node]) -> Result<Self, ReadError> {
        let mut all = Self::default();
        all.extend(profile, thread, nodes)?;
        Ok(all)
    }

    /// The same for a file that Treering wrote, in which `(idle)` is a function that cost something.
    pub(crate) fn add_ours(
        profile: &mut Profile,
        thread: ThreadId,
        nodes: &[Node],
    ) -> Result<Self, ReadError> {
        let mut all = Self { has_idle_function: true, ..Self::default() };
        all.extend(profile, thread, nodes)?;
        Ok(all)
    }

    /// Whether the callers of all nodes are among them.
    pub(crate) fn are_whole(nodes: &[Node]) -> bool {
        Self::default().has_callers_of(nodes)
    }

    /// Whether the callers of all nodes are among them, or are there already.
    pub(crate) fn has_callers_of(&self, nodes: &[Node]) -> bool {
        let new: HashSet<u64> = nodes.iter().map(|node| node.id).collect();
        let known = |id: u64| new.contains(&id) || self.places.contains_key(&id);
        nodes.iter().all(|node| node.parent.is_none_or(known))
    }

    /// Adds more nodes, whose callers may be among those that are there.
    pub(crate) fn extend(
        &mut self,
        profile: &mut Profile,
        thread: ThreadId,
        nodes: &[Node],
    ) -> Result<(), ReadError> {
        let index: HashMap<u64, usize> = nodes.iter().enumerate().map(|(at, node)| (node.id, at)).collect();
        let mut below: Vec<Vec<usize>> = nodes.iter().map(|_| Vec::new()).collect();
        let mut has_caller = vec![false; nodes.len()];
        let mut open: Vec<(usize, Option<u64>)> = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            for &child in &node.children {
                // Parts of a recording may be missing; what ran there has no samples here either.
                let Some(&child) = index.get(&child) else {
                    self.missing += 1;
                    continue;
                };
                if std::mem::replace(&mut has_caller[child], true) {
                    return Err(tangled(nodes[child].id));
                }
                below[at].push(child);
            }
        }
        for (at, node) in nodes.iter().enumerate() {
            let Some(parent) = node.parent else { continue };
            if has_caller[at] {
                continue;
            }
            has_caller[at] = true;
            match index.get(&parent) {
                Some(&parent) => below[parent].push(at),
                None if self.places.contains_key(&parent) => open.push((at, Some(parent))),
                None => return Err(missing(parent)),
            }
        }
        open.extend((0..nodes.len()).filter(|&at| !has_caller[at]).map(|at| (at, None)));
        let mut placed = 0;
        while let Some((at, caller)) = open.pop() {
            placed += 1;
            self.place(profile, thread, &nodes[at], caller);
            open.extend(below[at].iter().map(|&child| (child, Some(nodes[at].id))));
        }
        // A node that is not reached from a node without a caller is in a circle.
        match nodes.iter().find(|node| !self.places.contains_key(&node.id)) {
            Some(node) if placed < nodes.len() => Err(tangled(node.id)),
            _ => Ok(()),
        }
    }

    fn place(&mut self, profile: &mut Profile, thread: ThreadId, node: &Node, caller: Option<u64>) {
        let root = profile.threads[thread.index()].root;
        let name = node.call_frame.name.as_str();
        let place = match (caller, name) {
            (None, "(root)") => Some(root),
            (_, IDLE) if node.call_frame.url.is_empty() && !self.has_idle_function => None,
            _ => {
                let above = caller.and_then(|caller| self.places.get(&caller).copied().flatten());
                let function = function(profile, &node.call_frame);
                Some(profile.tree.child(above.unwrap_or(root), function, None))
            }
        };
        self.places.insert(node.id, place);
    }

    /// Whether a node is there.
    pub(crate) fn has(&self, id: u64) -> bool {
        self.places.contains_key(&id)
    }

    /// Where costs of a node go; inner nothing for idle time.
    pub(crate) fn find(&self, id: u64) -> Result<Option<NodeId>, ReadError> {
        self.places.get(&id).copied().ok_or_else(|| missing(id))
    }

    /// Charges a sample of a node and the time until the next one.
    pub(crate) fn charge(
        &mut self,
        profile: &mut Profile,
        id: u64,
        [time, samples]: [MetricId; 2],
        duration_ns: u64,
    ) -> Result<(), ReadError> {
        self.charge_time(profile, id, time, duration_ns)?;
        self.charge_samples(profile, id, samples, 1)
    }

    pub(crate) fn charge_time(
        &mut self,
        profile: &mut Profile,
        id: u64,
        time: MetricId,
        duration_ns: u64,
    ) -> Result<(), ReadError> {
        match self.find(id)? {
            Some(node) => profile.tree.add_self_cost(time, node, duration_ns),
            None => self.idle_ns = self.idle_ns.saturating_add(duration_ns),
        }
        Ok(())
    }

    pub(crate) fn charge_samples(
        &self,
        profile: &mut Profile,
        id: u64,
        samples: MetricId,
        count: u64,
    ) -> Result<(), ReadError> {
        if let Some(node) = self.find(id)? {
            profile.tree.add_self_cost(samples, node, count);
            let losses = &mut profile.metadata.losses;
            losses.samples = losses.samples.saturating_add(count);
        }
        Ok(())
    }

    /// The lines in which samples of a node ran.
    pub(crate) fn charge_lines(
        &self,
        profile: &mut Profile,
        node: &Node,
        samples: MetricId,
    ) -> Result<(), ReadError> {
        let Some(place) = self.find(node.id)? else { return Ok(()) };
        let file = profile.strings.intern(&node.call_frame.url);
        // Never more than the node has itself: lines are parts of its cost.
        let mut left = profile.tree.self_cost(samples, place);
        for tick in node.ticks.iter().filter(|tick| tick.line > 0) {
            let cost = tick.ticks.min(left);
            left -= cost;
            let line = profile.lines.intern(Line { file, line: tick.line });
            profile.line_costs.push(LineCost { node: place, line, metric: samples, cost });
        }
        Ok(())
    }
}

fn tangled(id: u64) -> ReadError {
    ReadError::at(format_args!("node {id}"), "it has two callers or calls itself, so the nodes are no tree")
}

fn missing(id: u64) -> ReadError {
    ReadError::at(format_args!("node {id}"), "a sample or node names it, and it is missing")
}

fn function(profile: &mut Profile, frame: &CallFrame) -> FunctionId {
    let in_brackets = frame.name.starts_with('(') && frame.name.ends_with(')');
    let (name, kind) = match frame.name.as_str() {
        "" => (ANONYMOUS, FunctionKind::Anonymous),
        ANONYMOUS => (ANONYMOUS, FunctionKind::Anonymous),
        name if frame.url.is_empty() && in_brackets => (name, FunctionKind::Builtin),
        name => (name, FunctionKind::Interpreted),
    };
    let line = if frame.line >= 0.0 && frame.line < f64::from(u32::MAX) { frame.line as u32 + 1 } else { 0 };
    let name = profile.strings.intern(name);
    let file = profile.strings.intern(&frame.url);
    profile.functions.intern(Function { file, line, kind, ..Function::named(name) })
}
