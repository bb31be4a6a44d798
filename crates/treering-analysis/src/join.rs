//! Counts and samples of the same program in one profile.
//!
//! A program can be counted exactly, in a run that takes many times as long, so that its times say nothing; or
//! sampled, in a run that hardly takes longer, which tells nothing of calls. A profile of both has calls and instructions
//! from the one and time from the other, in the same rows.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use treering_profile::{
    Function, FunctionId, FunctionKind, Interner, MetricId, Module, ModuleId, ModuleKind, NodeId, Profile,
    RunId, StatedAddress, StringId, Tree, merge,
};

use crate::exact_cost::is_exact;
use crate::identity::{Identity, function_name};
use crate::measure::default_metric;

/// Why two profiles cannot be joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotJoinable {
    /// The first has neither calls nor exact costs.
    NothingCounted,
    /// The second has no sampled costs.
    NothingSampled,
    /// The second has counted calls already.
    CountedTwice,
    /// They have no program in common. Both are named.
    OtherPrograms(String, String),
    /// A file was built anew between both. It is named.
    OtherBuild(String),
}

impl std::fmt::Display for NotJoinable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NothingCounted => f.write_str("the first profile has no counts"),
            Self::NothingSampled => f.write_str("the second profile has no samples"),
            Self::CountedTwice => f.write_str("the second profile has counted calls already"),
            Self::OtherPrograms(counted, sampled) => {
                write!(
                    f,
                    "the profiles are of different programs: {counted} was counted, {sampled} was sampled"
                )
            }
            Self::OtherBuild(module) => {
                write!(f, "the profiles are of different builds of {module}: their build-ids differ")
            }
        }
    }
}

impl std::error::Error for NotJoinable {}

/// A profile of counts and samples, and what of each has no counterpart.
#[derive(Clone, Debug)]
pub struct Joined {
    /// The profile.
    pub profile: Profile,
    /// The costs not found in the other, by metric: the sampled one, and an exact one if there is any.
    pub unmatched: Vec<Unmatched>,
    /// Modules without a build-id, which cannot be proved to be of one build.
    pub unproven: Vec<String>,
}

/// The cost in functions, or in contexts, that only one of both profiles has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// The name of the metric.
    pub metric: String,
    /// The whole cost.
    pub whole: u64,
    /// The cost in functions that the other profile does not have.
    pub in_functions: u64,
    /// The kernel's part of that, which no program can count.
    pub in_kernel: u64,
    /// The largest of these functions that are not the kernel's, with their costs.
    pub largest: Vec<(String, u64)>,
    /// The cost in functions that both have, in contexts that the other does not have; nothing where the other has no contexts.
    pub in_contexts: Option<u64>,
}

/// Joins the counts of one profile with the samples of another.
///
/// Of the first, calls and exact costs are taken; of the second, everything. Functions are the same if their modules have
/// one build-id and they begin at the same address, or else have the same name and file. Inlined functions become part of
/// those that hold their code, as counts are of those; their lines stay.
///
/// # Errors
/// When one has not what is wanted of it, or they are not of the same program.
pub fn join(counted: &Profile, sampled: &Profile) -> Result<Joined, NotJoinable> {
    let Some(metric) = default_metric(sampled).filter(|&metric| is_sampled(sampled, metric)) else {
        return Err(NotJoinable::NothingSampled);
    };
    if !sampled.arcs.is_empty() || sampled.tree.has_calls() {
        return Err(NotJoinable::CountedTwice);
    }
    let counts = counts_only(counted).ok_or(NotJoinable::NothingCounted)?;
    let unproven = compare_modules(&counts, sampled)?;
    let sampled = without_inlined(sampled);
    let counts = with_names_of(counts, &sampled);
    let name = &sampled.metrics[metric.index()].name;
    let mut unmatched = vec![unmatched(&sampled, metric, &counts)];
    let exact = counts.cost_metrics().find(|(_, metric)| metric.sampling.is_none());
    unmatched.extend(exact.map(|(metric, _)| self::unmatched(&counts, metric, &sampled)));
    let mut profile = merge(&[&sampled, &counts]);
    one_run(&mut profile, &sampled);
    let exact = exact.map_or_else(|| "calls".to_owned(), |(_, metric)| format!("{} and calls", metric.name));
    let command = counts.runs.first().map_or_else(String::new, |run| run.command.join(" "));
    profile
        .metadata
        .note(format!("{exact} were counted exactly in a run of their own ({command}); {name} was sampled"));
    Ok(Joined { profile, unmatched, unproven })
}

