//! Costs without what measuring them cost.

use std::borrow::Cow;

use treering_profile::{
    ActivationStatistics, CallBias, MetricId, NodeId, Profile, RecursionRule, Tree, Unit,
};

use crate::basis::{Basis, Correction};
use crate::selection::{NoTree, Selection};

/// A profile whose timed metric is without what measuring the calls cost.
#[derive(Clone, Debug)]
pub struct Corrected<'a> {
    /// The profile with corrected self costs, means and calm totals. Least, greatest and squares
    /// of activations stay as they were measured. The original itself when there was nothing to
    /// correct.
    pub profile: Cow<'a, Profile>,
    /// The metric that was corrected, if one was.
    pub metric: Option<MetricId>,
    /// The cost taken away in all, in the unit of the metric.
    pub removed: u64,
    /// By node: how far the true self cost may be from the corrected one. Reaches from what is
    /// left under the bias of calls that do nothing up to the raw cost. Empty when nothing was
    /// corrected.
    pub uncertainty: Vec<u64>,
}

/// Takes the call bias out of the self costs of the timed metric, in O(nodes).
///
/// From a node's self cost goes the part of the bias that falls inside, once for each of its
/// calls, and the part that falls outside, once for each call it made; never more than there is.
/// Totals are sums of self costs, so they are corrected with them, and still agree. Costs that
/// were estimated by timing one call of N hold the inside part N-fold; the outside part was paid
/// only for calls that were timed.
///
/// Costs in slots of time are scaled with the self cost of their node.
///
/// Where less than nothing falls inside, the caller holds some of the function's own time: it is
/// moved from the caller's self cost to the function's, as far as the caller has as much, and as
/// far as the call took longer than one that does nothing.
///
/// A flat profile does not tell the caller, so there only the inside part is taken away, and
/// nothing is moved.
pub fn correct(profile: &Profile) -> Corrected<'_> {
    match (profile.metadata.call_bias, timed_metric(profile)) {
        (Some(bias), Some(metric)) if profile.tree.has_calls() && bias.is_sound() => {
            Correcting::new(profile, bias, metric).corrected()
        }
        _ => Corrected::raw(profile),
    }
}

/// The metric that the call bias is in: that of the statistics of activations, or else the first
/// time that was not sampled.
fn timed_metric(profile: &Profile) -> Option<MetricId> {
    let measured = profile.activations.as_ref().map(|activations| activations.metric);
    let is_time = |metric: &MetricId| {
        let metric = &profile.metrics[metric.index()];
        metric.unit == Unit::Nanoseconds && metric.sampling.is_none() && !metric.is_level
    };
    let first = || profile.metrics().map(|(metric, _)| metric).find(is_time);
    measured.map_or_else(first, Some).filter(is_time)
}

impl<'a> Corrected<'a> {
    /// The profile as it was measured.
    pub fn raw(profile: &'a Profile) -> Self {
        Self { profile: Cow::Borrowed(profile), metric: None, removed: 0, uncertainty: Vec::new() }
    }

    /// The base of percentages: the corrected run cost, and what the correction was where
    /// `metric` is the one that was corrected.
    pub fn basis(&self, metric: MetricId) -> Basis {
        let mut basis = Basis::of(&self.profile, metric);
        let bias = self.profile.metadata.call_bias.filter(|_| self.metric == Some(metric));
        basis.correction = bias.map(|bias| Correction {
            bias,
            removed: self.removed,
            raw_cost: basis.run.cost.saturating_add(self.removed),
        });
        basis
    }

    /// The selected part, with the uncertainty of its nodes.
    ///
    /// # Errors
    /// As for [`Selection::apply`].
    pub fn part(&self, selection: &Selection) -> Result<Corrected<'_>, NoTree> {
        let (profile, nodes) = selection.apply_with_nodes(&self.profile)?;
        let Some(nodes) = nodes.filter(|_| !self.uncertainty.is_empty()) else {
            return Ok(Corrected { profile, uncertainty: self.uncertainty.clone(), ..*self });
        };
        let mut uncertainty = vec![0_u64; profile.tree.len()];
        for (of, node) in self.uncertainty.iter().zip(nodes) {
            if let Some(node) = node {
                uncertainty[node.index()] = uncertainty[node.index()].saturating_add(*of);
            }
        }
        Ok(Corrected { profile, uncertainty, ..*self })
    }
}

/// How many more calls of a node there were than were timed, beyond those that had not ended: then
/// one call of N was timed, and the node's costs are estimates.
pub(crate) fn is_estimated(profile: &Profile, node: NodeId) -> bool {
    let Some(activations) = &profile.activations else { return false };
    activations.nodes.get(node).timed > 0 && untimed(profile, node) > profile.metadata.losses.open_activations
}

