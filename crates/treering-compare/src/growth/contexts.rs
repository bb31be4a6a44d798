//! The trees of runs of several sizes as one.

use hashbrown::HashMap;
use treering_profile::{FunctionId, MetricId, Profile};

use crate::pairing::Pairing;

/// A function of any of the profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) module: Option<String>,
}

/// A function reached along one chain of callers, in which each function is at most once: a call of one that is in the
/// chain already is recursive, and belongs to that.
///
/// So the number of contexts does not grow with the depth of a recursion, and with the size.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) parent: Option<usize>,
    pub(crate) function: usize,
    /// By size.
    pub(crate) self_costs: Vec<u64>,
    /// Calls that are not recursive, by size.
    pub(crate) calls: Vec<u64>,
    /// Recursive calls, by size.
    pub(crate) recursive_calls: Vec<u64>,
}

impl Context {
    fn new(parent: Option<usize>, function: usize, sizes: usize) -> Self {
        let blank = || vec![0; sizes];
        Self { parent, function, self_costs: blank(), calls: blank(), recursive_calls: blank() }
    }
}

/// The trees of all profiles; a caller comes before those that it calls.
pub(crate) struct Contexts {
    pub(crate) functions: Vec<Named>,
    /// By profile, by entry of the function table.
    pub(crate) function_of: Vec<Vec<Option<usize>>>,
    pub(crate) nodes: Vec<Context>,
    /// By function, how many contexts it has, and one of them.
    contexts_of: Vec<(usize, usize)>,
}

impl Contexts {
    /// `profiles` by size, with the metric of each. The names of the largest are kept.
    pub(crate) fn of(profiles: &[&Profile], metrics: &[MetricId]) -> Self {
        let (functions, function_of) = unify(profiles);
        let number = profiles.len();
        let nodes = vec![Context::new(None, 0, number)];
        let contexts_of = vec![(0, 0); functions.len()];
        let mut contexts = Self { functions, function_of, nodes, contexts_of };
        let mut children = HashMap::new();
        for (at, (profile, metric)) in profiles.iter().zip(metrics).enumerate() {
            contexts.add(at, profile, *metric, &mut children);
        }
        for (at, node) in contexts.nodes.iter().enumerate() {
            let (number, one) = &mut contexts.contexts_of[node.function];
            (*number, *one) = (*number + 1, at);
        }
        contexts
    }

    fn add(
        &mut self,
        at: usize,
        profile: &Profile,
        metric: MetricId,
        children: &mut HashMap<(usize, usize), usize>,
    ) {
        let tree = &profile.tree;
        let mut places = vec![0; tree.len()];
        for node in tree.nodes() {
            let function = self.function_of[at][tree.function(node).index()].unwrap_or(0);
            let cost = tree.self_cost(metric, node);
            let Some(parent) = tree.parent(node) else {
                self.nodes[0].self_costs[at] += cost;
                continue;
            };
            let (place, is_recursive) = self.place(places[parent.index()], function, children);
            places[node.index()] = place;
            self.nodes[place].self_costs[at] += cost;
            let recursive = if is_recursive { tree.calls(node) } else { tree.recursive_calls(node) };
            self.nodes[place].recursive_calls[at] += recursive;
            self.nodes[place].calls[at] += tree.calls(node).saturating_sub(recursive);
        }
    }

    /// The context of a call of `function`, and whether the call is recursive.
    fn place(
        &mut self,
        caller: usize,
        function: usize,
        children: &mut HashMap<(usize, usize), usize>,
    ) -> (usize, bool) {
        if let Some(&known) = children.get(&(caller, function)) {
            return (known, self.nodes[known].parent != Some(caller));
        }
        let recursive = self.chain(caller).find(|&at| at > 0 && self.nodes[at].function == function);
        let place = recursive.unwrap_or_else(|| {
            self.nodes.push(Context::new(Some(caller), function, self.nodes[0].calls.len()));
            self.nodes.len() - 1
        });
        children.insert((caller, function), place);
        (place, recursive.is_some())
    }

    /// The context of a function that has one only.
    pub(crate) fn only_context(&self, function: usize) -> Option<usize> {
        let (number, one) = self.contexts_of[function];
        (number == 1).then_some(one)
    }

    /// A context and its callers, up to the first one.
    pub(crate) fn chain(&self, from: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(from), |&at| self.nodes[at].parent)
    }
}

/// The functions of all profiles, and for each profile the one that each entry of its function table is.
fn unify(profiles: &[&Profile]) -> (Vec<Named>, Vec<Vec<Option<usize>>>) {
    let mut functions = vec![Named { name: treering_analysis::OUTSIDE.to_owned(), module: None }];
    let Some((largest, smaller)) = profiles.split_last() else { return (functions, Vec::new()) };
    // Paired with itself, entries that are one function are one.
    let own = Pairing::of(largest, largest);
    functions.extend(
        own.groups
            .iter()
            .skip(1)
            .map(|group| Named { name: group.name.clone(), module: group.module.clone() }),
    );
    let mut lone: HashMap<(String, Option<String>), usize> = HashMap::new();
    let mut function_of = Vec::new();
    for profile in smaller {
        let pairing = Pairing::of(profile, largest);
        let mut number = |at: usize| {
            let group = &pairing.groups[at];
            let paired = group.functions.head.first().and_then(|head: &FunctionId| own.of.head[head.index()]);
            paired.unwrap_or_else(|| {
                *lone.entry((group.name.clone(), group.module.clone())).or_insert_with(|| {
                    functions.push(Named { name: group.name.clone(), module: group.module.clone() });
                    functions.len() - 1
                })
            })
        };
        function_of.push(pairing.of.base.iter().map(|group| group.map(&mut number)).collect());
    }
    function_of.push(own.of.head.clone());
    (functions, function_of)
}