fn is_sampled(profile: &Profile, metric: MetricId) -> bool {
    profile.metrics[metric.index()].sampling.is_some()
}

/// The profile with nothing but exact costs and counts; nothing if there are none.
fn counts_only(profile: &Profile) -> Option<Profile> {
    let is_calls = |id: MetricId| profile.metrics[id.index()].name == "calls" && !profile.arcs.is_empty();
    let is_wanted = |id: MetricId| is_exact(profile, id) && !is_calls(id);
    let kept: Vec<MetricId> = profile.cost_metrics().map(|(id, _)| id).filter(|&id| is_wanted(id)).collect();
    let sampled = profile.metrics.iter().any(|metric| metric.sampling.is_some());
    let mut counts = profile.without_tree();
    // Calls are no costs of their own where they are in arcs.
    counts.arcs.retain(|arc| arc.calls > 0);
    counts.arcs.iter_mut().for_each(|arc| arc.total_costs.clear());
    counts.activations = None;
    let mut nodes = vec![None; profile.tree.len()];
    for thread in &profile.threads {
        let added = counts.add_thread(thread.process, thread.tid, thread.name.clone());
        nodes[thread.root.index()] = Some(counts.threads[added.index()].root);
    }
    counts.metrics.clear();
    let metrics = kept.iter().map(|metric| profile.metrics[metric.index()].clone());
    counts.metrics.extend(metrics);
    // The stacks of samples say nothing of counts.
    if !sampled {
        for node in profile.tree.nodes() {
            let Some(parent) = profile.tree.parent(node).and_then(|parent| nodes[parent.index()]) else {
                continue;
            };
            let frame = profile.frame(node);
            nodes[node.index()] = Some(counts.tree.child(parent, frame.function, frame.call_site));
        }
    }
    counts.tree = tree_with(&counts.tree, kept.len());
    for node in profile.tree.nodes() {
        let Some(to) = nodes[node.index()].filter(|_| !sampled) else { continue };
        let (calls, recursive) = (profile.tree.calls(node), profile.tree.recursive_calls(node));
        if calls > 0 {
            counts.tree.add_calls(to, calls, recursive);
        }
        for (at, &metric) in kept.iter().enumerate() {
            counts.tree.add_self_cost(MetricId::from_usize(at), to, profile.tree.self_cost(metric, node));
        }
    }
    if !sampled {
        counts.add_code_of(profile, &nodes);
    }
    let has_costs = counts.metrics().any(|(metric, _)| counts.run_cost(metric) > 0);
    (has_costs || counts.tree.has_calls() || !counts.arcs.is_empty()).then_some(counts)
}

/// The same nodes with `metrics` columns of zeros.
fn tree_with(tree: &Tree, metrics: usize) -> Tree {
    let zeros = vec![vec![0; tree.len()]; metrics];
    let (parents, functions) = (tree.parent_column().to_vec(), tree.function_column().to_vec());
    let sites = tree.call_site_column().to_vec();
    Tree::from_columns(parents, functions, sites, Vec::new(), Vec::new(), zeros)
        .expect("columns of a tree make a tree")
}

