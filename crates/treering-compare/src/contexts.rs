//! The trees of both profiles as one.

use hashbrown::HashMap;
use treering_profile::{FunctionKind, NodeId};

use crate::pairing::{GroupIndex, Pairing};
use crate::side::Prepared;
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
}

impl Contexts {
    /// `is_absent`: whether the binary of one side lacks a function of the other; nothing if it is not known.
    pub(crate) fn of(
        sides: &Sides<Prepared>,
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
        let mut contexts = Self { nodes: vec![root], has_calls, inlined };
        let mut children: HashMap<(u32, u32), u32> = HashMap::new();
        contexts.add(Side::Base, &sides.base, &folds, &mut children);
        contexts.add(Side::Head, &sides.head, &folds, &mut children);
        contexts.add_up();
        contexts
    }

    fn add(&mut self, side: Side, of: &Prepared, folds: &[bool], children: &mut HashMap<(u32, u32), u32>) {
        let tree = &of.profile.tree;
        let mut place = vec![0_u32; tree.len()];
        for node in tree.nodes() {
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

    fn context(
        &mut self,
        parent: u32,
        group: GroupIndex,
        folds: &[bool],
        children: &mut HashMap<(u32, u32), u32>,
    ) -> u32 {
        if folds[group] {
            return parent;
        }
        *children.entry((parent, group as u32)).or_insert_with(|| {
            self.nodes.push(ContextChange {
                parent: Some(parent as usize),
                group,
                self_cost: Sides::default(),
                total_cost: Sides::default(),
                calls: Sides::default(),
                occurs: Sides::default(),
            });
            self.nodes.len() as u32 - 1
        })
    }

    fn count(&mut self, side: Side, at: usize, of: &Prepared, node: NodeId, folded: bool) {
        let tree = &of.profile.tree;
        let context = &mut self.nodes[at];
        *context.self_cost.of(side) += tree.self_cost(of.metric, node);
        *context.occurs.of(side) = true;
        if at > 0 && !folded {
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

/// Whether a function is in one profile only, and the other one has it as a part of its callers: it is inlined in the one,
/// or absent from the binary of the other. A function that this binary has and did not run is another matter.
fn is_folded(sides: &Sides<Prepared>, pairing: &Pairing, group: GroupIndex, is_absent: Option<bool>) -> bool {
    let functions = &pairing.groups[group].functions;
    let (of, functions) = match (functions.base.is_empty(), functions.head.is_empty()) {
        (true, false) => (&sides.head, &functions.head),
        (false, true) => (&sides.base, &functions.base),
        _ => return false,
    };
    let is_inlined = || functions.iter().all(|&id| of.profile.functions[id].kind == FunctionKind::Inlined);
    is_absent.unwrap_or_else(is_inlined)
}
