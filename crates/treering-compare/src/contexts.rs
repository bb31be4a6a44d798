//! The trees of both profiles as one.

use hashbrown::HashMap;
use treering_analysis::preorder;
use treering_profile::{FunctionKind, NodeId};

use crate::pairing::{GroupIndex, Pairing};
use crate::side::Grouped;
use crate::sides::{Cost as _, Side, Sides};

/// A function reached along one chain of callers, in both profiles or in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextChange {
    /// Its caller's; nothing for the first one, in which all threads begin.
    pub parent: Option<usize>,
    /// The function.
    pub group: GroupIndex,
    /// Spent in the function itself.
    pub self_cost: Sides<u64>,
    /// Spent in it and everything it called.
    pub total_cost: Sides<u64>,
    /// How often it was called from there; 0 where calls were not counted.
    pub calls: Sides<u64>,
    /// Whether the profiles have it at all.
    pub occurs: Sides<bool>,
}

impl ContextChange {
    /// Whether both profiles have it.
    pub(crate) fn is_paired(&self) -> bool {
        self.occurs.base && self.occurs.head
    }
}

/// The trees of all threads of both profiles, matched by chains of callers; a caller comes before those it calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contexts {
    /// The contexts.
    pub nodes: Vec<ContextChange>,
    /// Whether both profiles counted calls.
    pub has_calls: bool,
    /// Functions that one profile has inlined only, or that one binary alone has; they are parts of their callers here.
    pub inlined: Vec<GroupIndex>,
    /// The costs of these, by the function that they are a part of, and by themselves.
    pub(crate) parts: HashMap<(GroupIndex, GroupIndex), Sides<u64>>,
}

impl Contexts {
    /// `is_absent`: whether the binary of one side lacks a function of the other; nothing if it is not known.
    pub(crate) fn of(
        sides: &Sides<Grouped<'_>>,
        pairing: &Pairing,
        is_absent: impl Fn(GroupIndex) -> Option<bool>,
    ) -> Self {
        let mut inlined: Vec<GroupIndex> = Vec::new();
        let folds: Vec<bool> = (0..pairing.groups.len())
            .map(|group| is_folded(sides, pairing, group, is_absent(group)))
            .collect();
        inlined.extend((0..folds.len()).filter(|&group| folds[group]));
        let root = ContextChange {
            parent: None,
            group: 0,
            self_cost: Sides::default(),
            total_cost: Sides::default(),
            calls: Sides { base: 1, head: 1 },
            occurs: Sides { base: true, head: true },
        };
        let has_calls = sides.base.profile.tree.has_calls() && sides.head.profile.tree.has_calls();
        let mut contexts = Self { nodes: vec![root], has_calls, inlined, parts: HashMap::new() };
        let mut children = Children::default();
        contexts.add(Side::Base, &sides.base, &folds, &mut children);
        contexts.add(Side::Head, &sides.head, &folds, &mut children);
        contexts.add_up();
        contexts
    }

    fn add(&mut self, side: Side, of: &Grouped<'_>, folds: &[bool], children: &mut Children) {
        let tree = &of.profile.tree;
        let mut place = vec![0_u32; tree.len()];
        for node in preorder(of.profile) {
            let at = match tree.parent(node) {
                None => 0,
                Some(parent) => {
                    self.context(place[parent.index()], of.group(tree.function(node)), folds, children)
                }
            };
            place[node.index()] = at;
            let folded = tree.parent(node).is_some() && folds[of.group(tree.function(node))];
            self.count(side, at as usize, of, node, folded);
        }
    }

    fn context(&mut self, parent: u32, group: GroupIndex, folds: &[bool], children: &mut Children) -> u32 {
        if folds[group] {
            return parent;
        }
        if let Some(known) = children.find(&self.nodes, parent, group) {
            return known;
        }
        self.nodes.push(ContextChange {
            parent: Some(parent as usize),
            group,
            self_cost: Sides::default(),
            total_cost: Sides::default(),
            calls: Sides::default(),
            occurs: Sides::default(),
        });
        let new = self.nodes.len() as u32 - 1;
        children.add(parent, group, new);
        new
    }

