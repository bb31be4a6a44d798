//! Resolving the addresses of one binary.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use object::{Object as _, ObjectSymbol as _};
use treering_cache::Cache;
use treering_proc::{build_id, segments};
use treering_profile::{FunctionKind, SegmentMap};

use crate::answer::{Answers, ByStart, NamedFunction, Place};
use crate::debug_file::{DebugFile, Finder, miniature};
use crate::demangle::Demangler;
use crate::dwarf_file::DwarfFile;
use crate::dwarf_reader::{Lookup, look_up};
use crate::frames::Frames;
use crate::object_file::{Object, Storage, has_section};
use crate::pieces::tell_apart;
use crate::plt::Plt;
use crate::symbol_table::{NamedSymbol, SymbolTable};
use crate::unwind_table::UnwindTable;
use crate::{ModuleReport, Options, Problem};

/// A binary whose addresses are asked for.
pub(crate) struct ElfModule<'m> {
    /// Its path as the program saw it.
    pub(crate) path: &'m str,
    /// The build-id of what ran, or empty where unknown.
    pub(crate) build_id: &'m [u8],
}

/// The suffix that the kernel appends to the paths of mapped files that are gone.
const DELETED: &str = " (deleted)";

impl ElfModule<'_> {
    /// Resolves addresses, which are sorted; fills in the report.
    pub(crate) fn resolve(
        &self,
        addresses: &[u64],
        options: &Options<'_>,
        report: &mut ModuleReport,
    ) -> Answers {
        let storage = Storage::default();
        match self.open(&storage, options) {
            Ok((object, path)) => self.resolve_in(&storage, &object, &path, addresses, options, report),
            Err(problem) => {
                report.problems.push(problem);
                self.nameless(addresses)
            }
        }
    }

    /// Resolves addresses in an image of the binary.
    pub(crate) fn resolve_image(
        &self,
        image: Vec<u8>,
        addresses: &[u64],
        options: &Options<'_>,
        report: &mut ModuleReport,
    ) -> Answers {
        let storage = Storage::default();
        let path = Path::new(self.path);
        let opened = storage.take(image).map_err(|_| Problem::NotAnObject { path: path.into() });
        match opened.and_then(|object| self.check(&object, path).map(|()| object)) {
            Ok(object) => self.resolve_in(&storage, &object, path, addresses, options, report),
            Err(problem) => {
                report.problems.push(problem);
                self.nameless(addresses)
            }
        }
    }

    pub(crate) fn open<'a>(
        &self,
        storage: &'a Storage,
        options: &Options<'_>,
    ) -> Result<(Object<'a>, PathBuf), Problem> {
        let Some(plain) = self.path.strip_suffix(DELETED) else {
            let path = (options.open)(Path::new(self.path));
            let path = path.ok_or_else(|| Problem::Deleted { path: self.path.into() })?;
            return self.open_at(storage, path);
        };
        // The file at the path now is another one, unless the build-id proves it to be the same.
        let kept = (options.open)(Path::new(self.path)).map(|path| self.open_at(storage, path));
        let same = || (!self.build_id.is_empty()).then(|| self.open_at(storage, plain.into()));
        let deleted = Err(Problem::Deleted { path: plain.into() });
        kept.filter(Result::is_ok).or_else(same).filter(Result::is_ok).unwrap_or(deleted)
    }

    fn open_at<'a>(&self, storage: &'a Storage, path: PathBuf) -> Result<(Object<'a>, PathBuf), Problem> {
        let object = storage.open(&path)?;
        self.check(&object, &path)?;
        Ok((object, path))
    }

    fn check(&self, object: &Object<'_>, path: &Path) -> Result<(), Problem> {
        let found = build_id(object);
        let right = self.build_id.is_empty() || found == Some(self.build_id);
        if right { Ok(()) } else { Err(Problem::other_build(path, self.build_id, found)) }
    }

    fn resolve_in<'a>(
        &self,
        storage: &'a Storage,
        object: &Object<'a>,
        path: &Path,
        addresses: &[u64],
        options: &Options<'_>,
        report: &mut ModuleReport,
    ) -> Answers {
        let finder = Finder { storage, options };
        let own = has_section(object, ".debug_info") || has_section(object, ".zdebug_info");
        let separate = if own { None } else { finder.separate(object, path, &mut report.problems) };
        // If a file has no symbols, names have to come from the debug information. Without a build-id, it cannot be
        // checked later that the binary is still the one that ran.
        let has_names = separate.as_ref().is_some_and(|file| file.object.symbol_table().is_some());
        let later = has_names && !self.build_id.is_empty() && !options.separate_lines;
        let lookup = match later {
            true => None,
            false => debug_information(&finder, object, path, separate.as_ref(), addresses, report),
        };
        let stripped = object.symbol_table().is_none() && separate.is_none();
        let miniature = if stripped { miniature(object, storage) } else { None };
        let others = separate.iter().map(|file| &file.object).chain(&miniature);
        let known = lookup.iter().flat_map(|lookup| &lookup.answers.functions);
        let asked = addresses.iter().copied().chain(known.filter_map(|function| function.start));
        let names = Names::read(self.path, storage, [object].into_iter().chain(others).collect(), asked);
        let mut answers = names.complete(lookup, addresses);
        spell_alike(&mut answers.functions);
        if names.symbols.is_empty() && report.debug_file.is_none() {
            report.problems.push(Problem::NoSymbols);
        }
        answers
    }

    /// The frames and lines of addresses, which are sorted, by debug information that is in a file
    /// apart from the binary; nothing if there is none.
    pub(crate) fn separate_lookup(&self, addresses: &[u64], options: &Options<'_>) -> Option<Lookup> {
        let storage = Storage::default();
        let (object, path) = self.open(&storage, options).ok()?;
        if has_section(&object, ".debug_info") || has_section(&object, ".zdebug_info") {
            return None;
        }
        let mut report = ModuleReport::default();
        let finder = Finder { storage: &storage, options };
        let separate = finder.separate(&object, &path, &mut report.problems)?;
        debug_information(&finder, &object, &path, Some(&separate), addresses, &mut report)
    }

    /// The functions that the binary exports, with their addresses, of each version of a symbol one.
    pub(crate) fn dynamic_symbols(&self, options: &Options<'_>) -> Vec<(u64, String)> {
        let storage = Storage::default();
        let Ok((object, _)) = self.open(&storage, options) else { return Vec::new() };
        let defined = object.dynamic_symbols().filter(|symbol| symbol.is_definition());
        let named = defined.filter_map(|symbol| Some((symbol.address(), symbol.name().ok()?.to_owned())));
        named.collect()
    }

    /// All addresses belong to one function, named after the module.
    fn nameless(&self, addresses: &[u64]) -> Answers {
        nameless(self.path, addresses.len())
    }
}

