//! Carries what is known beside the tree from one profile to another.

use crate::{MetricId, NodeId, Point, Profile, SizeCost};

impl Profile {
    /// Adds the statistics, argument sizes, ports and memory of `from` to the nodes that its nodes
    /// stand for here; those of nodes that stand for none are left out. `metrics` gives the
    /// metrics of `from` as they are here.
    ///
    /// Statistics are of one metric; those of another than is here already are left out.
    pub fn add_details_of(&mut self, from: &Profile, nodes: &[Option<NodeId>], metrics: &[MetricId]) {
        self.add_ports_and_memory_of(from, nodes);
        self.add_activations_of(from, nodes, metrics);
    }

    pub(crate) fn add_ports_and_memory_of(&mut self, from: &Profile, nodes: &[Option<NodeId>]) {
        for (node, ports) in from.ports.filled() {
            if let Some(to) = nodes[node.index()] {
                self.ports.row(to).add(ports);
            }
        }
        for (node, memory) in from.memory.filled() {
            if let Some(to) = nodes[node.index()] {
                self.memory.row(to).merge(memory);
            }
        }
    }

    pub(crate) fn add_activations_of(
        &mut self,
        from: &Profile,
        nodes: &[Option<NodeId>],
        metrics: &[MetricId],
    ) {
        let Some(measured) = &from.activations else { return };
        let metric = metrics[measured.metric.index()];
        let activations = self.activations.get_or_insert_with(|| crate::Activations::new(metric));
        if activations.metric != metric {
            return;
        }
        for (node, statistics) in measured.nodes.filled() {
            if let Some(to) = nodes[node.index()] {
                activations.nodes.row(to).merge(statistics);
            }
        }
        let moved =
            measured.sizes.iter().filter_map(|row| Some(SizeCost { node: nodes[row.node.index()]?, ..*row }));
        activations.sizes.extend(moved);
        activations.compact_sizes();
    }

    /// Adds the points of `from`, at the nodes that its nodes stand for here; points at nodes that
    /// stand for none are left out. The thread of a point becomes that of its new node.
    pub fn add_points_of(&mut self, from: &Profile, nodes: &[Option<NodeId>], metrics: &[MetricId]) {
        if from.points.is_empty() {
            return;
        }
        let threads = self.threads_by_root();
        for point in &from.points {
            let Some(node) = nodes[point.node.index()] else { continue };
            let root = self.tree.path(node).last().unwrap_or(node);
            let description = self.strings.intern(&from.strings[point.description]);
            let values = point.values.iter().map(|&(metric, value)| (metrics[metric.index()], value));
            let thread = threads.get(&root).copied().unwrap_or(point.thread);
            self.points.push(Point {
                time_ns: point.time_ns,
                thread,
                node,
                description,
                values: values.collect(),
            });
        }
    }
}