/// How many more calls of a node there were than were timed.
pub(crate) fn untimed(profile: &Profile, node: NodeId) -> u64 {
    let timed = profile.activations.as_ref().map_or(0, |activations| activations.nodes.get(node).timed);
    profile.tree.calls(node).saturating_sub(timed)
}

/// By node: how many pairs of enter and leave were paid for.
struct Pairs {
    /// In the node itself: those of the calls it made.
    made: Vec<u64>,
    /// In the node and below it.
    below: Vec<u64>,
}

impl Pairs {
    fn of(profile: &Profile) -> Self {
        let tree = &profile.tree;
        let mut pairs = Self { made: vec![0; tree.len()], below: vec![0; tree.len()] };
        if profile.recursion == RecursionRule::Flat {
            return pairs;
        }
        for node in tree.nodes().rev() {
            let (paid, recursive) = paid(profile, node);
            let at = node.index();
            pairs.made[at] = pairs.made[at].saturating_add(recursive);
            pairs.below[at] = pairs.below[at].saturating_add(recursive);
            if let Some(parent) = tree.parent(node).map(NodeId::index) {
                let from_parent = paid - recursive;
                pairs.made[parent] = pairs.made[parent].saturating_add(from_parent);
                let below = from_parent.saturating_add(pairs.below[at]);
                pairs.below[parent] = pairs.below[parent].saturating_add(below);
            }
        }
        pairs
    }
}

/// For how many of a node's calls a clock was read, and how many of these the recursion rule
/// folded into the node: their caller is taken to be the node itself.
fn paid(profile: &Profile, node: NodeId) -> (u64, u64) {
    let calls = profile.tree.calls(node);
    let timed = profile.activations.as_ref().map(|activations| activations.nodes.get(node).timed);
    let paid = timed.filter(|_| is_estimated(profile, node)).unwrap_or(calls);
    (paid, profile.tree.recursive_calls(node).min(paid))
}

struct Correcting<'a> {
    profile: &'a Profile,
    bias: CallBias,
    metric: MetricId,
    pairs: Pairs,
    /// By node: what its caller holds of its self cost.
    moved: Vec<u64>,
}

impl<'a> Correcting<'a> {
    fn new(profile: &'a Profile, bias: CallBias, metric: MetricId) -> Self {
        let moved = vec![0; profile.tree.len()];
        Self { profile, bias, metric, pairs: Pairs::of(profile), moved }
    }

