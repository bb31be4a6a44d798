//! Selections in profiles that have arcs only.
//!
//! An arc sums up all calls of one function by another, for all callers of the caller. So the selection contains an
//! arc as a whole only if it contains everything that the caller does: if every path from the start to the caller
//! passes a function of the focus, and none passes an ignored one. Calls *of* a function of the focus are selected
//! for all callers. For all other functions, the selected share is unknown.

use std::collections::BTreeSet;

use treering_profile::{Arc, Function, FunctionId, NodeId, Profile, StringId};

use crate::identity::{Identity, function_name};
use crate::selection::{Copy, FunctionSet};

/// The functions and arcs of a profile that lie in a part of it.
pub(crate) struct ArcPart<'a> {
    profile: &'a Profile,
    identity: Identity,
    /// By function: whether it is in the focus.
    focus: Vec<bool>,
    /// By function: whether all that it does is in the part.
    whole: Vec<bool>,
    ignored: Vec<bool>,
    /// By function: whether an ignored one may be above it, or it is one.
    below_ignored: Vec<bool>,
    /// By function: whether an ignored one may be below it, or it is one.
    above_ignored: Vec<bool>,
    /// By function: whether one that is wholly in the part may be below it.
    above_whole: Vec<bool>,
    /// Functions without a known caller that are not among those with which programs begin.
    unexplained: Vec<u32>,
}

/// How an arc lies in the part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// All calls are in the part, and all that the callee does.
    Within,
    /// All calls are in the part; the callee works for others, too.
    Leaving,
    /// Nothing of it is selected, or the share is unknown.
    Outside,
}

impl<'a> ArcPart<'a> {
    pub(crate) fn of(
        profile: &'a Profile,
        focus: Option<&FunctionSet>,
        ignore: Option<&FunctionSet>,
    ) -> Self {
        let identity = Identity::of(profile);
        let functions = identity.table_len();
        let members = |set: Option<&FunctionSet>| {
            let mut members = vec![false; functions];
            for (id, _) in profile.functions.iter() {
                members[identity.representative(id).index()] |= set.is_some_and(|set| set.contains(id));
            }
            members
        };
        let (in_focus, ignored) = (members(focus), members(ignore));
        let ways = Ways::of(profile, &identity);
        let outside = match focus {
            Some(_) => reached(&ways.starts(), &ways.callees, &in_focus),
            None => vec![false; functions],
        };
        let nothing = vec![false; functions];
        let unexplained = ways.unexplained(profile);
        let mut above = indexes(&ignored);
        if ignore.is_some() {
            // Any function may have called these through code that reports no calls, ignored ones as well.
            above.extend(&unexplained);
        }
        let below_ignored = reached(&above, &ways.callees, &nothing);
        let above_ignored = reached(&indexes(&ignored), &ways.callers, &nothing);
        let whole: Vec<bool> =
            (0..functions).map(|at| ways.occurs[at] && !outside[at] && !below_ignored[at]).collect();
        let above_whole = reached(&indexes(&whole), &ways.callers, &nothing);
        let focus = in_focus;
        Self {
            profile,
            identity,
            focus,
            whole,
            ignored,
            below_ignored,
            above_ignored,
            above_whole,
            unexplained,
        }
    }

    fn index(&self, function: FunctionId) -> usize {
        self.identity.representative(function).index()
    }

    fn place(&self, arc: &Arc) -> Place {
        let (caller, callee) = (self.index(arc.caller), self.index(arc.callee));
        // A function without a known caller is the start of its own path.
        let from_within = arc.caller == Profile::ROOT || self.whole[caller];
        let into_focus = self.focus[callee] && !self.below_ignored[caller];
        match (self.whole[callee], from_within || into_focus) {
            (true, true) => Place::Within,
            (false, _) if self.whole[caller] && !self.ignored[callee] => Place::Leaving,
            _ => Place::Outside,
        }
    }

