//! Addresses to frames by debug information.

use std::collections::HashMap;
use std::sync::Arc;

use addr2line::{Context, Frame, FrameIter, LookupContinuation as _, LookupResult};
use gimli::{Dwarf, UnitOffset};
use treering_profile::FunctionKind;

use crate::answer::{Answers, NamedFunction, Place, PlacedLine};
use crate::declaration::{Declaration, Declarations, address_of};
use crate::demangle::Demangler;
use crate::dwarf_file::{DwarfFile, Parts};
use crate::object_file::{Slice, Storage};
use crate::scope::language;
use crate::source_path::normalise;
use crate::spelling::spelled;
use crate::stray_block::StrayBlocks;
use crate::{Options, Problem};

/// Resolves addresses by debug information. Functions it cannot tell are left out of the places,
/// so a place may be empty; lines known without a function come back apart.
pub(crate) struct Lookup {
    pub(crate) answers: Answers,
    /// For each address its line where it has no frames: hand-written assembly.
    pub(crate) lines: Vec<Option<PlacedLine>>,
    /// For each address where the code of its unit around it begins, or 0, where it has no frames.
    pub(crate) floors: Vec<u64>,
    pub(crate) problems: Vec<Problem>,
    /// Whether names may be in units that are not there.
    lacks_units: bool,
}

impl Lookup {
    /// The answers for addresses, and those for addresses behind them.
    pub(crate) fn followed_by(mut self, next: Self) -> Self {
        let files = self.answers.files.len();
        self.answers.append(next.answers);
        let shift = |line: Option<PlacedLine>| line.map(|(file, line)| (file + files, line));
        self.lines.extend(next.lines.into_iter().map(shift));
        self.floors.extend(next.floors);
        self.problems.extend(next.problems);
        self
    }
}

/// Resolves `addresses`; those whose function starts where `is_code` is false belong to code that
/// the linker threw away, and are left unresolved.
pub(crate) fn look_up(
    file: &DwarfFile<'_>,
    addresses: &[u64],
    options: &Options<'_>,
    is_code: &(dyn Fn(u64) -> bool + Sync),
) -> Result<Lookup, gimli::Error> {
    if let Some(units) = file.needed_units(addresses) {
        // Names may be in units that were left out, above all where one program was made of
        // several units when linking. That shows as an error.
        let lookup = look_up_in(file, &file.dwarf_with(Some(&units))?, addresses, options, is_code);
        if lookup.as_ref().is_ok_and(|lookup| lookup.problems.is_empty() && !lookup.lacks_units) {
            return lookup;
        }
    }
    look_up_in(file, &file.dwarf()?, addresses, options, is_code)
}

/// Resolves addresses by a view of the file's sections.
fn look_up_in(
    file: &DwarfFile<'_>,
    dwarf: &Arc<Dwarf<Slice<'_>>>,
    addresses: &[u64],
    options: &Options<'_>,
    is_code: &(dyn Fn(u64) -> bool + Sync),
) -> Result<Lookup, gimli::Error> {
    let storage = Storage::default();
    let mut reader = Reader::new(file, dwarf, options, &storage, is_code)?;
    addresses.iter().for_each(|&address| reader.resolve(address));
    let lacks_units = reader.declarations.lack_units();
    Ok(Lookup { lacks_units, ..reader.lookup })
}

/// Tells entries of debug information apart: the unit's address in memory, and the position in it.
type Key = (usize, UnitOffset);

struct Reader<'a> {
    context: Context<Slice<'a>>,
    declarations: Declarations<'a>,
    parts: Parts<'a>,
    inlines: bool,
    is_code: &'a (dyn Fn(u64) -> bool + Sync),
    demangler: Demangler,
    /// Functions by the entry of their code or of one inlined call; nothing for those without name.
    by_entry: HashMap<Key, Option<usize>>,
    /// Inlined functions by the entry that all their calls refer to.
    by_origin: HashMap<Key, Option<usize>>,
    /// By the unit's address in memory, where asked for.
    stray_blocks: HashMap<usize, StrayBlocks>,
    files: HashMap<String, usize>,
    lookup: Lookup,
}

