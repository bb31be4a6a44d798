//! Parts of a profile: some threads, some stacks, some frames.

use std::borrow::Cow;

use treering_profile::{
    FunctionId, LineCost, LineId, MetricId, Module, ModuleId, NodeId, Profile, Thread, Tree,
};

use crate::arc_selection::ArcPart;
use crate::build::without_build;

/// A set of functions of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionSet {
    members: Vec<bool>,
}

impl FunctionSet {
    /// The functions for whose name, as [`function_name`](crate::function_name) gives it, `is_in`
    /// holds, or for that name without the build that [`tell_builds_apart`](crate::tell_builds_apart) adds: `^spin$` stands
    /// for `spin (build 1f2e3d4c)` too. Roots are not asked about and are never in it.
    pub fn matching(profile: &Profile, is_in: impl Fn(&str) -> bool) -> Self {
        let is_named = |name: &str| is_in(name) || without_build(name).is_some_and(&is_in);
        let member =
            |(id, _): (FunctionId, _)| id != Profile::ROOT && is_named(&crate::function_name(profile, id));
        Self { members: profile.functions.iter().map(member).collect() }
    }

    /// The same, with all functions of modules for which `is_in` holds: of libraries and other code
    /// that is no program by the name of its file, or by `[kernel]` and the like; of programs only
    /// where it holds for none of their functions, as programs and their functions share names.
    ///
    /// Tells the modules that are in the set as wholes.
    pub fn matching_with_modules(profile: &Profile, is_in: impl Fn(&str) -> bool) -> (Self, Vec<ModuleId>) {
        let mut set = Self::matching(profile, &is_in);
        let mut known = vec![false; profile.modules.len()];
        for (id, function) in profile.functions.iter() {
            if let Some(module) = function.module.filter(|_| set.contains(id)) {
                known[module.index()] = true;
            }
        }
        let file = |module: &Module| {
            let path = &profile.strings[module.path];
            path.rsplit('/').next().unwrap_or(path).to_owned()
        };
        let whole = |(id, module): &(ModuleId, &Module)| {
            let file = file(module);
            let is_library = file.contains(".so") || file.starts_with('[');
            is_in(&file) && (is_library || !known[id.index()])
        };
        let modules: Vec<_> = profile.modules.iter().filter(whole).map(|(id, _)| id).collect();
        for (id, function) in profile.functions.iter() {
            set.members[id.index()] |= function.module.is_some_and(|module| modules.contains(&module));
        }
        (set, modules)
    }

    /// Exactly these functions.
    pub fn of(profile: &Profile, functions: &[FunctionId]) -> Self {
        let mut members = vec![false; profile.functions.len()];
        functions.iter().for_each(|function| members[function.index()] = true);
        Self { members }
    }

    /// Whether the function is in the set.
    pub fn contains(&self, function: FunctionId) -> bool {
        self.members[function.index()]
    }

    /// Whether no function is in the set.
    pub fn is_empty(&self) -> bool {
        !self.members.contains(&true)
    }
}

/// The part of a profile to keep. Everything, by default.
///
/// A selection leaves out costs only: percentages stay those of the whole run, for
/// which [`Basis`](crate::Basis) is taken from the whole profile.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// By thread: whether it is kept.
    pub threads: Option<Vec<bool>>,
    /// Keep only stacks with at least one of these functions.
    pub focus: Option<FunctionSet>,
    /// Leave out stacks with any of these functions.
    pub ignore: Option<FunctionSet>,
    /// Leave out frames of these functions; what they cost goes to their callers.
    pub hide: Option<FunctionSet>,
}

/// The selected part, and by node of the whole the node that its cost went to.
type Selected<'a> = (Cow<'a, Profile>, Option<Vec<Option<NodeId>>>);

/// A part of a profile was asked for that its data cannot tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTree;

impl std::fmt::Display for NoTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "the profile has arcs but no stacks, so threads and runs cannot be told apart, and nothing can be hidden",
        )
    }
}

impl std::error::Error for NoTree {}

impl Selection {
    /// Keeps the threads for which `keep` holds.
    pub fn keep_threads(&mut self, profile: &Profile, keep: impl Fn(&Thread) -> bool) {
        self.threads = Some(profile.threads.iter().map(keep).collect());
    }

    /// Whether everything is kept.
    pub fn is_everything(&self) -> bool {
        self.threads.is_none() && self.focus.is_none() && self.ignore.is_none() && self.hide.is_none()
    }