    /// The counts of calls that lie in the part, of a profile that has stacks beside them, and the number of arcs that
    /// were left out, as it is not known where they lie. An arc of no calls from the root marks a callee that was called
    /// elsewhere, too.
    pub(crate) fn counts(&self) -> (Vec<Arc>, usize) {
        let (mut kept, mut unknown) = (Vec::new(), 0);
        let mut shared = vec![false; self.whole.len()];
        for arc in &self.profile.arcs {
            match self.place(arc) {
                Place::Within => kept.push(arc.clone()),
                Place::Leaving => {
                    kept.push(arc.clone());
                    shared[self.index(arc.callee)] = true;
                }
                Place::Outside => unknown += 1,
            }
        }
        for at in indexes(&shared) {
            let (caller, callee) = (Profile::ROOT, FunctionId::new(at));
            kept.push(Arc { caller, callee, call_site: None, calls: 0, total_costs: Vec::new() });
        }
        (kept, unknown)
    }

    /// The part of a profile that has nothing but arcs.
    pub(crate) fn apply(&self) -> Profile {
        let tree = &self.profile.tree;
        // Costs outside of every function have no function of the focus above them.
        let is_kept = |node: NodeId| match tree.parent(node) {
            None => !self.focus.contains(&true),
            Some(_) => self.whole[self.index(tree.function(node))],
        };
        let kept: Vec<bool> = tree.nodes().map(is_kept).collect();
        let mut copy = Copy::of(self.profile, None);
        copy.nodes(&kept);
        copy.costs(&kept);
        copy.details(&kept);
        let mut part = copy.into_profile();
        let leaving = self.add_arcs(&mut part);
        self.explain(&mut part, leaving);
        part
    }

    /// Adds the arcs of the part; what is called elsewhere, too, as functions that stand for all that they called.
    fn add_arcs(&self, part: &mut Profile) -> Leaving {
        let mut leaving = Leaving::default();
        for arc in &self.profile.arcs {
            let place = self.place(arc);
            let callee = self.index(arc.callee);
            match place {
                Place::Within => {
                    let mut arc = arc.clone();
                    if self.above_ignored[callee] {
                        arc.total_costs.clear();
                    }
                    part.add_arc(arc);
                }
                Place::Leaving => {
                    let measured = !arc.total_costs.is_empty();
                    if measured && !self.above_ignored[callee] && !self.above_whole[callee] {
                        leaving.told.insert(callee as u32);
                        self.add_shared(part, arc);
                    } else {
                        leaving.unknown.insert(callee as u32);
                    }
                }
                Place::Outside => {}
            }
        }
        leaving
    }

    fn add_shared(&self, part: &mut Profile, arc: &Arc) {
        let function = self.profile.functions[arc.callee];
        let name = format!("{} and all it calls", function_name(self.profile, arc.callee));
        let name = part.strings.intern(&name);
        let linkage_name = StringId::new(0);
        let shared = part.functions.intern(Function { name, linkage_name, ..function });
        let root = part.threads[0].root;
        let node = part.tree.child(root, shared, None);
        for &(metric, cost) in &arc.total_costs {
            part.tree.add_self_cost(metric, node, cost);
        }
        part.add_arc(Arc { callee: shared, ..arc.clone() });
    }

    /// The names of functions, or of some.
    fn names<'b>(&self, of: impl IntoIterator<Item = &'b u32>) -> String {
        const SHOWN: usize = 3;
        let name = |&at: &u32| function_name(self.profile, FunctionId::new(at)).into_owned();
        let mut names: Vec<_> = of.into_iter().map(name).collect();
        names.sort();
        let more = names.len().saturating_sub(SHOWN);
        names.truncate(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", names.join(", "))
    }

    /// Says what cannot be known.
    fn explain(&self, part: &mut Profile, leaving: Leaving) {
        part.metadata.note(
            "the profile has no stacks: a function is in the part only if all ways to it, or none, pass the chosen \
             functions",
        );
        if !leaving.told.is_empty() {
            part.metadata.note(format!(
                "this part and others call {}: what they did for this part is one row each, with all they call",
                self.names(&leaving.told)
            ));
        }
        if !leaving.unknown.is_empty() {
            part.metadata.note(format!(
                "this part and others call {}: what they cost for this part is not known, and is missing",
                self.names(&leaving.unknown)
            ));
        }
        let missing: Vec<u32> =
            self.unexplained.iter().copied().filter(|&at| !self.whole[at as usize]).collect();
        if !missing.is_empty() {
            part.metadata.note(format!(
                "no caller of {} is known: whether they belong to this part is not known, and they are missing with \
                 what they call",
                self.names(&missing)
            ));
        }
    }
}

/// Functions that the part calls and others as well: with a known cost, and without.
#[derive(Default)]
struct Leaving {
    told: BTreeSet<u32>,
    unknown: BTreeSet<u32>,
}

