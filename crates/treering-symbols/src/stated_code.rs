//! All source lines and functions of a binary, executed or not.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use gimli::{AttributeValue, DebuggingInformationEntry, Dwarf, UnitRef};
use treering_proc::segments;
use treering_profile::{ModuleId, Piece, Profile, StatedCode, StatedFunction, StatedLine};

use crate::debug_file::Finder;
use crate::declaration::{Declarations, file_path};
use crate::demangle::demangle;
use crate::dwarf_file::DwarfFile;
use crate::elf_module::{ElfModule, code_ranges};
use crate::object_file::{Slice, Storage, has_section};
use crate::pieces::owners;
use crate::{Options, Problem};

/// Reads what a module of a profile says of its code: all lines and functions, executed or not.
///
/// # Errors
/// The file is not here, is not the one that ran, or has no debug information in itself; a file apart from it is read
/// if `separate` says so. Split debug information is not read.
pub fn stated_code(
    profile: &Profile,
    module: ModuleId,
    separate: bool,
    options: &Options<'_>,
) -> Result<StatedCode, Problem> {
    let known = &profile.modules[module];
    let elf = ElfModule { path: &profile.strings[known.path], build_id: &known.build_id };
    let storage = Storage::default();
    let (object, path) = elf.open(&storage, options)?;
    let finder = Finder { storage: &storage, options };
    let own = has_section(&object, ".debug_info") || has_section(&object, ".zdebug_info");
    let apart = if own || !separate { None } else { finder.separate(&object, &path, &mut Vec::new()) };
    let (debug, debug_path) = apart.as_ref().map_or((&object, &path), |file| (&file.object, &file.path));
    if !own && !has_section(debug, ".debug_info") {
        return Err(Problem::NoDebugInformation);
    }
    let file = DwarfFile::read(&finder, debug, debug_path, &path, None, &mut Vec::new())
        .map_err(Problem::damaged)?;
    let dwarf = file.dwarf().map_err(Problem::damaged)?;
    let mut reading = Reading {
        code: code_ranges(&segments(&object)),
        files: HashMap::new(),
        lines: BTreeMap::new(),
        stated: StatedCode { module, files: Vec::new(), lines: Vec::new(), functions: Vec::new() },
        pieces: owners(debug).into_iter().chain(owners(&object)).collect(),
        is_split: false,
    };
    reading.units(&dwarf).map_err(Problem::damaged)?;
    if reading.is_split {
        return Err(Problem::SplitDebugInformation);
    }
    Ok(reading.finish())
}

struct Reading {
    /// Where code is: what the linker threw away is stated at other addresses.
    code: Vec<Range<u64>>,
    files: HashMap<String, usize>,
    /// By the address at which a row begins, up to where, and the line.
    lines: BTreeMap<u64, (u64, Option<(usize, u32)>)>,
    stated: StatedCode,
    /// Pieces of functions, by where they begin.
    pieces: BTreeMap<u64, (u64, Piece)>,
    /// Whether functions are in files apart (`.dwo`).
    is_split: bool,
}

impl Reading {
    fn units(&mut self, dwarf: &Dwarf<Slice<'_>>) -> Result<(), gimli::Error> {
        let declarations = Declarations::new(dwarf);
        let mut headers = dwarf.units();
        while let Some(header) = headers.next()? {
            let unit = dwarf.unit(header)?;
            self.is_split |= unit.dwo_id.is_some();
            let unit = UnitRef::new(dwarf, &unit);
            self.rows(unit)?;
            self.functions(unit, &declarations)?;
        }
        Ok(())
    }

    fn is_code(&self, address: u64) -> bool {
        address != 0 && self.code.iter().any(|range| range.contains(&address))
    }

    fn file(&mut self, path: String) -> usize {
        let (files, next) = (&mut self.stated.files, self.files.len());
        *self.files.entry(path).or_insert_with_key(|path| {
            files.push(path.clone());
            next
        })
    }