    fn count(&mut self, side: Side, at: usize, of: &Grouped<'_>, node: NodeId, folded: bool) {
        let tree = &of.profile.tree;
        let context = &mut self.nodes[at];
        let cost = tree.self_cost(of.metric, node);
        *context.self_cost.of(side) += cost;
        *context.occurs.of(side) = true;
        if folded {
            let part = (context.group, of.group(tree.function(node)));
            *self.parts.entry(part).or_default().of(side) += cost;
        } else if at > 0 {
            *context.calls.of(side) += tree.calls(node);
        }
    }

    fn add_up(&mut self) {
        for node in &mut self.nodes {
            node.total_cost = node.self_cost;
        }
        for at in (1..self.nodes.len()).rev() {
            let total = self.nodes[at].total_cost;
            if let Some(parent) = self.nodes[at].parent {
                let of_parent = &mut self.nodes[parent].total_cost;
                of_parent.base = of_parent.base.saturating_add(total.base.cost());
                of_parent.head = of_parent.head.saturating_add(total.head.cost());
            }
        }
    }

    /// By context, those that it calls.
    pub fn children(&self) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            if let Some(parent) = node.parent {
                children[parent].push(at);
            }
        }
        children
    }
}

/// The contexts below each context. Most have few, which a list finds sooner than a map of millions of entries.
#[derive(Default)]
struct Children {
    /// By context: the last of its listed children, and the one listed before it of the same caller; `NONE` ends a list.
    last: Vec<u32>,
    before: Vec<u32>,
    /// By context: how many of its children are listed.
    listed: Vec<u8>,
    /// By caller and group: those that are not listed.
    others: HashMap<(u32, GroupIndex), u32>,
}

impl Children {
    const NONE: u32 = u32::MAX;
    const MOST_LISTED: u8 = 16;

    fn find(&self, nodes: &[ContextChange], parent: u32, group: GroupIndex) -> Option<u32> {
        let mut at = *self.last.get(parent as usize)?;
        while at != Self::NONE {
            if nodes[at as usize].group == group {
                return Some(at);
            }
            at = self.before[at as usize];
        }
        let is_full = self.listed[parent as usize] == Self::MOST_LISTED;
        if is_full { self.others.get(&(parent, group)).copied() } else { None }
    }

    /// Adds the context that was made last.
    fn add(&mut self, parent: u32, group: GroupIndex, new: u32) {
        let all = new as usize + 1;
        self.last.resize(all, Self::NONE);
        self.before.resize(all, Self::NONE);
        self.listed.resize(all, 0);
        let listed = &mut self.listed[parent as usize];
        if *listed == Self::MOST_LISTED {
            self.others.insert((parent, group), new);
            return;
        }
        *listed += 1;
        self.before[new as usize] = std::mem::replace(&mut self.last[parent as usize], new);
    }
}

/// Whether a function is in one profile only, and the other one has it as a part of its callers: it is inlined in the one,
/// or absent from the binary of the other. A function that this binary has and did not run is another matter.
fn is_folded(
    sides: &Sides<Grouped<'_>>,
    pairing: &Pairing,
    group: GroupIndex,
    is_absent: Option<bool>,
) -> bool {
    let functions = &pairing.groups[group].functions;
    let (of, functions) = match (functions.base.is_empty(), functions.head.is_empty()) {
        (true, false) => (&sides.head, &functions.head),
        (false, true) => (&sides.base, &functions.base),
        _ => return false,
    };
    let is_inlined = || functions.iter().all(|&id| of.profile.functions[id].kind == FunctionKind::Inlined);
    is_absent.unwrap_or_else(is_inlined)
}