/// Refuses profiles of different programs. Returns the modules that cannot be compared.
fn compare_modules(counted: &Profile, sampled: &Profile) -> Result<Vec<String>, NotJoinable> {
    let (ours, theirs) = (programs(counted), programs(sampled));
    let mut unproven = Vec::new();
    let mut shared = false;
    for (name, of_counted) in &ours {
        let Some(of_sampled) = theirs.get(name) else { continue };
        if of_counted.is_disjoint(of_sampled) {
            let known = |ids: &HashSet<&[u8]>| !ids.contains(&[][..]);
            if known(of_counted) && known(of_sampled) {
                return Err(NotJoinable::OtherBuild(name.clone()));
            }
        }
        if of_counted.contains(&[][..]) || of_sampled.contains(&[][..]) {
            unproven.push(name.clone());
        }
        shared |= !is_library(name);
    }
    // A program that was moved has another name and the same build-id.
    let ids = |of: &BTreeMap<String, HashSet<&[u8]>>| -> HashSet<Vec<u8>> {
        let of_programs = of.iter().filter(|(name, _)| !is_library(name));
        of_programs
            .flat_map(|(_, ids)| ids.iter().filter(|id| !id.is_empty()).map(|id| id.to_vec()))
            .collect()
    };
    if !shared && ids(&ours).is_disjoint(&ids(&theirs)) {
        return Err(NotJoinable::OtherPrograms(names(&ours), names(&theirs)));
    }
    Ok(unproven)
}

fn is_library(name: &str) -> bool {
    name.contains(".so") || name.starts_with('[')
}

fn names(of: &BTreeMap<String, HashSet<&[u8]>>) -> String {
    let programs: Vec<&str> = of.keys().map(String::as_str).filter(|name| !is_library(name)).collect();
    if programs.is_empty() { "nothing".to_owned() } else { programs.join(", ") }
}

/// The build-ids of ELF files in which anything occurs, by their names without folders.
fn programs(profile: &Profile) -> BTreeMap<String, HashSet<&[u8]>> {
    let arcs = profile.arcs.iter().flat_map(|arc| [arc.caller, arc.callee]);
    let functions = profile.tree.function_column().iter().copied().chain(arcs);
    let modules: HashSet<ModuleId> =
        functions.filter_map(|function| profile.functions[function].module).collect();
    let mut programs: BTreeMap<String, HashSet<&[u8]>> = BTreeMap::new();
    for module in modules.into_iter().map(|module| &profile.modules[module]) {
        if module.kind == ModuleKind::Elf {
            programs.entry(file_name(profile, module)).or_default().insert(&module.build_id);
        }
    }
    programs
}

fn file_name(profile: &Profile, module: &Module) -> String {
    let path = &profile.strings[module.path];
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// The profile in which what inlined functions cost is part of what they were inlined into.
fn without_inlined(profile: &Profile) -> Cow<'_, Profile> {
    let is_inlined = |node: NodeId| {
        let kind = profile.functions[profile.tree.function(node)].kind;
        kind == FunctionKind::Inlined
            && profile.tree.parent(node).is_some_and(|parent| profile.tree.parent(parent).is_some())
    };
    if !profile.tree.nodes().any(is_inlined) {
        return Cow::Borrowed(profile);
    }
    let mut folded = profile.without_tree();
    let mut nodes = vec![None; profile.tree.len()];
    // By inlined node: the line in the function that holds its code.
    let mut site = vec![None; profile.tree.len()];
    for thread in &profile.threads {
        let added = folded.add_thread(thread.process, thread.tid, thread.name.clone());
        nodes[thread.root.index()] = Some(folded.threads[added.index()].root);
    }
    for node in profile.tree.nodes() {
        let Some(parent) = profile.tree.parent(node) else { continue };
        let Some(into) = nodes[parent.index()] else { continue };
        let frame = profile.frame(node);
        let from = if is_inlined(parent) { site[parent.index()] } else { frame.call_site };
        if is_inlined(node) {
            site[node.index()] = from;
            nodes[node.index()] = Some(into);
        } else {
            nodes[node.index()] = Some(folded.tree.child(into, frame.function, from));
        }
    }
    folded.add_costs_of(profile, &nodes);
    let metrics: Vec<MetricId> = profile.metrics().map(|(metric, _)| metric).collect();
    folded.add_details_of(profile, &nodes, &metrics);
    folded.add_points_of(profile, &nodes, &metrics);
    folded.add_ended_waits_of(profile, &nodes);
    let place = |node: NodeId, line| {
        let line = if is_inlined(node) { site[node.index()] } else { line };
        Some((nodes[node.index()]?, line))
    };
    folded.take_timeline_of(profile, &metrics, place, |root| nodes[root.index()]);
    folded.add_address_costs_of(profile, &nodes);
    folded.address_costs.iter_mut().for_each(|row| row.function = row.holder);
    folded.compact_address_costs();
    folded.compact_line_costs();
    folded.metadata.note("inlined functions are part of those that hold their code, as counts are of those");
    Cow::Owned(folded)
}

