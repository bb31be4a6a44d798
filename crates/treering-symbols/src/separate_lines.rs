//! Lines of counted code whose debug information was not read when it was named.

use std::collections::{BTreeMap, HashSet};

use treering_profile::{
    Arc, BasicBlock, CodeAddress, FunctionId, Interner, Line, LineId, MetricId, ModuleId, ModuleKind, NodeId,
    Profile,
};

use crate::Options;
use crate::arcs::arcs;
use crate::code::{INSTRUCTIONS, add_line_costs};
use crate::dwarf_reader::Lookup;
use crate::elf_module::ElfModule;
use crate::lazy_binding::stated_bound;
use crate::source_map::{Source, Sources};

/// Gives counted code lines by debug information in separate files, where it has none yet: what
/// [`symbolise`](crate::symbolise) leaves out without
/// [`separate_lines`](Options::separate_lines). Names and costs of functions stay as they are.
///
/// A counted tree has costs and calls that were measured, by function and not by line: there only
/// code and functions get lines.
///
/// Does nothing to profiles whose costs and arcs are neither that nor just those that follow from
/// counts, and to modules whose files are not here, or are others than those that ran.
pub fn add_lines(profile: &mut Profile, options: &Options<'_>) {
    add_lines_to_all(&mut [profile], options);
}

/// The same for several profiles: each module's debug information is read once for all of them.
pub fn add_lines_to_all(profiles: &mut [&mut Profile], options: &Options<'_>) {
    let costs: Vec<_> = profiles.iter().map(|profile| costs_of_counts(profile)).collect();
    let mut wanted: BTreeMap<Module, Vec<u64>> = BTreeMap::new();
    let mut nameless = Vec::new();
    for (profile, costs) in profiles.iter().zip(&costs) {
        let modules = if costs.is_some() { without_lines(profile) } else { BTreeMap::new() };
        for (&module, addresses) in &modules {
            wanted.entry(module_of(profile, module)).or_default().extend_from_slice(addresses);
        }
        nameless.push(modules);
    }
    let mut found = BTreeMap::new();
    for (module, mut addresses) in wanted {
        addresses.sort_unstable();
        addresses.dedup();
        let elf = ElfModule { path: &module.path, build_id: &module.build_id };
        if let Some(lookup) = elf.separate_lookup(&addresses, options) {
            found.insert(module, (addresses, lookup));
        }
    }
    for ((profile, costs), modules) in profiles.iter_mut().zip(costs).zip(nameless) {
        let mut known = BTreeMap::new();
        for (module, own) in modules {
            if let Some((addresses, lookup)) = found.get(&module_of(profile, module)) {
                add_module(profile, module, &own, (addresses, lookup), &mut known);
            }
        }
        if let Some(costs) = costs.filter(|_| !known.is_empty()) {
            set_lines(profile, &costs, &known);
        }
    }
}

/// Gives instructions the lines that are known of them now.
fn set_lines(profile: &mut Profile, costs: &Costs, known: &BTreeMap<(ModuleId, u64), LineId>) {
    let late = |at: CodeAddress, profile: &Profile| {
        let module = profile.code.spaces[at.space].module?;
        known.get(&(module, at.address.0)).copied()
    };
    let mut instructions = instructions(profile);
    let mut new = Vec::new();
    for (at, length, source) in &mut instructions {
        if let Some(line) = late(*at, profile) {
            source.line = Some(line);
            new.push((*at, *length, Source { function: None, line: Some(line) }));
        }
    }
    let sources = Sources::new(instructions);
    let bound = stated_bound(profile, &sources);
    profile.code.set_lines(sources.lines());
    if let &Costs::Counted(metric) = costs {
        add_line_costs(profile, metric, &Sources::new(new));
        let arcs = arcs(profile, &sources, &bound, &stated_pieces(profile));
        profile.arcs = arcs;
    }
}

/// Path and build-id of a module.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Module {
    path: String,
    build_id: Box<[u8]>,
}

fn module_of(profile: &Profile, module: ModuleId) -> Module {
    let module = &profile.modules[module];
    Module { path: profile.strings[module.path].to_owned(), build_id: module.build_id.clone() }
}

/// Where the costs of counted code come from.
enum Costs {
    /// They follow from the counts, in this metric.
    Counted(MetricId),
    /// They were measured for every chain of callers.
    Measured,
}