/// Callers and callees, by function.
struct Ways {
    occurs: Vec<bool>,
    callees: Vec<Vec<u32>>,
    callers: Vec<Vec<u32>>,
    /// Functions without a known caller.
    spontaneous: Vec<bool>,
}

impl Ways {
    fn of(profile: &Profile, identity: &Identity) -> Self {
        let count = identity.table_len();
        let mut ways = Self {
            occurs: vec![false; count],
            callees: vec![Vec::new(); count],
            callers: vec![Vec::new(); count],
            spontaneous: vec![false; count],
        };
        for node in profile.tree.nodes().filter(|&node| profile.tree.parent(node).is_some()) {
            ways.occurs[identity.representative(profile.tree.function(node)).index()] = true;
        }
        for arc in &profile.arcs {
            let (caller, callee) = (identity.representative(arc.caller), identity.representative(arc.callee));
            ways.occurs[callee.index()] = true;
            if caller == Profile::ROOT {
                ways.spontaneous[callee.index()] = true;
            } else if caller != callee {
                ways.occurs[caller.index()] = true;
                ways.callees[caller.index()].push(callee.raw());
                ways.callers[callee.index()].push(caller.raw());
            }
        }
        ways
    }

    /// Where the program may have begun: functions without callers, and all that none of those lead to.
    fn starts(&self) -> Vec<u32> {
        let first = |&at: &usize| self.occurs[at] && (self.callers[at].is_empty() || self.spontaneous[at]);
        let mut starts: Vec<u32> = (0..self.occurs.len()).filter(first).map(|at| at as u32).collect();
        let led_to = reached(&starts, &self.callees, &vec![false; self.occurs.len()]);
        starts.extend((0..led_to.len()).filter(|&at| self.occurs[at] && !led_to[at]).map(|at| at as u32));
        starts
    }
}

impl Ways {
    /// Where the program may have begun, but for the functions with which programs and threads do begin. A single start
    /// is that of the program.
    fn unexplained(&self, profile: &Profile) -> Vec<u32> {
        let starts = self.starts();
        if starts.len() < 2 {
            return Vec::new();
        }
        let is_first = |at: &u32| FIRST.contains(&&*function_name(profile, FunctionId::new(*at)));
        starts.into_iter().filter(|at| !is_first(at)).collect()
    }
}

/// Functions with which programs and threads begin, which nothing else calls.
const FIRST: [&str; 10] = [
    "main",
    "_start",
    "(below main)",
    "_dl_start",
    "_dl_start_user",
    "clone",
    "clone3",
    "__clone",
    "__clone3",
    "start_thread",
];

/// The functions that can be reached without entering one in `closed`.
fn reached(from: &[u32], ways: &[Vec<u32>], closed: &[bool]) -> Vec<bool> {
    let mut found = vec![false; ways.len()];
    let mut pending: Vec<u32> = from.iter().copied().filter(|&at| !closed[at as usize]).collect();
    while let Some(at) = pending.pop() {
        if !std::mem::replace(&mut found[at as usize], true) {
            pending.extend(ways[at as usize].iter().filter(|&&next| !closed[next as usize]));
        }
    }
    found
}