    /// The rows of a unit's line table. Of several at one address the last one counts.
    fn rows(&mut self, unit: UnitRef<'_, Slice<'_>>) -> Result<(), gimli::Error> {
        let Some(program) = unit.line_program.clone() else { return Ok(()) };
        let mut paths: HashMap<u64, Option<usize>> = HashMap::new();
        let mut open: Option<(u64, Option<(usize, u32)>)> = None;
        let mut rows = program.rows();
        while let Some((_, row)) = rows.next_row()? {
            if let Some((start, line)) = open.take().filter(|(start, _)| *start < row.address())
                && self.is_code(start)
            {
                self.lines.insert(start, (row.address(), line));
            }
            if row.end_sequence() {
                continue;
            }
            let index = row.file_index();
            let file = match paths.get(&index) {
                Some(&known) => known,
                None => {
                    let found = file_path(unit, index).map(|path| self.file(path));
                    paths.insert(index, found);
                    found
                }
            };
            let number = row.line().and_then(|line| u32::try_from(line.get()).ok());
            open = Some((row.address(), file.zip(number)));
        }
        Ok(())
    }

    /// The functions of a unit that have code, each with the code that was inlined into it.
    fn functions<'a>(
        &mut self,
        unit: UnitRef<'_, Slice<'a>>,
        declarations: &Declarations<'a>,
    ) -> Result<(), gimli::Error> {
        let mut entries = unit.entries();
        // The functions around an entry: their depth, and their index if they have code.
        let mut around: Vec<(isize, Option<usize>)> = Vec::new();
        while let Some(entry) = entries.next_dfs()? {
            let depth = entry.depth();
            while around.last().is_some_and(|(outer, _)| *outer >= depth) {
                around.pop();
            }
            match entry.tag() {
                gimli::DW_TAG_subprogram => {
                    let at = self.function(unit, entry, declarations)?;
                    around.push((depth, at));
                }
                gimli::DW_TAG_inlined_subroutine => {
                    let ranges = self.ranges(unit, entry)?;
                    if let Some(&(_, Some(at))) = around.last() {
                        self.stated.functions[at].inlined.extend(ranges);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds a function; its index, if it has code.
    fn function<'a>(
        &mut self,
        unit: UnitRef<'_, Slice<'a>>,
        entry: &DebuggingInformationEntry<Slice<'a>>,
        declarations: &Declarations<'a>,
    ) -> Result<Option<usize>, gimli::Error> {
        let code = self.ranges(unit, entry)?;
        if code.is_empty() {
            return Ok(None);
        }
        let declared = declarations.read(unit, entry.offset());
        let name = match &declared.linkage_name {
            Some(linkage) => Some(demangle(linkage)),
            None => declared.name.clone(),
        };
        let Some(name) = name else { return Ok(None) };
        let column = match entry.attr(gimli::DW_AT_decl_column).and_then(gimli::Attribute::udata_value) {
            Some(column) => u32::try_from(column).unwrap_or(0),
            None => 0,
        };
        self.stated.functions.push(StatedFunction {
            linkage_name: declared.linkage_name.unwrap_or_else(|| name.clone()),
            name,
            file: declared.file,
            line: declared.line,
            column,
            piece: self.pieces.get(&code[0].start).map(|(_, piece)| *piece).unwrap_or_default(),
            code,
            inlined: Vec::new(),
        });
        Ok(Some(self.stated.functions.len() - 1))
    }

    fn ranges<'a>(
        &self,
        unit: UnitRef<'_, Slice<'a>>,
        entry: &DebuggingInformationEntry<Slice<'a>>,
    ) -> Result<Vec<Range<u64>>, gimli::Error> {
        let has =
            |name| entry.attr_value(name).is_some_and(|value| !matches!(value, AttributeValue::Flag(false)));
        if !has(gimli::DW_AT_low_pc) && !has(gimli::DW_AT_ranges) {
            return Ok(Vec::new());
        }
        let mut ranges = unit.die_ranges(entry)?;
        let mut code = Vec::new();
        while let Some(range) = ranges.next()? {
            if range.begin < range.end && self.is_code(range.begin) {
                code.push(range.begin..range.end);
            }
        }
        Ok(code)
    }

    fn finish(mut self) -> StatedCode {
        let starts: Vec<u64> = self.lines.keys().copied().skip(1).chain([u64::MAX]).collect();
        let rows = self.lines.into_iter().zip(starts);
        self.stated.lines = rows
            .filter_map(|((start, (end, line)), next)| {
                let (file, line) = line?;
                Some(StatedLine { code: start..end.min(next), file, line })
            })
            .collect();
        self.stated
    }
}