    /// The selected part of a profile, in O(nodes). All threads stay listed.
    ///
    /// Of a profile that has arcs and no tree, the functions and arcs of which it is known that they lie in the part; what
    /// is not known is noted.
    ///
    /// # Errors
    /// When the profile has no tree, and threads are chosen or functions hidden.
    pub fn apply<'a>(&self, profile: &'a Profile) -> Result<Cow<'a, Profile>, NoTree> {
        Ok(self.apply_with_nodes(profile)?.0)
    }

    /// Like [`apply`](Self::apply), with the node that each node's cost went to, if it was kept.
    /// No nodes when everything is kept, each in its place.
    pub(crate) fn apply_with_nodes<'a>(&self, profile: &'a Profile) -> Result<Selected<'a>, NoTree> {
        if self.is_everything() {
            return Ok((Cow::Borrowed(profile), None));
        }
        if profile.is_arcs_only() {
            if self.threads.is_some() || self.hide.is_some() {
                return Err(NoTree);
            }
            let part = ArcPart::of(profile, self.focus.as_ref(), self.ignore.as_ref());
            return Ok((Cow::Owned(part.apply()), None));
        }
        let kept = self.kept(profile);
        let needed = with_callers(&profile.tree, &kept);
        let mut copy = Copy::of(profile, self.hide.as_ref());
        self.counts(&mut copy);
        copy.nodes(&needed);
        copy.costs(&kept);
        let nodes = copy.details(&kept);
        // Of a part of the stacks nobody knows the addresses.
        if self.focus.is_none() && self.ignore.is_none() && self.hide.is_none() {
            copy.into.add_address_costs_of(profile, &nodes);
        }
        // Where no stack is left, counts alone would look like all that is known of the part.
        if copy.into.is_arcs_only() {
            copy.into.arcs.clear();
        }
        Ok((Cow::Owned(copy.into), Some(nodes)))
    }

    /// Calls that were counted apart from the stacks, as far as it is known that they lie in the part.
    fn counts(&self, copy: &mut Copy<'_>) {
        if copy.from.arcs.is_empty() {
            return;
        }
        // Functions that are called by code that reports no calls may be below an ignored function.
        if self.threads.is_some() || self.ignore.is_some() {
            copy.into.metadata.note(
                "calls were counted of the whole program, so they are left out where threads, runs or stacks are",
            );
            return;
        }
        let (arcs, unknown) = match &self.focus {
            Some(focus) => ArcPart::of(copy.from, Some(focus), None).counts(),
            None => (copy.from.arcs.clone(), 0),
        };
        if unknown > 0 {
            copy.into.metadata.note(
                "calls were counted of the whole program: they are shown where all calls are known to be in this part",
            );
        }
        copy.into.arcs = arcs;
        copy.hide_arcs();
    }

    /// By node: whether what was spent in it is kept.
    fn kept(&self, profile: &Profile) -> Vec<bool> {
        let tree = &profile.tree;
        let is_in = |set: &Option<FunctionSet>, node| {
            set.as_ref().is_some_and(|set| set.contains(tree.function(node)))
        };
        let threads = profile.node_threads();
        let thread_kept =
            |node: NodeId| self.threads.as_ref().is_none_or(|kept| kept[threads[node.index()].index()]);
        // Flags of the stack that ends at each node.
        let mut focused = vec![self.focus.is_none(); tree.len()];
        let mut allowed = vec![true; tree.len()];
        for node in tree.nodes() {
            let parent = tree.parent(node).map(NodeId::index);
            let at = node.index();
            focused[at] |= parent.is_some_and(|parent| focused[parent]) || is_in(&self.focus, node);
            let above = parent.map_or_else(|| thread_kept(node), |parent| allowed[parent]);
            allowed[at] = above && !is_in(&self.ignore, node);
        }
        focused.iter().zip(&allowed).map(|(&focused, &allowed)| focused && allowed).collect()
    }
}

/// By node: whether it or any node of its subtree is kept.
fn with_callers(tree: &Tree, kept: &[bool]) -> Vec<bool> {
    let mut needed = kept.to_vec();
    for node in tree.nodes().rev() {
        if let Some(parent) = tree.parent(node) {
            needed[parent.index()] |= needed[node.index()];
        }
    }
    needed
}

/// Copies nodes from one profile to another with the same tables.
pub(crate) struct Copy<'a> {
    from: &'a Profile,
    into: Profile,
    hide: Option<&'a FunctionSet>,
    /// By node of `from`: the node that stands for it.
    nodes: Vec<Option<NodeId>>,
    /// By hidden node: the line in the shown caller from which it was reached.
    reached_from: Vec<Option<LineId>>,
}