/// The identity of a function within one build.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Address(ModuleId, StatedAddress),
    Name(Option<ModuleId>, String, String),
}

/// The counts with modules and functions as the other profile has them, where both have the same.
fn with_names_of(mut counts: Profile, sampled: &Profile) -> Profile {
    let modules = modules_of(&counts, sampled);
    let text = |profile: &Profile, text: StringId| profile.strings[text].to_owned();
    let mut known: HashMap<Key, FunctionId> = HashMap::new();
    for (id, function) in
        sampled.functions.iter().filter(|(_, function)| function.kind != FunctionKind::Inlined)
    {
        if let (Some(module), Some(address)) = (function.module, function.address) {
            known.entry(Key::Address(module, address)).or_insert(id);
        }
        let key = Key::Name(function.module, text(sampled, function.name), text(sampled, function.file));
        known.entry(key).or_insert(id);
    }
    let mut entries: Vec<Function> = counts.functions.entries().to_vec();
    for function in entries.iter_mut().filter(|function| function.kind != FunctionKind::Root) {
        let module = match function.module {
            Some(module) => match modules.get(&module) {
                Some(&module) => Some(module),
                None => continue,
            },
            None => None,
        };
        let by_address =
            function.address.zip(module).and_then(|(at, module)| known.get(&Key::Address(module, at)));
        let by_name =
            || known.get(&Key::Name(module, text(&counts, function.name), text(&counts, function.file)));
        let Some(&same) = by_address.or_else(by_name) else { continue };
        let same = sampled.functions[same];
        let mut intern = |text: StringId| counts.strings.intern(&sampled.strings[text]);
        let (name, linkage_name, file) = (intern(same.name), intern(same.linkage_name), intern(same.file));
        *function = Function { name, linkage_name, file, module: function.module, ..same };
    }
    counts.functions = Interner::from_entries(entries);
    let mut entries: Vec<Module> = counts.modules.entries().to_vec();
    for (module, same) in modules {
        let same = &sampled.modules[same];
        let path = counts.strings.intern(&sampled.strings[same.path]);
        entries[module.index()] = Module { path, ..same.clone() };
    }
    counts.modules = Interner::from_entries(entries);
    counts
}

/// The modules of the counts that the other profile has as well: by build-id, or else by name.
fn modules_of(counts: &Profile, sampled: &Profile) -> HashMap<ModuleId, ModuleId> {
    let same = |ours: &Module| {
        let by_id = sampled
            .modules
            .iter()
            .find(|(_, theirs)| !ours.build_id.is_empty() && theirs.build_id == ours.build_id);
        let by_name = || {
            let alike = |theirs: &Module| {
                file_name(sampled, theirs) == file_name(counts, ours)
                    && (theirs.build_id.is_empty() || ours.build_id.is_empty())
            };
            sampled.modules.iter().find(|(_, theirs)| alike(theirs))
        };
        by_id.or_else(by_name).map(|(id, _)| id)
    };
    counts.modules.iter().filter_map(|(id, module)| Some((id, same(module)?))).collect()
}

/// The common name: function and file name of the module, as ids of both mean nothing to each other.
fn place(profile: &Profile, function: FunctionId) -> (String, Option<String>) {
    let module =
        profile.functions[function].module.map(|module| file_name(profile, &profile.modules[module]));
    (function_name(profile, function).into_owned(), module)
}