/// Addresses of which nothing is known but the module: they belong to one function named after it.
pub(crate) fn nameless(path: &str, addresses: usize) -> Answers {
    let mut answers = Answers::default();
    let function = answers.add_function(unresolved(path));
    answers.places = Frames::same(&[Place { function, line: None }], addresses);
    answers
}

/// The function that stands for all of a module's code that has no names.
fn unresolved(path: &str) -> NamedFunction {
    let name = match short_name(path) {
        "" => "[unresolved]".to_owned(),
        short => format!("[unresolved in {}]", short.trim_matches(['[', ']'])),
    };
    NamedFunction::named(name, FunctionKind::Unresolved, None)
}

/// The path's last part, without what the kernel appends.
pub(crate) fn short_name(path: &str) -> &str {
    let path = path.strip_suffix(DELETED).unwrap_or(path);
    path.rsplit('/').next().unwrap_or(path)
}

/// Gives functions without linkage names those of others that are declared on the same line and have the same name but
/// for their parameters: compilers leave them out of inlined constructors, which have several.
fn spell_alike(functions: &mut [NamedFunction]) {
    let is_declared = |function: &NamedFunction| !function.file.is_empty() && function.line > 0;
    let mut known: HashMap<(String, u32, String), (String, String)> = HashMap::new();
    for function in
        functions.iter().filter(|function| is_declared(function) && !function.linkage_name.is_empty())
    {
        let Some((name, _)) = function.name.split_once('(') else { continue };
        let key = (function.file.clone(), function.line, name.to_owned());
        let names = (function.linkage_name.clone(), function.name.clone());
        let least = known.entry(key).or_insert_with(|| names.clone());
        if names < *least {
            *least = names;
        }
    }
    for function in
        functions.iter_mut().filter(|function| is_declared(function) && function.linkage_name.is_empty())
    {
        let key = (function.file.clone(), function.line, function.name.clone());
        if let Some((linkage_name, name)) = known.get(&key) {
            (function.linkage_name, function.name) = (linkage_name.clone(), name.clone());
        }
    }
}