    fn corrected(mut self) -> Corrected<'a> {
        let tree = &self.profile.tree;
        let mut costs: Vec<u64> = tree
            .nodes()
            .map(|node| self.taken_off(node, self.inside(), self.bias.pair_ns() - self.inside()))
            .collect();
        self.move_to_callees(&mut costs);
        let uncertainty = tree.nodes().map(|node| self.uncertainty(node, costs[node.index()])).collect();
        let removed = tree.self_costs(self.metric).iter().sum::<u64>() - costs.iter().sum::<u64>();
        let mut profile = self.profile.clone();
        self.scale_lines(&mut profile, &costs);
        self.scale_times(&mut profile, &costs);
        profile.tree.set_self_costs(self.metric, costs);
        self.activations(&mut profile);
        Corrected { profile: Cow::Owned(profile), metric: Some(self.metric), removed, uncertainty }
    }

    /// The part of the bias that falls inside, where that is not less than nothing.
    fn inside(&self) -> f64 {
        self.bias.inside_ns.max(0.0)
    }

    /// The self cost of a node less what its calls and those it made cost, at least 0.
    fn taken_off(&self, node: NodeId, inside: f64, outside: f64) -> u64 {
        let raw = self.profile.tree.self_cost(self.metric, node);
        let (calls, made) = (self.profile.tree.calls(node), self.pairs.made[node.index()]);
        subtract(raw, calls as f64 * inside + made as f64 * outside)
    }

    /// Moves what callers hold of the costs of their callees.
    fn move_to_callees(&mut self, costs: &mut [u64]) {
        if self.bias.inside_ns >= 0.0 || self.profile.recursion == RecursionRule::Flat {
            return;
        }
        let tree = &self.profile.tree;
        let mut wanted = vec![0.0; tree.len()];
        for node in tree.nodes() {
            if let Some(caller) = tree.parent(node) {
                wanted[caller.index()] += self.held_by_caller(node);
            }
        }
        let left = costs.to_vec();
        for node in tree.nodes() {
            let Some(caller) = tree.parent(node).map(NodeId::index) else { continue };
            let part = (left[caller] as f64 / wanted[caller]).min(1.0);
            let amount = ((self.held_by_caller(node) * part).round() as u64).min(costs[caller]);
            costs[caller] -= amount;
            costs[node.index()] += amount;
            self.moved[node.index()] = amount;
        }
    }

    /// The part of a node's self cost that the caller holds, if it has as much: no more for each call than
    /// that took longer than one that does nothing.
    fn held_by_caller(&self, node: NodeId) -> f64 {
        let tree = &self.profile.tree;
        let calls = tree.calls(node) as f64;
        let beyond = tree.self_cost(self.metric, node) as f64 - calls * self.bias.empty_inside_ns;
        let from_caller = calls - tree.recursive_calls(node) as f64;
        (-self.bias.inside_ns * from_caller).min(beyond).max(0.0)
    }

    /// How far the true self cost of a node may be from the corrected one.
    fn uncertainty(&self, node: NodeId, cost: u64) -> u64 {
        let raw = self.profile.tree.self_cost(self.metric, node);
        let least = self.taken_off(node, self.bias.empty_inside_ns, self.bias.empty_outside_ns);
        let pairs = self.profile.tree.calls(node).saturating_add(self.pairs.made[node.index()]);
        let spread = (pairs as f64 * self.bias.spread_ns).round() as u64;
        raw.abs_diff(cost).max(cost.saturating_sub(least)).max(spread)
    }

    /// Line costs are parts of self costs and shrink or grow with them.
    fn scale_lines(&self, profile: &mut Profile, costs: &[u64]) {
        for part in profile.line_costs.iter_mut().filter(|part| part.metric == self.metric) {
            let raw = self.profile.tree.self_cost(self.metric, part.node);
            let scaled =
                u128::from(part.cost) * u128::from(costs[part.node.index()]) / u128::from(raw.max(1));
            part.cost = u64::try_from(scaled).unwrap_or(u64::MAX);
        }
    }

    /// The costs of a node in slots of time are parts of its self cost, and shrink or grow with it: when calls were made is
    /// not known. Rounded such that those of consecutive parts of the run still add up to it.
    fn scale_times(&self, profile: &mut Profile, costs: &[u64]) {
        let Some(timeline) = &mut profile.timeline else { return };
        let mut before = vec![0_u64; costs.len()];
        for cost in timeline.costs.iter_mut().filter(|cost| cost.metric == self.metric) {
            let node = cost.node.index();
            let raw = self.profile.tree.self_cost(self.metric, cost.node);
            let scaled = |first: u64| {
                let scaled = u128::from(costs[node]) * u128::from(first.min(raw)) / u128::from(raw.max(1));
                u64::try_from(scaled).unwrap_or(u64::MAX)
            };
            let after = before[node].saturating_add(cost.amount);
            cost.amount = scaled(after) - scaled(before[node]);
            before[node] = after;
        }
        timeline.costs.retain(|cost| cost.amount > 0);
    }

    fn activations(&self, profile: &mut Profile) {
        let flat = profile.recursion == RecursionRule::Flat;
        let tree = &self.profile.tree;
        let Some(activations) = profile.activations.as_mut().filter(|of| of.metric == self.metric) else {
            return;
        };
        let measured: Vec<NodeId> = activations.nodes.filled().map(|(node, _)| node).collect();
        for node in measured {
            let each = self.bias_of_activation(tree, node);
            correct_statistics(activations.nodes.row(node), each, flat);
        }
        for row in &mut activations.sizes {
            let each = self.bias_of_activation(tree, row.node);
            row.total_cost = subtract(row.total_cost, row.calls as f64 * each);
        }
    }

    /// The part of the bias in the total of one of a node's activations, on average: less than
    /// nothing where its caller holds more of it.
    fn bias_of_activation(&self, tree: &Tree, node: NodeId) -> f64 {
        let calls = tree.calls(node).max(1) as f64;
        let below = self.pairs.below[node.index()] as f64 / calls;
        self.inside() + below * self.bias.pair_ns() - self.moved[node.index()] as f64 / calls
    }
}

/// `cost` less a rounded number, at least 0.
fn subtract(cost: u64, less: f64) -> u64 {
    if less < 0.0 {
        cost.saturating_add((-less).round() as u64)
    } else {
        cost.saturating_sub(less.round() as u64)
    }
}

/// The totals of a flat profile are left as they are: how many calls are in them is not known.
fn correct_statistics(statistics: &mut ActivationStatistics, each: f64, flat: bool) {
    statistics.correct_means(each);
    if !flat {
        statistics.total = subtract(statistics.total, statistics.timed as f64 * each);
    }
}