impl<'a> Reader<'a> {
    fn new(
        file: &'a DwarfFile<'a>,
        dwarf: &'a Arc<Dwarf<Slice<'a>>>,
        options: &'a Options<'a>,
        storage: &'a Storage,
        is_code: &'a (dyn Fn(u64) -> bool + Sync),
    ) -> Result<Self, gimli::Error> {
        Ok(Self {
            context: Context::from_arc_dwarf(Arc::clone(dwarf))?,
            declarations: Declarations::new(dwarf),
            parts: Parts::new(file, options, storage),
            inlines: options.inlines,
            is_code,
            demangler: Demangler::default(),
            by_entry: HashMap::new(),
            by_origin: HashMap::new(),
            stray_blocks: HashMap::new(),
            files: HashMap::new(),
            lookup: Lookup {
                answers: Answers::default(),
                lines: Vec::new(),
                floors: Vec::new(),
                problems: Vec::new(),
                lacks_units: false,
            },
        })
    }

    fn resolve(&mut self, address: u64) {
        let (places, line) = self.places(address).unwrap_or_else(|error| {
            self.lookup.problems.push(Problem::damaged(error));
            (Vec::new(), None)
        });
        let line = places.is_empty().then_some(line).flatten();
        let floor = if places.is_empty() { self.unit_start(address) } else { None };
        self.lookup.answers.places.push(&places, 1);
        self.lookup.lines.push(line);
        self.lookup.floors.push(floor.unwrap_or(0));
    }

    /// Where the code of the unit that holds an address begins before it.
    fn unit_start(&self, address: u64) -> Option<u64> {
        let unit = self.context.find_dwarf_and_unit(address).skip_all_loads()?;
        let mut ranges = unit.unit_ranges().ok()?;
        while let Some(range) = ranges.next().ok()? {
            if (range.begin..range.end).contains(&address) {
                return Some(range.begin);
            }
        }
        None
    }

    /// The function around the block that holds an address, where no function does.
    fn function_around(&mut self, address: u64) -> Option<UnitOffset> {
        let unit = self.context.find_dwarf_and_unit(address).skip_all_loads()?;
        let blocks = self.stray_blocks.entry(address_of(unit)).or_insert_with(|| StrayBlocks::read(unit));
        blocks.function(address)
    }

    /// The frames at an address, outermost first, and the line executed in the innermost.
    fn places(&mut self, address: u64) -> Result<(Vec<Place>, Option<PlacedLine>), gimli::Error> {
        // The frames borrow the context; what they say is taken out of them at once.
        let mut frames = Vec::new();
        let mut problems = Vec::new();
        let mut found = find_frames(&self.context, &self.parts, address, &mut problems)?;
        while let Some(frame) = found.next()? {
            frames.push(Said::of(&frame));
        }
        self.lookup.problems.append(&mut problems);
        let line = frames.first().and_then(|frame| self.line(frame));
        if !self.inlines {
            frames.drain(..frames.len().saturating_sub(1));
        }
        let mut places = Vec::with_capacity(frames.len());
        for (at, frame) in frames.iter().enumerate() {
            let outermost = at + 1 == frames.len();
            match self.function(address, frame, outermost) {
                Some(function) if outermost && !self.starts_in_code(function) => {
                    return Ok((Vec::new(), None));
                }
                Some(function) => places.push(Place { function, line: self.line(frame) }),
                None if outermost => return Ok((Vec::new(), line)),
                None => {}
            }
        }
        places.reverse();
        Ok((places, line))
    }

    fn starts_in_code(&self, function: usize) -> bool {
        self.lookup.answers.functions[function].start.is_none_or(self.is_code)
    }

    fn line(&mut self, frame: &Said) -> Option<PlacedLine> {
        let (file, line) = frame.line.as_ref()?;
        if let Some(&known) = self.files.get(file) {
            return Some((known, *line));
        }
        self.lookup.answers.files.push(normalise(file));
        let added = self.lookup.answers.files.len() - 1;
        self.files.insert(file.clone(), added);
        Some((added, *line))
    }

    fn function(&mut self, address: u64, frame: &Said, outermost: bool) -> Option<usize> {
        let around = if outermost && frame.entry.is_none() { self.function_around(address) } else { None };
        let entry = frame.entry.or(around)?;
        let unit = self.context.find_dwarf_and_unit(address).skip_all_loads()?;
        let key = (address_of(unit), entry);
        if let Some(&known) = self.by_entry.get(&key) {
            return known;
        }
        let origin = if outermost { None } else { self.declarations.origin(unit, entry) };
        let known = origin.and_then(|origin| self.by_origin.get(&origin).copied());
        let declaration = match known {
            Some(_) => None,
            None => Some(self.declarations.read(unit, entry)),
        };
        let kind = if outermost { FunctionKind::Native } else { FunctionKind::Inlined };
        let is_haskell = language(unit) == Some(gimli::DW_LANG_Haskell);
        let function = known.unwrap_or_else(|| self.add(declaration?, kind, is_haskell));
        self.by_entry.insert(key, function);
        if let Some(origin) = origin {
            self.by_origin.insert(origin, function);
        }
        function
    }

