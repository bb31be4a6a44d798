//! Names for all addresses of a profile.

use std::collections::{BTreeMap, BTreeSet};

use treering_profile::{CodeCounts, FunctionId, FunctionKind, Module, ModuleId, ModuleKind, Profile};

use crate::answer::{Answers, ByStart, NamedFunction, Place, PlacedLine};
use crate::elf_module::{ElfModule, nameless};
use crate::rebuild::Rebuild;
use crate::{JitTable, KernelSymbols, ModuleReport, Options, Problem, Progress, Symbolised, code, source};

/// Replaces every function of kind [`FunctionKind::Address`] by the function at that address and
/// the functions inlined there, outermost first.
///
/// The call site of an inlined frame is the line that the call was written on; that of a called
/// frame is the line at the caller's address, which must therefore lie *in* the call instruction
/// (a return address less one), as collectors record it. Costs move to the innermost frame and
/// to the line executed in it. Nodes that come to have the same callers, call sites and function
/// become one, under the profile's recursion rule. Functions that have names stay as they are.
///
/// An address whose calls were counted is the start of a function that reports its calls: it
/// becomes that function alone, without lines and without what is inlined there, or one named
/// after the address.
///
/// The costs of all other addresses are kept in [`Profile::address_costs`], where the options say that costs arose
/// at these addresses.
///
/// Basic blocks of counted code get functions and lines, and costs and arcs follow from their
/// executions (see [`CodeCounts`](treering_profile::CodeCounts)); functions that are inlined there
/// count as part of what they are inlined into.
///
/// Never fails: what cannot be resolved ends in functions of kind [`FunctionKind::Unresolved`],
/// is counted in [`Losses::unresolved_samples`](treering_profile::Losses::unresolved_samples), and
/// the report says why.
pub fn symbolise(
    profile: &Profile,
    options: &Options<'_>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Symbolised {
    symbolise_parts(profile, profile.code.clone(), options, progress)
}

/// As [`symbolise`], for a profile that is not needed any more: counts of code, which may be most of
/// it, are not copied.
pub fn symbolise_owned(
    mut profile: Profile,
    options: &Options<'_>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Symbolised {
    let code = std::mem::take(&mut profile.code);
    symbolise_parts(&profile, code, options, progress)
}

/// As [`symbolise`] for a profile whose counts of code are given apart.
fn symbolise_parts(
    profile: &Profile,
    code: CodeCounts,
    options: &Options<'_>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Symbolised {
    let addresses = addresses_by_module(profile);
    let total = addresses.values().map(Vec::len).sum();
    let kernel = options.kallsyms.as_deref().map(KernelSymbols::parse).unwrap_or_default();
    let resolver = Resolver { options, kernel };
    let (mut rebuild, mut reports, mut done) =
        (Rebuild::new(profile, options.exact_addresses && code.is_empty()), Vec::new(), 0);
    for (module, addresses) in addresses {
        let path = module.map_or("", |module| &profile.strings[profile.modules[module].path]);
        progress(Progress { module: path, done, total });
        let (functions, stated): (Vec<_>, Vec<_>) =
            addresses.iter().map(|&(address, id)| (id, address)).unzip();
        let module_data = module.map(|module| &profile.modules[module]);
        let (answers, report) = resolver.resolve(module_data, path, &stated);
        rebuild.take(module, &functions, &answers);
        reports.push(report);
        done += stated.len();
    }
    rebuild.join_pieces(&code, |module, addresses| {
        let module = module.map(|module| &profile.modules[module]);
        let path = module.map_or("", |module| &profile.strings[module.path]);
        resolver.resolve(module, path, addresses).0
    });
    let mut profile = rebuild.finish(code);
    reports.extend(code::resolve(&mut profile, &resolver, progress));
    progress(Progress { module: "", done, total });
    reports.sort_by_key(|report| std::cmp::Reverse(report.addresses));
    if options.sources {
        source::embed(&mut profile, options);
    }
    Symbolised { profile, modules: reports }
}

/// The sources of names: where to look for them, and those of the kernel.
pub(crate) struct Resolver<'r, 'o> {
    options: &'r Options<'o>,
    kernel: KernelSymbols<'r>,
}

impl Resolver<'_, '_> {
    /// Resolves addresses of a module, which are sorted.
    pub(crate) fn resolve(
        &self,
        module: Option<&Module>,
        path: &str,
        addresses: &[u64],
    ) -> (Answers, ModuleReport) {
        let mut report =
            ModuleReport { path: path.to_owned(), addresses: addresses.len(), ..ModuleReport::default() };
        let answers = resolve(module, path, addresses, self.options, &self.kernel, &mut report);
        report.count(&answers);
        (answers, report)
    }

