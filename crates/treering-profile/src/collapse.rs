//! Threads and runs added up.

use std::collections::HashMap;

use crate::code::Moved;
use crate::{Activations, Frame, LineCost, NodeId, Profile, Thread, ThreadId};

impl Profile {
    /// The same profile with its threads added up: nodes that agree in their whole chain of
    /// (function, call site) become one.
    ///
    /// Threads for which `key` gives the same number share a tree, under the name and number of
    /// the first; those for which it gives nothing are left out, with their costs. Runs and
    /// processes stay listed.
    pub fn collapse_threads(&self, key: impl Fn(&Thread) -> Option<u32>) -> Profile {
        let mut collapsed = self.without_tree();
        let mut nodes: Vec<Option<NodeId>> = vec![None; self.tree.len()];
        let mut roots = std::collections::BTreeMap::new();
        for thread in &self.threads {
            let Some(key) = key(thread) else { continue };
            let root = *roots.entry(key).or_insert_with(|| {
                let added = collapsed.add_thread(thread.process, thread.tid, thread.name.clone());
                collapsed.threads[added.index()].root
            });
            nodes[thread.root.index()] = Some(root);
        }
        for node in self.tree.nodes() {
            if let Some(parent) = self.tree.parent(node) {
                let Some(parent) = nodes[parent.index()] else { continue };
                let Frame { function, call_site } = self.frame(node);
                nodes[node.index()] = Some(collapsed.tree.child(parent, function, call_site));
            }
        }
        collapsed.add_costs_of(self, &nodes);
        let metrics: Vec<_> = self.metrics().map(|(metric, _)| metric).collect();
        collapsed.add_details_of(self, &nodes, &metrics);
        collapsed.add_points_of(self, &nodes, &metrics);
        collapsed.add_ended_waits_of(self, &nodes);
        let of = |node: NodeId| nodes[node.index()];
        collapsed.take_timeline_of(self, &metrics, |node, line| Some((of(node)?, line)), of);
        collapsed.add_code_of(self, &nodes);
        collapsed.add_address_costs_of(self, &nodes);
        collapsed.compact_line_costs();
        collapsed
    }

    /// Adds the counts of code of `from`, whose tables are the same, to the threads that its
    /// threads stand for here by their roots; those of threads that stand for none are left out.
    pub fn add_code_of(&mut self, from: &Profile, nodes: &[Option<NodeId>]) {
        if from.code.is_empty() {
            return;
        }
        let roots: HashMap<NodeId, ThreadId> = self.threads_by_root();
        let thread = |thread: ThreadId| nodes[from.threads[thread.index()].root.index()];
        self.code.spaces = from.code.spaces.clone();
        self.code.append(
            &from.code,
            &Moved {
                threads: &|old| thread(old).and_then(|root| roots.get(&root).copied()),
                spaces: &|space| space,
                function: &|function| function,
                line: &|line| line,
                string: &|string| string,
                process: &|process| process,
            },
        );
    }

    /// The thread of every root.
    pub(crate) fn threads_by_root(&self) -> HashMap<NodeId, ThreadId> {
        let threads = self.threads.iter().enumerate();
        threads.map(|(at, thread)| (thread.root, ThreadId::from_usize(at))).collect()
    }

    /// The function and call site of a node.
    pub fn frame(&self, node: NodeId) -> Frame {
        Frame { function: self.tree.function(node), call_site: self.tree.call_site(node) }
    }

    /// The same tables, with neither threads nor nodes nor costs. Node ids of this profile mean
    /// nothing in it.
    pub fn without_tree(&self) -> Profile {
        let mut empty = Profile::new(self.recursion);
        empty.metadata = self.metadata.clone();
        empty.strings = self.strings.clone();
        empty.modules = self.modules.clone();
        empty.functions = self.functions.clone();
        empty.lines = self.lines.clone();
        empty.runs = self.runs.clone();
        empty.processes = self.processes.clone();
        empty.sources = self.sources.clone();
        empty.arcs = self.arcs.clone();
        for metric in &self.metrics {
            empty.add_metric(metric.clone());
        }
        empty.activations = self.activations.as_ref().map(|from| Activations::new(from.metric));
        empty
    }

    /// Adds the calls and costs of `from`, whose tables are the same, to the nodes that its
    /// nodes stand for here; those of nodes that stand for none are left out.
    pub fn add_costs_of(&mut self, from: &Profile, nodes: &[Option<NodeId>]) {
        for (node, &to) in from.tree.nodes().zip(nodes) {
            let Some(to) = to else { continue };
            if from.tree.has_calls() {
                let (calls, recursive) = (from.tree.calls(node), from.tree.recursive_calls(node));
                self.tree.add_calls(to, calls, recursive);
            }
            for (metric, _) in from.metrics() {
                let cost = from.tree.self_cost(metric, node);
                if cost > 0 {
                    self.tree.add_self_cost(metric, to, cost);
                }
            }
        }
        let kept = from.line_costs.iter().filter_map(|cost| {
            let node = nodes[cost.node.index()]?;
            Some(LineCost { node, ..*cost })
        });
        self.line_costs.extend(kept);
    }
}
