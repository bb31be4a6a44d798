//! Nodes of counted trees that are pieces of a function beside them.
//!
//! A function that jumps to its own piece looks like a tail call in a counted tree: its caller has a node for the
//! function and another one for the piece. Callers may enter the piece themselves as well. How often the function jumped
//! there is known from the counts of branches, for all contexts together.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use treering_profile::{CodeCounts, FunctionId, ModuleId, NodeId, Profile};

use crate::answer::{Answers, NamedFunction};

/// A node that is joined with one beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    /// The function of the other node.
    pub(crate) into: FunctionId,
    /// How many of the node's calls were jumps of that function.
    pub(crate) jumps: u64,
}

/// The nodes that are joined with others.
#[derive(Debug, Default)]
pub(crate) struct JoinedPieces {
    pub(crate) nodes: HashMap<NodeId, Joined>,
    /// How many calls of pieces were divided between contexts in proportion, because their counts do not tell.
    pub(crate) divided: u64,
}

/// Finds the nodes to be joined. `pieces` are the functions that are pieces, `stays` tells whether control that comes
/// from one function to another stays in one activation, and `resolve` finds the functions at addresses of a module.
pub(crate) fn joined_pieces(
    profile: &Profile,
    code: &CodeCounts,
    pieces: &HashMap<FunctionId, NamedFunction>,
    stays: impl Fn(FunctionId, FunctionId) -> bool,
    resolve: impl FnMut(Option<ModuleId>, &[u64]) -> Answers,
) -> JoinedPieces {
    let mut found = JoinedPieces::default();
    let besides = beside(profile, pieces, stays);
    if besides.is_empty() {
        return found;
    }
    let jumps = jumps(profile, code, pieces, resolve);
    for (piece, places) in besides {
        let jumps = jumps.get(&piece).copied().unwrap_or(0);
        let at_most = |place: &Beside| place.calls.min(place.calls_beside);
        let all: u64 = places.iter().map(at_most).fold(0, u64::saturating_add);
        found.divided = found.divided.saturating_add(if jumps < all && places.len() > 1 { jumps } else { 0 });
        let mut before = 0;
        for place in places {
            let share = |part: u64| {
                u64::try_from(u128::from(part) * u128::from(jumps.min(all)) / u128::from(all.max(1)))
            };
            let behind = u64::saturating_add(before, at_most(&place));
            let jumps = share(behind).unwrap_or(0).saturating_sub(share(before).unwrap_or(0));
            before = behind;
            if jumps > 0 {
                found.nodes.insert(place.node, Joined { into: place.function_beside, jumps });
            }
        }
    }
    found
}

/// A node of a piece, and a node of the whole function with the same parent.
struct Beside {
    node: NodeId,
    calls: u64,
    function_beside: FunctionId,
    calls_beside: u64,
}

/// The nodes of pieces that have such a node beside them, by piece.
fn beside(
    profile: &Profile,
    pieces: &HashMap<FunctionId, NamedFunction>,
    stays: impl Fn(FunctionId, FunctionId) -> bool,
) -> BTreeMap<FunctionId, Vec<Beside>> {
    let tree = &profile.tree;
    let of_pieces = tree.nodes().filter(|&node| pieces.contains_key(&tree.function(node)));
    let parents: BTreeSet<NodeId> = of_pieces.filter_map(|node| tree.parent(node)).collect();
    let mut children: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
    for node in tree.nodes() {
        if let Some(parent) = tree.parent(node).filter(|parent| parents.contains(parent)) {
            children.entry(parent).or_default().push(node);
        }
    }
    let mut found: BTreeMap<FunctionId, Vec<Beside>> = BTreeMap::new();
    for parent in parents {
        let children = &children[&parent];
        for &node in children.iter().filter(|&&node| pieces.contains_key(&tree.function(node))) {
            let piece = tree.function(node);
            let other = children.iter().find(|&&other| stays(tree.function(other), piece));
            found.entry(piece).or_default().extend(other.map(|&other| Beside {
                node,
                calls: tree.calls(node),
                function_beside: tree.function(other),
                calls_beside: tree.calls(other),
            }));
        }
    }
    found.retain(|_, places| !places.is_empty());
    found
}

/// How often functions jumped to their own pieces.
fn jumps(
    profile: &Profile,
    code: &CodeCounts,
    pieces: &HashMap<FunctionId, NamedFunction>,
    mut resolve: impl FnMut(Option<ModuleId>, &[u64]) -> Answers,
) -> HashMap<FunctionId, u64> {
    let mut starts: HashMap<(Option<ModuleId>, u64), FunctionId> = HashMap::new();
    for &piece in pieces.keys() {
        let function = &profile.functions[piece];
        starts.extend(function.address.map(|address| ((function.module, address.0), piece)));
    }
    let place = |at: treering_profile::CodeAddress| (code.spaces[at.space].module, at.address.0);
    let mut arrivals: BTreeMap<Option<ModuleId>, Vec<(u64, FunctionId, u64)>> = BTreeMap::new();
    for (branch, threads) in code.branches.distinct().filter(|(branch, _)| branch.kind.is_jump()) {
        let (Some(site), Some(target)) = (branch.site.map(place), branch.target.map(place)) else { continue };
        let piece = starts.get(&target).filter(|_| site.0 == target.0);
        let count = branch.count.saturating_mul(threads);
        arrivals.entry(site.0).or_default().extend(piece.map(|&piece| (site.1, piece, count)));
    }
    let mut jumps: HashMap<FunctionId, u64> = HashMap::new();
    for (module, arrivals) in arrivals.into_iter().filter(|(_, arrivals)| !arrivals.is_empty()) {
        // Pieces are told apart beside others of the same function.
        let entered = starts.keys().filter(|(of, _)| *of == module).map(|(_, start)| *start);
        let mut addresses: Vec<u64> = arrivals.iter().map(|(site, ..)| *site).chain(entered).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let answers = resolve(module, &addresses);
        let functions: Vec<_> = answers.places.iter().map(|frames| frames.first()).collect();
        for (site, piece, count) in arrivals {
            let at = addresses.binary_search(&site).ok().and_then(|at| functions[at]);
            let from = at.map(|place| &answers.functions[place.function]);
            if from.is_some_and(|from| pieces[&piece].goes_on_from(from)) {
                let sum = jumps.entry(piece).or_default();
                *sum = sum.saturating_add(count);
            }
        }
    }
    jumps
}