    /// The functions that the file of a module exports, with their addresses; none if it is not here.
    pub(crate) fn dynamic_symbols(&self, module: &Module, path: &str) -> Vec<(u64, String)> {
        let elf = ElfModule { path, build_id: &module.build_id };
        let is_file = path.starts_with('/') && module.kind == ModuleKind::Elf;
        if is_file { elf.dynamic_symbols(self.options) } else { Vec::new() }
    }
}

/// The addresses to be resolved, sorted, with the functions that stand for them.
fn addresses_by_module(profile: &Profile) -> BTreeMap<Option<ModuleId>, Vec<(u64, FunctionId)>> {
    let arcs = profile.arcs.iter().flat_map(|arc| [arc.caller, arc.callee]);
    let used: BTreeSet<FunctionId> = profile.tree.function_column().iter().copied().chain(arcs).collect();
    let mut addresses: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for id in used {
        let function = &profile.functions[id];
        if let (FunctionKind::Address, Some(address)) = (function.kind, function.address) {
            addresses.entry(function.module).or_default().push((address.0, id));
        }
    }
    addresses.values_mut().for_each(|list| list.sort_unstable());
    addresses
}

fn resolve(
    module: Option<&Module>,
    path: &str,
    addresses: &[u64],
    options: &Options<'_>,
    kernel: &KernelSymbols<'_>,
    report: &mut ModuleReport,
) -> Answers {
    let Some(module) = module else { return nameless(path, addresses.len()) };
    let tables = options.jit.iter().rev().filter(|(jit, _)| jit == path).map(|(_, table)| table);
    let tables: Vec<&JitTable> = tables.collect();
    if !tables.is_empty() {
        return resolve_jit(&tables, path, addresses);
    }
    let elf = ElfModule { path, build_id: &module.build_id };
    match module.kind {
        ModuleKind::Kernel => resolve_kernel(kernel, path, addresses, report),
        ModuleKind::Vdso => match treering_proc::vdso_image() {
            Some(image) => elf.resolve_image(image, addresses, options, report),
            None => nameless(path, addresses.len()),
        },
        ModuleKind::Jit => {
            report.problems.push(Problem::NoJitSymbols);
            nameless(path, addresses.len())
        }
        _ if path.starts_with('/') => elf.resolve(addresses, options, report),
        _ => nameless(path, addresses.len()),
    }
}

/// Resolves addresses by one list of functions; `find` gives start, function and line.
fn resolve_by(
    path: &str,
    addresses: &[u64],
    mut find: impl FnMut(u64, &mut Answers) -> Option<(NamedFunction, Option<PlacedLine>)>,
) -> Answers {
    let mut answers = nameless(path, 0);
    let mut known = ByStart::default();
    for &address in addresses {
        let place = match find(address, &mut answers) {
            Some((function, line)) => {
                let start = function.start.unwrap_or(address);
                Place { function: known.function(&mut answers, start, || function), line }
            }
            // The first function stands for what has no name.
            None => Place { function: 0, line: None },
        };
        answers.places.push(&[place], 1);
    }
    answers
}

fn resolve_kernel(
    kernel: &KernelSymbols<'_>,
    path: &str,
    addresses: &[u64],
    report: &mut ModuleReport,
) -> Answers {
    if kernel.is_empty() {
        report.problems.push(Problem::KernelSymbolsHidden);
    }
    resolve_by(path, addresses, |address, _| {
        let (start, name) = kernel.lookup(address)?;
        Some((NamedFunction::named(name, FunctionKind::Kernel, Some(start)), None))
    })
}

/// Resolves code that was made while the program ran. The profile does not keep when a sample was
/// taken, so of several functions at an address the last counts, and of several tables the first
/// that knows it.
fn resolve_jit(tables: &[&JitTable], path: &str, addresses: &[u64]) -> Answers {
    resolve_by(path, addresses, |address, answers| {
        let place = tables.iter().find_map(|table| table.lookup(address, None))?;
        let function = NamedFunction::named(place.name.to_owned(), FunctionKind::Jit, Some(place.start));
        let file = place.file.unwrap_or_default().to_owned();
        let line = (place.line > 0).then(|| {
            answers.files.push(file.clone());
            (answers.files.len() - 1, place.line)
        });
        Some((NamedFunction { file, ..function }, line))
    })
}

impl ModuleReport {
    fn count(&mut self, answers: &Answers) {
        let innermost =
            || answers.places.runs().filter_map(|(run, frames)| Some((run.len(), frames.last()?)));
        let named = |place: &Place| answers.functions[place.function].kind != FunctionKind::Unresolved;
        self.named = innermost().filter(|(_, place)| named(place)).map(|(addresses, _)| addresses).sum();
        let with_line = innermost().filter(|(_, place)| place.line.is_some());
        self.with_line = with_line.map(|(addresses, _)| addresses).sum();
        self.problems.sort();
        self.problems.dedup();
    }
}