/// Resolves what debug information tells, on several threads when there is much of it.
fn debug_information<'a>(
    finder: &Finder<'a, '_>,
    object: &Object<'a>,
    path: &Path,
    separate: Option<&DebugFile<'a>>,
    addresses: &[u64],
    report: &mut ModuleReport,
) -> Option<Lookup> {
    let (debug, debug_path) = separate.map_or((object, path), |file| (&file.object, &file.path));
    if !has_section(debug, ".debug_info") {
        report.problems.push(Problem::NoDebugInformation);
        return None;
    }
    report.debug_file = Some(debug_path.into());
    let code = code_ranges(&segments(object));
    let is_code = |address| code.iter().any(|range| range.contains(&address));
    let read = |cache: Option<&Cache>, problems: &mut Vec<Problem>| {
        let file =
            DwarfFile::read(finder, debug, debug_path, path, cache, problems).map_err(Problem::damaged);
        let file = match file {
            Ok(file) => file,
            Err(problem) => return (Err(problem), false),
        };
        let lookup = look_up_in_parallel(&file, addresses, finder.options, &is_code);
        (lookup.map_err(Problem::damaged), cache.is_some_and(|cache| file.forget_damaged(cache)))
    };
    let (mut lookup, is_damaged) = read(finder.options.cache, &mut report.problems);
    if is_damaged {
        (lookup, _) = read(None, &mut report.problems);
    }
    match lookup {
        Ok(mut lookup) => {
            report.problems.append(&mut lookup.problems);
            Some(lookup)
        }
        Err(problem) => {
            report.problems.push(problem);
            None
        }
    }
}

pub(crate) fn code_ranges(segments: &SegmentMap) -> Vec<std::ops::Range<u64>> {
    let code = segments.segments().iter().filter(|segment| segment.executable);
    code.map(|segment| segment.stated_address.0..segment.stated_address.0.saturating_add(segment.memory_size))
        .collect()
}

/// How much debug information and how many addresses are worth another thread, which must look
/// through all units once more.
const WORTH_A_THREAD: (u64, usize) = (8 << 20, 256);

fn look_up_in_parallel(
    file: &DwarfFile<'_>,
    addresses: &[u64],
    options: &Options<'_>,
    is_code: &(dyn Fn(u64) -> bool + Sync),
) -> Result<Lookup, gimli::Error> {
    let (size, count) = WORTH_A_THREAD;
    // To find out how many processors there are takes a dozen system calls.
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    let most = || options.threads.unwrap_or_else(processors);
    let threads = if file.size() < size { 1 } else { most().min(addresses.len().div_ceil(count)) };
    if threads <= 1 {
        return look_up(file, addresses, options, is_code);
    }
    let chunks = addresses.chunks(addresses.len().div_ceil(threads));
    let lookups: Vec<_> = std::thread::scope(|scope| {
        let work = |chunk| scope.spawn(move || look_up(file, chunk, options, is_code));
        let running: Vec<_> = chunks.map(work).collect();
        running
            .into_iter()
            .map(|thread| thread.join().expect("a thread that looks up addresses does not panic"))
            .collect()
    });
    let mut lookups = lookups.into_iter();
    let first = lookups.next().unwrap_or_else(|| look_up(file, &[], options, is_code))?;
    lookups.try_fold(first, |all, next| Ok(all.followed_by(next?)))
}

/// The sources of names other than debug information.
struct Names<'o, 'a> {
    path: &'o str,
    symbols: SymbolTable<'o, 'a>,
    plt: Plt,
    /// Read when something has no symbol.
    unwind: OnceCell<UnwindTable<'a>>,
    binary: &'o Object<'a>,
    storage: &'a Storage,
}

impl<'o, 'a> Names<'o, 'a> {
    /// Reads the names in the binary, the first of `objects`, and in the files that go with it, of the addresses
    /// that are `asked` for.
    fn read(
        path: &'o str,
        storage: &'a Storage,
        objects: Vec<&'o Object<'a>>,
        asked: impl Iterator<Item = u64> + Clone,
    ) -> Self {
        let (binary, plt) = (objects[0], Plt::read(objects[0]));
        let symbols = SymbolTable::around(objects, asked);
        Self { path, symbols, plt, unwind: OnceCell::new(), binary, storage }
    }