impl<'a> Copy<'a> {
    pub(crate) fn of(from: &'a Profile, hide: Option<&'a FunctionSet>) -> Self {
        let mut into = from.without_tree();
        into.arcs.clear();
        let mut nodes = vec![None; from.tree.len()];
        for thread in &from.threads {
            let added = into.add_thread(thread.process, thread.tid, thread.name.clone());
            nodes[thread.root.index()] = Some(into.threads[added.index()].root);
        }
        Self { from, into, hide, nodes, reached_from: vec![None; from.tree.len()] }
    }

    /// The copied part.
    pub(crate) fn into_profile(self) -> Profile {
        self.into
    }

    /// Leaves out counted calls of hidden functions. Calls made by hidden functions have no caller then: the visible
    /// function that they were made for is unknown.
    fn hide_arcs(&mut self) {
        let Some(hide) = self.hide else { return };
        let arcs = &mut self.into.arcs;
        arcs.retain(|arc| !hide.contains(arc.callee));
        let hidden = arcs.iter_mut().filter(|arc| arc.caller != Profile::ROOT && hide.contains(arc.caller));
        let mut any = false;
        for arc in hidden {
            arc.caller = Profile::ROOT;
            any = true;
        }
        if any {
            self.into
                .metadata
                .note("calls that hidden functions made are counted, and stand without a caller");
        }
    }

    fn is_hidden(&self, node: NodeId) -> bool {
        self.hide.is_some_and(|hide| hide.contains(self.from.tree.function(node)))
    }

    pub(crate) fn nodes(&mut self, needed: &[bool]) {
        let tree = &self.from.tree;
        for node in tree.nodes().filter(|node| needed[node.index()]) {
            let Some(parent) = tree.parent(node) else { continue };
            let caller = self.nodes[parent.index()].expect("callers of needed nodes are needed");
            let call_site = match self.is_hidden(parent) {
                true => self.reached_from[parent.index()],
                false => tree.call_site(node),
            };
            self.nodes[node.index()] = Some(if self.is_hidden(node) {
                self.reached_from[node.index()] = call_site;
                caller
            } else {
                self.into.tree.child(caller, tree.function(node), call_site)
            });
        }
    }

    pub(crate) fn costs(&mut self, kept: &[bool]) {
        let kept_nodes = self.from.tree.nodes().filter(|node| kept[node.index()]);
        for node in kept_nodes {
            let Some(to) = self.nodes[node.index()] else { continue };
            let (calls, recursive) = (self.from.tree.calls(node), self.from.tree.recursive_calls(node));
            if calls > 0 && !self.is_hidden(node) {
                self.into.tree.add_calls(to, calls, recursive);
            }
            for metric in (0..self.from.metrics.len()).map(MetricId::from_usize) {
                let cost = self.from.tree.self_cost(metric, node);
                self.into.tree.add_self_cost(metric, to, cost);
                self.charge_call_site(node, to, metric, cost);
            }
        }
        let lines = self.from.line_costs.iter();
        let shown = lines.filter(|cost| kept[cost.node.index()] && !self.is_hidden(cost.node));
        let moved = shown.filter_map(|cost| Some(LineCost { node: self.nodes[cost.node.index()]?, ..*cost }));
        let moved: Vec<_> = moved.collect();
        self.into.line_costs.extend(moved);
        self.into.compact_line_costs();
    }

    /// Adds what is known beside costs; for a hidden node nothing but its points, which its caller
    /// gets. Gives the node that each kept node's cost went to.
    pub(crate) fn details(&mut self, kept: &[bool]) -> Vec<Option<NodeId>> {
        let metrics: Vec<_> = self.from.metrics().map(|(metric, _)| metric).collect();
        let of_kept = |(node, &to): (NodeId, &Option<NodeId>)| to.filter(|_| kept[node.index()]);
        let nodes: Vec<_> = self.from.tree.nodes().zip(&self.nodes).map(of_kept).collect();
        let of_shown = |(node, &to): (NodeId, &Option<NodeId>)| to.filter(|_| !self.is_hidden(node));
        let shown: Vec<_> = self.from.tree.nodes().zip(&nodes).map(of_shown).collect();
        self.into.add_details_of(self.from, &shown, &metrics);
        self.into.add_points_of(self.from, &nodes, &metrics);
        self.into.add_ended_waits_of(self.from, &nodes);
        let Self { from, into, hide, reached_from, nodes: all } = self;
        let is_hidden = |node| hide.is_some_and(|hide| hide.contains(from.tree.function(node)));
        let place = |node: NodeId, line| {
            let line = if is_hidden(node) { reached_from[node.index()] } else { line };
            Some((nodes[node.index()]?, line))
        };
        into.take_timeline_of(from, &metrics, place, |root| all[root.index()]);
        self.into.add_code_of(self.from, &nodes);
        nodes
    }

