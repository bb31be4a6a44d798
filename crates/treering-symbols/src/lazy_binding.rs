//! Stubs of linkage tables for which the loader jumped on.
//!
//! The first call through a lazily bound stub goes to the head of its table, and from there to the loader's resolver,
//! which finds the function and jumps to it. By its jumps alone the resolver would call every such function, for every
//! caller. Which stub a jump was for follows from names: the stub is named after the symbol of its slot, and the
//! function that was jumped to has that symbol in its module's dynamic symbol table. System V ABI, x86-64 supplement,
//! section 5.2.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};
use treering_profile::{BranchCount, FunctionId, ModuleId, Profile};

use crate::arcs::of_all_threads;
use crate::plt;
use crate::source_map::Sources;
use crate::symbolise::Resolver;

/// Calls that the loader made for a stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) stub: FunctionId,
    /// The loader's function whose jumps they are.
    pub(crate) loader: FunctionId,
    pub(crate) callee: FunctionId,
    pub(crate) calls: u64,
}

/// A caller and a callee, and how often the one jumped to the other.
type Jumps = BTreeMap<(FunctionId, FunctionId), u64>;

/// The stubs for which the loader was called, as far as names tell.
pub(crate) fn bound(profile: &Profile, sources: &Sources, resolver: &Resolver<'_, '_>) -> Vec<Bound> {
    let jumps = jumps(profile, sources);
    let loaders = loaders(profile, &jumps);
    if loaders.is_empty() {
        return Vec::new();
    }
    let is_head = |function| is_head(profile, function);
    let mut waiting: BTreeMap<&str, Vec<(FunctionId, u64)>> = BTreeMap::new();
    for (&(stub, to), &calls) in &jumps {
        if let Some(symbol) = symbol_of_stub(profile, stub).filter(|_| is_head(to)) {
            waiting.entry(symbol).or_default().push((stub, calls));
        }
    }
    let made: Vec<_> =
        jumps.iter().filter(|((from, to), _)| loaders.contains(from) && !loaders.contains(to)).collect();
    let symbols = symbols(profile, resolver, made.iter().map(|((_, to), _)| *to));
    let mut bound = Vec::new();
    for (&(loader, callee), &calls) in made {
        let mut left = calls;
        let direct = |stub: FunctionId| jumps.contains_key(&(stub, callee));
        let named = symbols.get(&callee).into_iter().flatten().map(String::as_str);
        // One that later jumped there itself has a function that its symbol's own function chose.
        let seen = waiting.iter().filter(|(_, stubs)| stubs.iter().any(|&(stub, _)| direct(stub)));
        let mut candidates: Vec<&str> = named.collect();
        candidates.extend(seen.map(|(&symbol, _)| symbol));
        // The chosen function has the symbol in its name: `__strlen_evex`.
        let name = &profile.strings[profile.functions[callee].name];
        candidates.extend(waiting.keys().copied().filter(|symbol| name.contains(symbol)));
        for symbol in candidates {
            for (stub, waits) in waiting.get_mut(symbol).into_iter().flatten() {
                let calls = left.min(*waits);
                (left, *waits) = (left - calls, *waits - calls);
                if calls > 0 {
                    bound.push(Bound { stub: *stub, loader, callee, calls });
                }
            }
        }
    }
    bound
}

/// The same as the arcs of a profile state it: the functions that stubs call without having jumped there
/// themselves.
pub(crate) fn stated_bound(profile: &Profile, sources: &Sources) -> Vec<Bound> {
    let jumps = jumps(profile, sources);
    let loaders = loaders(profile, &jumps);
    if loaders.is_empty() {
        return Vec::new();
    }
    let mut stated = Jumps::new();
    for arc in &profile.arcs {
        if symbol_of_stub(profile, arc.caller).is_some() {
            let sum = stated.entry((arc.caller, arc.callee)).or_default();
            *sum = sum.saturating_add(arc.calls);
        }
    }
    let mut bound = Vec::new();
    for ((stub, callee), calls) in stated {
        let mut left = calls.saturating_sub(jumps.get(&(stub, callee)).copied().unwrap_or(0));
        for &loader in &loaders {
            let calls = left.min(jumps.get(&(loader, callee)).copied().unwrap_or(0));
            left -= calls;
            if calls > 0 {
                bound.push(Bound { stub, loader, callee, calls });
            }
        }
    }
    bound
}

/// The jumps from one function to the start of another that concern stubs, heads of tables and the loader.
fn jumps(profile: &Profile, sources: &Sources) -> Jumps {
    if !profile.functions.iter().any(|(function, _)| is_head(profile, function)) {
        return Jumps::new();
    }
    let entries: HashSet<_> = profile.functions.entries().iter().filter_map(|f| f.address).collect();
    let function = |at| sources.at(at).function;
    let others = |branch: &BranchCount| {
        let (from, to) = (function(branch.site?)?, function(branch.target?)?);
        let starts = profile.functions[to].address == branch.target.map(|target| target.address);
        (from != to && starts && branch.kind.is_jump() && branch.count > 0).then_some((from, to))
    };
    let mut jumps = Jumps::new();
    // Most jumps stay within their function.
    let may_enter = |branch: &BranchCount| {
        branch.kind.is_jump() && branch.target.is_some_and(|target| entries.contains(&target.address))
    };
    for branch in of_all_threads(&profile.code).filter(may_enter) {
        if let Some(ends) = others(&branch) {
            let sum = jumps.entry(ends).or_default();
            *sum = sum.saturating_add(branch.count);
        }
    }
    jumps
}

/// The functions that heads of linkage tables jump to.
fn loaders(profile: &Profile, jumps: &Jumps) -> HashSet<FunctionId> {
    jumps.keys().filter(|(from, _)| is_head(profile, *from)).map(|(_, to)| *to).collect()
}

fn is_head(profile: &Profile, function: FunctionId) -> bool {
    profile.strings[profile.functions[function].name] == *plt::HEAD
}

fn symbol_of_stub(profile: &Profile, function: FunctionId) -> Option<&str> {
    let function = &profile.functions[function];
    let linkage = &profile.strings[function.linkage_name];
    let name = if linkage.is_empty() { &profile.strings[function.name] } else { linkage };
    name.strip_suffix(plt::STUB)
}

/// The dynamic symbols of functions.
fn symbols(
    profile: &Profile,
    resolver: &Resolver<'_, '_>,
    functions: impl Iterator<Item = FunctionId>,
) -> HashMap<FunctionId, Vec<String>> {
    let mut modules: BTreeMap<ModuleId, HashMap<u64, FunctionId>> = BTreeMap::new();
    for id in functions {
        let function = &profile.functions[id];
        if let (Some(module), Some(address)) = (function.module, function.address) {
            modules.entry(module).or_default().insert(address.0, id);
        }
    }
    let mut symbols: HashMap<FunctionId, Vec<String>> = HashMap::new();
    for (module, wanted) in modules {
        let module = &profile.modules[module];
        for (address, name) in resolver.dynamic_symbols(module, &profile.strings[module.path]) {
            if let Some(&function) = wanted.get(&address) {
                symbols.entry(function).or_default().push(name);
            }
        }
    }
    symbols
}