    /// The bounds of a function without a symbol.
    fn bounds(&self, address: u64) -> Option<(u64, u64)> {
        self.unwind.get_or_init(|| UnwindTable::read(self.binary, self.storage)).bounds(address)
    }

    /// Gives every address a function.
    fn complete(&self, lookup: Option<Lookup>, addresses: &[u64]) -> Answers {
        let (mut answers, mut lines, mut floors) =
            lookup.map_or_else(Default::default, |lookup| (lookup.answers, lookup.lines, lookup.floors));
        let mut naming = Naming::default();
        answers.functions.iter_mut().for_each(|function| naming.improve(self, function));
        tell_apart(&mut answers.functions, |start| {
            self.symbols.lookup(start).filter(|symbol| symbol.start == start).map(|symbol| symbol.name)
        });
        let mut found = std::mem::take(&mut answers.places);
        let unknown = addresses.len() - found.len();
        found.push(&[], unknown);
        lines.resize(addresses.len(), None);
        floors.resize(addresses.len(), 0);
        for (mut run, frames) in found.runs() {
            if !frames.is_empty() {
                answers.places.push(frames, run.len());
                continue;
            }
            while !run.is_empty() {
                let floor = floors[run.start];
                let (function, until) = naming.function(self, &mut answers, addresses[run.start], floor);
                let behind = addresses[run.clone()].iter().zip(&floors[run.clone()]).skip(1);
                let same = behind.take_while(|(at, other)| **at < until && **other == floor).count() + 1;
                for lines in lines[run.start..run.start + same].chunk_by(|one, other| one == other) {
                    answers.places.push(&[Place { function, line: lines[0] }], lines.len());
                }
                run.start += same;
            }
        }
        answers
    }
}

/// Functions named so far, other than by debug information.
#[derive(Default)]
struct Naming {
    by_start: ByStart,
    demangler: Demangler,
    unresolved: Option<usize>,
}

impl Naming {
    /// Gives a function the name of its symbol where debug information has no linkage name but the
    /// symbol is one: gcc leaves it out where types without names take part, such as lambdas.
    fn improve(&mut self, names: &Names<'_, '_>, function: &mut NamedFunction) {
        let Some(start) = function.start.filter(|_| function.linkage_name.is_empty()) else { return };
        let Some(symbol) = names.symbols.lookup(start).filter(|symbol| symbol.start == start) else { return };
        let named = self.demangler.named(&symbol.name, start);
        if !named.linkage_name.is_empty() && !symbol.name.starts_with(&function.name) {
            (function.name, function.linkage_name) = (named.name, named.linkage_name);
        }
    }

    /// The function of an address, and up to where the addresses behind have the same answer. No label before `floor`
    /// reaches the address, which is in another unit.
    fn function(
        &mut self,
        names: &Names<'_, '_>,
        answers: &mut Answers,
        address: u64,
        floor: u64,
    ) -> (usize, u64) {
        if let Some((start, name)) = names.plt.lookup(address) {
            let make = || self.demangler.named(name, start);
            return (self.by_start.function(answers, start, make), address);
        }
        let stub = names.plt.next_start(address);
        let reaches = |symbol: &NamedSymbol| symbol.has_size || symbol.start >= floor;
        if let Some(symbol) = names.symbols.lookup(address).filter(reaches) {
            let make = || self.demangler.named(&symbol.name, symbol.start);
            return (self.by_start.function(answers, symbol.start, make), symbol.until.min(stub));
        }
        if let Some((start, end)) = names.bounds(address) {
            let name = format!("{}+{start:#x}", short_name(names.path));
            let make = || NamedFunction::named(name, FunctionKind::Unresolved, Some(start));
            let function = self.by_start.function(answers, start, make);
            return (function, end.min(stub).min(names.symbols.next_start(address)));
        }
        (*self.unresolved.get_or_insert_with(|| answers.add_function(unresolved(names.path))), address)
    }
}

impl Demangler {
    /// A native function of which only the symbol is known.
    fn named(&mut self, symbol: &str, start: u64) -> NamedFunction {
        let name = self.demangle(symbol).to_owned();
        let linkage_name = if name == symbol { String::new() } else { symbol.to_owned() };
        NamedFunction { linkage_name, ..NamedFunction::named(name, FunctionKind::Native, Some(start)) }
    }
}