    /// The cost of a hidden node was passed, to its caller, on the line of the call.
    fn charge_call_site(&mut self, node: NodeId, to: NodeId, metric: MetricId, cost: u64) {
        if let Some(line) = self.reached_from[node.index()]
            && cost > 0
        {
            self.into.line_costs.push(LineCost { node: to, line, metric, cost });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACKS: &str = "
        main@3;work@7;copy@1 5
        main@4;copy@2 2
        main@5 1
        @helper loop@9;copy@1 4
    ";

    /// The samples of each stack of the selected part.
    fn select(choose: impl Fn(&Profile, &mut Selection)) -> Vec<String> {
        let profile = treering_testing::stacks(STACKS);
        let mut selection = Selection::default();
        choose(&profile, &mut selection);
        let part = selection.apply(&profile).expect("the profile has a tree");
        assert_eq!(part.validate(), Ok(()));
        let samples = MetricId::new(1);
        let stack = |node: NodeId| {
            let frame = |at: NodeId| {
                let name = crate::function_name(&part, part.tree.function(at)).into_owned();
                let site = part.tree.call_site(at).map_or(0, |line| part.lines[line].line);
                (at != part.threads[0].root && at != part.threads[1].root).then(|| format!("{site}:{name}"))
            };
            let mut frames: Vec<_> = part.tree.path(node).filter_map(frame).collect();
            frames.reverse();
            format!("{} {}", frames.join(";"), part.tree.self_cost(samples, node))
        };
        let charged = part.tree.nodes().filter(|&node| part.tree.self_cost(samples, node) > 0);
        charged.map(stack).collect()
    }

    fn named(profile: &Profile, name: &str) -> Option<FunctionSet> {
        Some(FunctionSet::matching(profile, |text| text == name))
    }

    #[test]
    fn focus_keeps_stacks_with_the_function_and_their_callers() {
        let kept = select(|profile, selection| selection.focus = named(profile, "work"));
        assert_eq!(kept, ["0:main;3:work;7:copy 5"]);
    }

    #[test]
    fn ignore_drops_stacks_with_the_function() {
        let kept = select(|profile, selection| selection.ignore = named(profile, "copy"));
        assert_eq!(kept, ["0:main 1"]);
    }

    #[test]
    fn hidden_frames_charge_their_callers() {
        let kept = select(|profile, selection| selection.hide = named(profile, "copy"));
        assert_eq!(kept, ["0:main 3", "0:main;3:work 5", "0:loop 4"]);
    }

    #[test]
    fn a_callee_of_a_hidden_frame_is_called_from_where_the_frame_was() {
        let kept = select(|profile, selection| selection.hide = named(profile, "work"));
        assert_eq!(kept, ["0:main 1", "0:main;3:copy 5", "0:main;4:copy 2", "0:loop;9:copy 4"]);
    }

    #[test]
    fn a_name_is_matched_without_the_build_that_was_added_to_it() {
        let profile =
            treering_testing::stacks("main;spin (build 1f2e3d4c) 3\n main;spin (build x) 2\n main;spinner 1");
        let matched = |wanted: &str| {
            let set = FunctionSet::matching(&profile, |name| name == wanted);
            profile.functions.iter().filter(|(id, _)| set.contains(*id)).count()
        };
        assert_eq!(["spin", "spin (build 1f2e3d4c)", "spin (build x)", "spi"].map(matched), [1, 1, 1, 0]);
    }

    #[test]
    fn hidden_cost_is_on_the_line_of_the_call() {
        let profile = treering_testing::stacks("main@3;work@7 5");
        let selection = Selection { hide: named(&profile, "work"), ..Selection::default() };
        let part = selection.apply(&profile).expect("the profile has a tree");
        let lines: Vec<_> = part.line_costs.iter().map(|cost| part.lines[cost.line].line).collect();
        assert_eq!(lines, [3, 3]);
    }

    #[test]
    fn threads_are_chosen_by_what_is_known_of_them() {
        let kept = select(|profile, selection| {
            selection.keep_threads(profile, |thread| thread.name == "helper");
        });
        assert_eq!(kept, ["0:loop;9:copy 4"]);
    }
}