fn indexes(marks: &[bool]) -> Vec<u32> {
    (0..marks.len() as u32).filter(|&at| marks[at as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flat_profile::flat_profile;
    use crate::{FunctionSet, Selection};

    /// `main` calls `a` and `b`; both call `sort`, which calls `compare`; `a` alone calls `own`.
    fn profile(measured: bool) -> Profile {
        let own = [("main", 1), ("a", 2), ("b", 3), ("sort", 40), ("compare", 50), ("own", 4)];
        let arcs = [
            ("main", "a", 1, 86),
            ("main", "b", 2, 13),
            ("a", "sort", 8, 80),
            ("a", "own", 3, 4),
            ("b", "sort", 1, 10),
            ("sort", "compare", 90, 50),
        ];
        let arcs =
            arcs.map(|(caller, callee, calls, cost)| (caller, callee, calls, measured.then_some(cost)));
        flat_profile(&own, &arcs)
    }

    fn select(profile: &Profile, focus: &str, ignore: &str) -> Profile {
        let set = |name: &str| {
            Some(FunctionSet::matching(profile, |text| text == name)).filter(|set| !set.is_empty())
        };
        let selection = Selection { focus: set(focus), ignore: set(ignore), ..Selection::default() };
        selection.apply(profile).expect("arcs tell of focus and ignore").into_owned()
    }

    /// Self costs, then arcs, then what is said.
    fn describe(part: &Profile) -> String {
        assert_eq!(part.validate(), Ok(()));
        let name = |function| function_name(part, function).into_owned();
        let costs = part.tree.nodes().filter(|&node| part.tree.parent(node).is_some()).map(|node| {
            let cost = part.tree.self_cost(treering_profile::MetricId::new(0), node);
            format!("{} {cost}\n", name(part.tree.function(node)))
        });
        let arcs = part.arcs.iter().map(|arc| {
            let cost = arc.total_costs.first().map_or("?".to_owned(), |cost| cost.1.to_string());
            format!("{} > {}: {} calls, {cost}\n", name(arc.caller), name(arc.callee), arc.calls)
        });
        let notes = part.metadata.notes.iter().skip(1).map(|note| format!("{}\n", note.0));
        costs.chain(arcs).chain(notes).collect()
    }

    #[test]
    fn a_focus_has_what_it_alone_calls_and_what_its_calls_of_others_cost() {
        expect_test::expect![[r#"
            a 2
            own 4
            sort and all it calls 80
            main > a: 1 calls, 86
            a > sort and all it calls: 8 calls, 80
            a > own: 3 calls, 4
            this part and others call sort: what they did for this part is one row each, with all they call
        "#]]
        .assert_eq(&describe(&select(&profile(true), "a", "")));
    }

    #[test]
    fn costs_that_were_not_measured_are_missing_and_named() {
        expect_test::expect![[r#"
            a 2
            own 4
            main > a: 1 calls, ?
            a > own: 3 calls, ?
            this part and others call sort: what they cost for this part is not known, and is missing
        "#]]
        .assert_eq(&describe(&select(&profile(false), "a", "")));
    }

    #[test]
    fn costs_of_possible_callees_of_an_ignored_function_are_not_divided() {
        expect_test::expect![[r#"
            main 1
            b 3
            sort and all it calls 10
            main > b: 2 calls, 13
            b > sort and all it calls: 1 calls, 10
            this part and others call sort: what they did for this part is one row each, with all they call
        "#]]
        .assert_eq(&describe(&select(&profile(true), "", "a")));
    }

    #[test]
    fn functions_without_a_known_caller_may_be_below_an_ignored_one() {
        let mut profile = profile(true);
        let name = profile.strings.intern("handler");
        let handler = profile.functions.intern(Function::named(name));
        let node = profile.tree.child(profile.threads[0].root, handler, None);
        profile.tree.add_self_cost(treering_profile::MetricId::new(0), node, 7);
        let text = describe(&select(&profile, "", "own"));
        assert!(!text.contains("handler 7") && text.contains("no caller of handler is known"), "{text}");
        // Costs of calls that may hold ignored ones are not those of the part.
        assert!(text.contains("main > a: 1 calls, ?") && text.contains("main > b: 2 calls, 13"), "{text}");
    }

    #[test]
    fn counts_beside_stacks_stay_where_all_calls_are_in_the_part() {
        let mut counted = profile(false);
        let find = |profile: &Profile, wanted: &str| {
            let mut ids = profile.functions.iter().map(|(id, _)| id);
            ids.find(|&id| function_name(profile, id) == wanted).expect("the function is there")
        };
        let [main, a, sort] = ["main", "a", "sort"].map(|name| find(&counted, name));
        let frames = [main, a, sort].map(treering_profile::Frame::new);
        counted.add_stack(treering_profile::ThreadId::new(0), &frames, None, &[]);
        assert!(counted.has_counts_apart());
        let part = select(&counted, "a", "");
        let graph = crate::CallGraph::of(
            &part,
            &crate::Basis::of(&counted, treering_profile::MetricId::new(0)),
            crate::Presentation::Contexts,
        );
        let calls =
            |name: &str| graph.function(find(&part, name)).and_then(|cost| cost.calls).map(|calls| calls.all);
        assert_eq!(["a", "own", "sort", "main"].map(calls), [Some(1), Some(3), None, None]);
        let arc = graph.callees(find(&part, "a")).find(|arc| arc.callee == find(&part, "sort"));
        assert_eq!(arc.map(|arc| arc.calls), Some(8));
    }
}