/// The source of the costs, if the profile has only counts and at most a tree: then lines may be added without
/// further checks.
fn costs_of_counts(profile: &Profile) -> Option<Costs> {
    if profile.code.blocks.is_empty() || profile.metrics.len() != 1 {
        return None;
    }
    let (metric, _) = profile.metrics().find(|(_, metric)| metric.name == INSTRUCTIONS)?;
    let tree = &profile.tree;
    if tree.has_calls() {
        let no_sites = || tree.nodes().all(|node| tree.call_site(node).is_none());
        let no_lines = profile.line_costs.is_empty() && profile.arcs.is_empty() && no_sites();
        return no_lines.then_some(Costs::Measured);
    }
    let is_root = |node: NodeId| tree.parent(node).is_none();
    if !tree.nodes().all(|node| tree.parent(node).is_none_or(is_root)) {
        return None;
    }
    let sources = Sources::new(instructions(profile));
    let mut stated = profile.arcs.clone();
    let key = |arc: &Arc| (arc.caller, arc.callee, arc.call_site);
    stated.sort_by_key(key);
    let bound = stated_bound(profile, &sources);
    let follow = arcs(profile, &sources, &bound, &stated_pieces(profile));
    (stated == follow).then_some(Costs::Counted(metric))
}

/// The functions that are pieces of one, as the arcs state it: those of one function of the source without an arc.
fn stated_pieces(profile: &Profile) -> impl Fn(FunctionId, FunctionId) -> bool {
    let stated: HashSet<_> = profile.arcs.iter().map(|arc| (arc.caller, arc.callee)).collect();
    let functions = &profile.functions;
    move |from, to| {
        from != to && functions[from].is_same_source(&functions[to]) && !stated.contains(&(from, to))
    }
}

/// The instructions, sorted, with what the profile says of them.
fn instructions(profile: &Profile) -> Vec<(CodeAddress, u64, Source)> {
    let blocks = profile.code.blocks.iter();
    let places = blocks.flat_map(|block| block.places().map(|(_, length)| (length.into(), block.function)));
    let lines = profile.code.instruction_lines();
    let mut all: Vec<_> = lines
        .zip(places)
        .map(|((at, line), (length, function))| (at, length, Source { function, line }))
        .collect();
    // Blocks that share bytes are out of order.
    all.sort_by_key(|(at, _, _)| *at);
    all
}

/// The modules none of whose code has a line, with the addresses of their instructions, sorted.
fn without_lines(profile: &Profile) -> BTreeMap<ModuleId, Vec<u64>> {
    let of = |at: CodeAddress| profile.code.spaces[at.space].module;
    let mut addresses: BTreeMap<ModuleId, Vec<u64>> = BTreeMap::new();
    for (at, _) in profile.code.blocks.iter().flat_map(BasicBlock::places) {
        let Some(module) = of(at) else { continue };
        addresses.entry(module).or_default().push(at.address.0);
    }
    for row in profile.code.lines.iter().filter(|row| row.line.is_some()) {
        of(row.start).and_then(|module| addresses.remove(&module));
    }
    // Without a build-id, it cannot be checked that the file is still the one that ran.
    addresses.retain(|module, _| {
        let module = &profile.modules[*module];
        module.kind == ModuleKind::Elf && !module.build_id.is_empty()
    });
    for addresses in addresses.values_mut() {
        addresses.sort_unstable();
        addresses.dedup();
    }
    addresses
}

/// Notes the lines of a module's addresses, and where its functions are declared. Both lists of addresses are sorted;
/// others were looked up as well.
fn add_module(
    profile: &mut Profile,
    module: ModuleId,
    own: &[u64],
    (addresses, lookup): (&[u64], &Lookup),
    known: &mut BTreeMap<(ModuleId, u64), LineId>,
) {
    let answers = addresses.iter().zip(lookup.answers.places.iter()).zip(&lookup.lines);
    let mut own = own.iter().peekable();
    for ((&address, frames), &line) in answers {
        if own.next_if_eq(&&address).is_none() {
            continue;
        }
        let innermost = frames.last().map(|place| place.line);
        if let Some((file, line)) = innermost.unwrap_or(line) {
            let file = profile.strings.intern(&lookup.answers.files[file]);
            known.insert((module, address), profile.lines.intern(Line { file, line }));
        }
    }
    let declared = lookup.answers.functions.iter().filter(|function| function.line != 0);
    let declared: BTreeMap<_, _> = declared.map(|function| (function.start, function)).collect();
    let mut functions = profile.functions.entries().to_vec();
    for function in functions.iter_mut().filter(|function| function.module == Some(module)) {
        let start = function.address.map(|address| address.0);
        if let Some(found) = declared.get(&start).filter(|_| start.is_some() && function.line == 0) {
            function.file = profile.strings.intern(&found.file);
            function.line = found.line;
        }
    }
    profile.functions = Interner::from_entries(functions);
}