/// The cost of a metric in functions and contexts that the other profile does not have.
fn unmatched(profile: &Profile, metric: MetricId, other: &Profile) -> Unmatched {
    const SHOWN: usize = 3;
    let arcs = other.arcs.iter().flat_map(|arc| [arc.caller, arc.callee]);
    let occurring: HashSet<FunctionId> = other.tree.function_column().iter().copied().chain(arcs).collect();
    let known: HashSet<(String, Option<String>)> =
        occurring.into_iter().map(|function| place(other, function)).collect();
    let mut found = Unmatched {
        metric: profile.metrics[metric.index()].name.clone(),
        whole: profile.run_cost(metric),
        in_functions: 0,
        in_kernel: 0,
        largest: Vec::new(),
        in_contexts: None,
    };
    let identity = Identity::of(profile);
    let mut missing: HashMap<FunctionId, u64> = HashMap::new();
    let mut is_known: HashMap<FunctionId, bool> = HashMap::new();
    let contexts = Contexts::of(profile, other);
    for node in profile.tree.nodes() {
        let cost = profile.tree.self_cost(metric, node);
        let function = identity.representative(profile.tree.function(node));
        if cost == 0 || function == Profile::ROOT {
            continue;
        }
        if !*is_known.entry(function).or_insert_with(|| known.contains(&place(profile, function))) {
            found.in_functions += cost;
            *missing.entry(function).or_default() += cost;
        } else if let Some(contexts) = &contexts {
            *found.in_contexts.get_or_insert(0) += if contexts.has(node) { 0 } else { cost };
        }
    }
    let mut largest: Vec<_> = missing.into_iter().collect();
    largest.sort_by_key(|&(function, cost)| (std::cmp::Reverse(cost), function));
    let is_kernel = |function: FunctionId| profile.functions[function].kind == FunctionKind::Kernel;
    found.in_kernel = largest.iter().filter(|(function, _)| is_kernel(*function)).map(|(_, cost)| cost).sum();
    let others = largest.iter().filter(|(function, _)| !is_kernel(*function)).take(SHOWN);
    found.largest = others.map(|&(at, cost)| (function_name(profile, at).into_owned(), cost)).collect();
    found
}

/// The contexts of a profile that another one has. A context begins at the outermost function that both have.
struct Contexts {
    known: Vec<bool>,
}

impl Contexts {
    /// Nothing where one of both has no contexts.
    fn of(profile: &Profile, other: &Profile) -> Option<Self> {
        let has_stacks = |profile: &Profile| {
            let tree = &profile.tree;
            let depth_two = |node: NodeId| tree.parent(node).and_then(|parent| tree.parent(parent)).is_some();
            tree.nodes().any(depth_two)
        };
        if !has_stacks(profile) || !has_stacks(other) {
            return None;
        }
        let chains: HashSet<(u64, u64)> = hashes(other).into_iter().flatten().collect();
        let known = hashes(profile).into_iter().map(|hash| hash.is_some_and(|hash| chains.contains(&hash)));
        Some(Self { known: known.collect() })
    }

    fn has(&self, node: NodeId) -> bool {
        self.known[node.index()]
    }
}

/// By node: what stands for the chain of functions from `main`, or the outermost function, to it.
fn hashes(profile: &Profile) -> Vec<Option<(u64, u64)>> {
    use std::hash::{Hash as _, Hasher as _};
    let tree = &profile.tree;
    let mut hashes = vec![None; tree.len()];
    let mut places: HashMap<FunctionId, (String, Option<String>)> = HashMap::new();
    for node in tree.nodes() {
        let Some(parent) = tree.parent(node) else { continue };
        let function = tree.function(node);
        let place = places.entry(function).or_insert_with(|| place(profile, function));
        // The stack before `main` differs with how the program was started.
        let above = if place.0 == "main" { None } else { hashes[parent.index()] };
        let half = |seed: u8| {
            let mut hasher = std::hash::DefaultHasher::new();
            (seed, above, &*place).hash(&mut hasher);
            hasher.finish()
        };
        hashes[node.index()] = Some((half(0), half(1)));
    }
    hashes
}

/// Threads of the counts belong to the first sampled run: a run without samples would count as one in which nothing was
/// found.
fn one_run(profile: &mut Profile, sampled: &Profile) {
    let (runs, processes) = (sampled.runs.len(), sampled.processes.len());
    if runs == 0 {
        return;
    }
    profile.runs.truncate(runs);
    for process in &mut profile.processes[processes..] {
        process.run = RunId::new(0);
    }
}
