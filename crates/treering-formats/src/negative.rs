//! Costs below 0, which a profile has no place for.

use std::collections::{HashMap, HashSet};

use treering_profile::{LineId, Metric, MetricId, NodeId, Profile};

use crate::ReadReport;

/// Costs below 0 by what they were charged to, until all costs are known: most are less than
/// what was charged to the same function elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Negative {
    nodes: HashMap<(NodeId, MetricId), i128>,
    lines: HashMap<(NodeId, MetricId, LineId), i128>,
    arcs: HashMap<(usize, MetricId), i128>,
}

impl Negative {
    pub(crate) fn self_cost(&mut self, node: NodeId, line: Option<LineId>, metric: MetricId, cost: i128) {
        *self.nodes.entry((node, metric)).or_default() += cost;
        if let Some(line) = line {
            *self.lines.entry((node, metric, line)).or_default() += cost;
        }
    }

    pub(crate) fn arc(&mut self, arc: usize, metric: MetricId, cost: i128) {
        *self.arcs.entry((arc, metric)).or_default() += cost;
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.arcs.is_empty()
    }

    /// Their sum.
    pub(crate) fn sum(&self, metric: MetricId) -> i128 {
        self.nodes.iter().filter(|((_, of), _)| *of == metric).map(|(_, cost)| cost).sum()
    }

    pub(crate) fn multiply(&mut self, metric: MetricId, factor: u64) {
        let factor = i128::from(factor);
        let nodes = self.nodes.iter_mut().filter(|((_, of), _)| *of == metric).map(|(_, cost)| cost);
        let lines = self.lines.iter_mut().filter(|((_, of, _), _)| *of == metric).map(|(_, cost)| cost);
        let arcs = self.arcs.iter_mut().filter(|((_, of), _)| *of == metric).map(|(_, cost)| cost);
        nodes.chain(lines).chain(arcs).for_each(|cost| *cost = cost.saturating_mul(factor));
    }

    /// Takes them away from what was charged to the same functions and arcs. What is left goes to
    /// metrics of its own, `NAME (negative)`.
    pub(crate) fn apply(self, profile: &mut Profile, report: &mut ReadReport) {
        let metrics: HashSet<MetricId> =
            self.nodes.keys().map(|key| key.1).chain(self.arcs.keys().map(|key| key.1)).collect();
        let mut metrics: Vec<MetricId> = metrics.into_iter().collect();
        metrics.sort_unstable();
        profile.compact_line_costs();
        for metric in metrics {
            self.apply_to(metric, profile, report);
        }
    }

    fn apply_to(&self, metric: MetricId, profile: &mut Profile, report: &mut ReadReport) {
        let name = profile.metrics[metric.index()].name.clone();
        let mut costs = profile.tree.self_costs(metric).to_vec();
        let mut below = Vec::new();
        for (&(node, _), &cost) in self.nodes.iter().filter(|((_, of), _)| *of == metric) {
            let net = i128::from(costs[node.index()]) + cost;
            costs[node.index()] = clamped(net);
            if net < 0 {
                below.push((node, clamped(-net)));
            }
        }
        profile.tree.set_self_costs(metric, costs);
        let mut below_arcs = Vec::new();
        for (&(at, _), &cost) in self.arcs.iter().filter(|((_, of), _)| *of == metric) {
            let costs = &mut profile.arcs[at].total_costs;
            let place = costs.iter().position(|(of, _)| *of == metric).unwrap_or_else(|| {
                costs.push((metric, 0));
                costs.len() - 1
            });
            let net = i128::from(costs[place].1) + cost;
            costs[place].1 = clamped(net);
            if net < 0 {
                below_arcs.push((at, clamped(-net)));
            }
        }
        let lines_dropped = self.apply_to_lines(metric, profile);
        if !below.is_empty() || !below_arcs.is_empty() {
            let unit = profile.metrics[metric.index()].unit;
            let negative = profile.add_metric(Metric::exact(format!("{name} (negative)"), unit));
            below.iter().for_each(|&(node, cost)| profile.tree.add_self_cost(negative, node, cost));
            below_arcs.iter().for_each(|&(at, cost)| profile.arcs[at].total_costs.push((negative, cost)));
            report.notes.push(format!(
                "{name} is below 0 in places (functions: {}, arcs: {}): their cost is 0, and the amount below 0 is in the \
                 metric `{name} (negative)`",
                below.len(),
                below_arcs.len()
            ));
        }
        if lines_dropped {
            report.notes.push(format!(
                "{name} is below 0 in source lines: the functions that have such lines are not divided by line"
            ));
        }
    }

    /// Whether lines are below 0, so that those of their functions were removed.
    fn apply_to_lines(&self, metric: MetricId, profile: &mut Profile) -> bool {
        let mut left: HashMap<(NodeId, LineId), i128> = HashMap::new();
        for (&(node, _, line), &cost) in self.lines.iter().filter(|((_, of, _), _)| *of == metric) {
            *left.entry((node, line)).or_default() += cost;
        }
        for part in profile.line_costs.iter_mut().filter(|part| part.metric == metric) {
            if let Some(cost) = left.remove(&(part.node, part.line)) {
                let net = i128::from(part.cost) + cost;
                part.cost = clamped(net);
                if net < 0 {
                    left.insert((part.node, part.line), net);
                }
            }
        }
        let mut sums: HashMap<NodeId, i128> = HashMap::new();
        for part in profile.line_costs.iter().filter(|part| part.metric == metric) {
            *sums.entry(part.node).or_default() += i128::from(part.cost);
        }
        let mut bad: HashSet<NodeId> = left.into_keys().map(|(node, _)| node).collect();
        let tree = &profile.tree;
        let above = |node: NodeId, sum: i128| sum > i128::from(tree.self_cost(metric, node));
        bad.extend(sums.into_iter().filter(|&(node, sum)| above(node, sum)).map(|(node, _)| node));
        profile.line_costs.retain(|part| part.metric != metric || !bad.contains(&part.node));
        !bad.is_empty()
    }
}

fn clamped(cost: i128) -> u64 {
    u64::try_from(cost.max(0)).unwrap_or(u64::MAX)
}