    /// Adds a function. Symbols of Haskell are not what people call functions, such as `r2VP_info`.
    fn add(&mut self, declaration: Declaration, kind: FunctionKind, is_haskell: bool) -> Option<usize> {
        let linkage_name = declaration.linkage_name.filter(|name| !name.is_empty());
        let name = match (&linkage_name, declaration.name) {
            (Some(linkage_name), name) if !is_haskell || name.is_none() => {
                self.demangler.demangle(linkage_name).to_owned()
            }
            (_, name) => spelled(&name?),
        };
        let linkage_name = linkage_name.filter(|linkage_name| *linkage_name != name).unwrap_or_default();
        let Declaration { file, line, start, .. } = declaration;
        let named = NamedFunction::named(name, kind, start);
        let function = NamedFunction { linkage_name, file, line, ..named };
        Some(self.lookup.answers.add_function(function))
    }
}

/// The content of a frame, apart from the context that it borrows.
struct Said {
    entry: Option<UnitOffset>,
    line: Option<(String, u32)>,
}

impl Said {
    fn of(frame: &Frame<'_, Slice<'_>>) -> Self {
        let line = || {
            let location = frame.location.as_ref()?;
            Some((location.file?.to_owned(), location.line?))
        };
        Self { entry: frame.dw_die_offset, line: line() }
    }
}

/// The frames at an address, innermost first, with the split units loaded that they need.
fn find_frames<'c, 'a: 'c>(
    context: &'c Context<Slice<'a>>,
    parts: &Parts<'a>,
    address: u64,
    problems: &mut Vec<Problem>,
) -> Result<FrameIter<'c, Slice<'a>>, gimli::Error> {
    let mut result = context.find_frames(address);
    loop {
        result = match result {
            LookupResult::Output(frames) => return frames,
            LookupResult::Load { load, continuation } => continuation.resume(parts.load(&load, problems)),
        };
    }
}

#[cfg(test)]
mod tests {
    use object::{Object as _, ObjectSymbol as _};

    use super::*;
    use crate::debug_file::Finder;

    /// The frames at every address as they would be printed.
    fn told(lookup: &Lookup) -> Vec<String> {
        let answers = &lookup.answers;
        let line = |line: PlacedLine| format!("{}:{}", answers.files[line.0], line.1);
        let place = |place: &Place| {
            let NamedFunction { name, linkage_name, file, line: start, .. } =
                &answers.functions[place.function];
            format!("{name} {linkage_name} {file}:{start} at {}", place.line.map(line).unwrap_or_default())
        };
        let runs = answers.places.runs();
        let told = runs.flat_map(|(run, frames)| {
            let frames: Vec<String> = frames.iter().map(place).collect();
            run.map(move |_| frames.join(" > "))
        });
        told.collect()
    }

    #[test]
    fn the_units_that_cover_addresses_tell_the_same_of_them_as_all_units() {
        let path = std::env::current_exe().expect("our path");
        let (storage, options) = (Storage::default(), Options::default());
        let object = storage.open(&path).expect("our program");
        let finder = Finder { storage: &storage, options: &options };
        let file =
            DwarfFile::read(&finder, &object, &path, &path, None, &mut Vec::new()).expect("its sections");
        let mut starts: Vec<u64> =
            object.symbols().filter(|symbol| symbol.size() > 64).map(|s| s.address()).collect();
        starts.sort_unstable();
        let (mut frames, mut reductions) = (0, 0);
        for first in (0..starts.len()).step_by(starts.len() / 24) {
            let addresses: Vec<u64> = (starts[first]..).step_by(7).take(9).collect();
            let whole = look_up_in(&file, &file.dwarf().expect("its units"), &addresses, &options, &|_| true)
                .expect("all units");
            let either = look_up(&file, &addresses, &options, &|_| true).expect("all units or some");
            assert_eq!(told(&either), told(&whole));
            let Some(units) = file.needed_units(&addresses) else { continue };
            let dwarf = file.dwarf_with(Some(&units)).expect("some units");
            let some = look_up_in(&file, &dwarf, &addresses, &options, &|_| true).expect("some units");
            if some.problems.is_empty() && !some.lacks_units {
                reductions += 1;
                frames += told(&some).iter().filter(|frames| !frames.is_empty()).count();
            }
        }
        assert!(reductions >= 6 && frames >= 30, "{reductions} reductions, {frames} with frames");
    }
}
