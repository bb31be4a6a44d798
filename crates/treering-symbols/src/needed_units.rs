//! Debug information reduced to the units that cover certain addresses.
//!
//! To look for frames, a reader first has to read the abbreviations, the first entry and the header of the line table
//! of every unit, to learn which code it describes. A C library has more than a thousand units, and the samples of a
//! program lie in a dozen of them. An index of all units tells which ones.

use std::collections::HashSet;

use gimli::{
    Abbreviations, AttributeSpecification, AttributeValue, DebugAbbrev, DebugInfo, DebugInfoOffset,
    RunTimeEndian, UnitHeader, UnitOffset,
};

use crate::object_file::Slice;
use crate::section::Section;
use crate::unit_index::{self, IndexedUnit, UnitIndex};

/// Less debug information than this is read as a whole sooner than it is reduced.
pub(crate) const WORTH_REDUCING: u64 = 1 << 18;

/// Debug information without the units that are not needed. All that is left stands where it stood in its section.
pub(crate) struct NeededUnits {
    pub(crate) info: Vec<u8>,
    /// `.debug_line` with the tables of these units alone; nothing if all of it is to be read.
    pub(crate) lines: Option<Vec<u8>>,
}

/// If more units state no code, as most of rustc do, to look for their line tables takes longer than to read all.
const WORTH_LOOKING: usize = 32;

/// A smaller part than this is not worth being left out.
const SMALLEST_PART: u64 = 8;

/// The section `.debug_info` without the units of which `index` says that none of `addresses`,
/// which are sorted, is in their code; nothing where that would leave out little.
///
/// References between units that are left stay right. Functions that are inlined from other units have their names
/// there, so these units are left in too; other references to units that are left out find nothing. Units that do not
/// state their code are left in.
pub(crate) fn needed(
    info: &Section<'_>,
    lines: &Section<'_>,
    index: &UnitIndex,
    addresses: &[u64],
    abbreviations: &DebugAbbrev<Slice<'_>>,
) -> Option<NeededUnits> {
    let length = info.len();
    let units: Vec<_> = index.units().collect();
    let is_needed = unit_index::needed(&units, addresses);
    let left_in: u64 =
        units.iter().zip(&is_needed).filter(|(_, needed)| **needed).map(|(unit, _)| unit.length).sum();
    if left_in > length - length / SMALLEST_PART {
        return None;
    }
    // Most of these zeros are never touched, which is cheaper than a copy.
    let bytes = vec![0; usize::try_from(length).ok()?];
    let tables = (!lines.is_in_memory()).then(Vec::new);
    let mut reduced = Reduced { info, bytes, units, is_needed, abbreviations, tables };
    reduced.read_units()?;
    reduced.add_origins()?;
    let lines = reduced.line_tables(lines);
    Some(NeededUnits { lines, info: reduced.fill_gaps()? })
}

/// Debug information of which some units were read.
struct Reduced<'i> {
    info: &'i Section<'i>,
    bytes: Vec<u8>,
    units: Vec<IndexedUnit<'i>>,
    /// For each unit whether its bytes are there.
    is_needed: Vec<bool>,
    abbreviations: &'i DebugAbbrev<Slice<'i>>,
    /// Where the line tables of these units begin; nothing if that is not known of all, or not wanted.
    tables: Option<Vec<u64>>,
}

impl Reduced<'_> {
    /// Reads the units that are needed, those that follow each other at once.
    fn read_units(&mut self) -> Option<()> {
        let mut at = 0;
        while at < self.units.len() {
            let wanted = self.is_needed[at..].iter().take_while(|needed| **needed).count();
            if let Some(last) = wanted.checked_sub(1) {
                let (start, end) = (self.units[at].start, self.units[at + last].end());
                self.info.read(start, &mut self.bytes[start as usize..end as usize]).ok()?;
            }
            at += wanted.max(1);
        }
        Some(())
    }

    /// Reads the units that functions come from which are inlined into the code of units that are there, and finds the
    /// line tables of all.
    fn add_origins(&mut self) -> Option<()> {
        let needed = self.units.iter().zip(&self.is_needed).filter(|(_, needed)| **needed);
        if needed.filter(|(unit, _)| unit.code.is_none()).count() > WORTH_LOOKING {
            self.tables = None;
        }
        let mut found = Vec::new();
        for unit in 0..self.units.len() {
            let has_code = self.units[unit].code.is_some();
            if self.is_needed[unit] && (has_code || self.tables.is_some()) {
                found.extend(self.look(unit, has_code).unwrap_or_default());
            }
        }
        let mut followed = HashSet::new();
        while let Some(entry) = found.pop() {
            if !followed.insert(entry) {
                continue;
            }
            let unit = self.units.partition_point(|unit| unit.start <= entry as u64).checked_sub(1)?;
            if !self.is_needed[unit] {
                let (start, end) = (self.units[unit].start, self.units[unit].end());
                self.info.read(start, &mut self.bytes[start as usize..end as usize]).ok()?;
                self.is_needed[unit] = true;
                let _ = self.look(unit, false);
            }
            let opened = self.open(unit).and_then(|opened| opened.origins(Some(entry)));
            found.extend(opened.unwrap_or_default());
        }
        Some(())
    }

    /// Notes where the line table of a unit begins, and returns the origins of its functions if they are wanted.
    fn look(&mut self, unit: usize, wants_origins: bool) -> gimli::Result<Vec<usize>> {
        let looked = self.open(unit).and_then(|opened| {
            let origins = if wants_origins { opened.origins(None)? } else { Vec::new() };
            Ok((opened.line_table()?, origins))
        });
        match (&looked, &mut self.tables) {
            (Ok((table, _)), Some(tables)) => tables.extend(table),
            _ => self.tables = None,
        }
        looked.map(|(_, origins)| origins)
    }

    fn open(&self, unit: usize) -> gimli::Result<OpenUnit<'_>> {
        let start = self.units[unit].start as usize;
        let info = DebugInfo::new(&self.bytes, RunTimeEndian::Little);
        let header: UnitHeader<Slice<'_>> = info.header_from_offset(DebugInfoOffset(start))?;
        Ok(OpenUnit { start, abbreviations: header.abbreviations(self.abbreviations)?, header })
    }

    /// The section of line tables with those of the units that are there.
    fn line_tables(&mut self, lines: &Section<'_>) -> Option<Vec<u8>> {
        let mut starts = self.tables.take()?;
        starts.sort_unstable();
        starts.dedup();
        let mut tables = vec![0; usize::try_from(lines.len()).ok()?];
        for start in starts {
            let end = start.checked_add(lines.unit_length(start)?).filter(|end| *end <= lines.len())?;
            lines.read(start, &mut tables[start as usize..end as usize]).ok()?;
        }
        Some(tables)
    }

    /// The units that were read, with an empty one in the place of others.
    fn fill_gaps(mut self) -> Option<Vec<u8>> {
        let mut left_out = 0;
        for gap in self.gaps() {
            let bytes = &mut self.bytes[gap.start as usize..][..gap.length as usize];
            if gap.length < FILLER as u64 {
                self.info.read(gap.start, bytes).ok()?;
                continue;
            }
            bytes[..FILLER].copy_from_slice(&gap.filler()?);
            left_out += gap.length;
        }
        (left_out >= self.info.len() / SMALLEST_PART).then_some(self.bytes)
    }

    fn gaps(&self) -> Vec<Gap> {
        let mut gaps: Vec<Gap> = Vec::new();
        let left_out = self.units.iter().zip(&self.is_needed).filter(|(_, needed)| !**needed);
        for (&IndexedUnit { start, length, .. }, _) in left_out {
            match gaps.last_mut() {
                Some(gap) if gap.start + gap.length == start && gap.length + length < LONGEST_GAP => {
                    gap.length += length;
                }
                _ => gaps.push(Gap { start, length }),
            }
        }
        gaps
    }
}

/// A unit that is there, with the kinds of its entries.
struct OpenUnit<'b> {
    start: usize,
    header: UnitHeader<Slice<'b>>,
    abbreviations: Abbreviations,
}

impl OpenUnit<'_> {
    /// The entries to which one entry, or any of the unit, refers for a function, by their positions in the section.
    /// Entries of the unit itself are usually referred to by their positions in the unit, and not among them.
    fn origins(&self, entry: Option<usize>) -> gimli::Result<Vec<usize>> {
        let is_origin = |attribute: &AttributeSpecification| {
            let names = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification];
            attribute.form() == gimli::DW_FORM_ref_addr && names.contains(&attribute.name())
        };
        let mut found = Vec::new();
        let mut kinds = (1..).map_while(|code| self.abbreviations.get(code));
        if !kinds.any(|kind| kind.attributes().iter().any(is_origin)) {
            return Ok(found);
        }
        let first = entry.map(|entry| UnitOffset(entry - self.start));
        let mut entries = self.header.entries_raw(&self.abbreviations, first)?;
        while !entries.is_empty() {
            for attribute in entries.read_abbreviation()?.map_or(&[][..], |kind| kind.attributes()) {
                match entries.read_attribute(*attribute)?.value() {
                    AttributeValue::DebugInfoRef(at) if is_origin(attribute) => found.push(at.0),
                    _ => {}
                }
            }
            if entry.is_some() {
                break;
            }
        }
        Ok(found)
    }

    /// Where the line table of the unit begins, if it has one.
    fn line_table(&self) -> gimli::Result<Option<u64>> {
        let mut entries = self.header.entries_raw(&self.abbreviations, None)?;
        for attribute in entries.read_abbreviation()?.map_or(&[][..], |kind| kind.attributes()) {
            match entries.read_attribute(*attribute)?.value() {
                AttributeValue::DebugLineRef(at) => return Ok(Some(at.0 as u64)),
                _ if attribute.name() == gimli::DW_AT_stmt_list => {
                    return Err(gimli::Error::UnsupportedOffset);
                }
                _ => {}
            }
        }
        Ok(None)
    }
}

/// Units in a row that are left out.
struct Gap {
    start: u64,
    length: u64,
}

/// A unit states its length in four bytes, of which the largest numbers mean other things.
const LONGEST_GAP: u64 = 0xffff_ff00;

/// The size of a type unit's header.
const FILLER: usize = 24;

impl Gap {
    /// The header of a type unit without entries that is as long as the gap (DWARF 5, section 7.5.1.3). Type units
    /// contain no code, so they are not searched.
    fn filler(&self) -> Option<[u8; FILLER]> {
        const VERSION: u16 = 5;
        const ADDRESS_SIZE: u8 = 8;
        let mut filler = [0; FILLER];
        let length = u32::try_from(self.length - 4).ok()?;
        filler[..4].copy_from_slice(&length.to_le_bytes());
        filler[4..6].copy_from_slice(&VERSION.to_le_bytes());
        filler[6] = gimli::DW_UT_type.0;
        filler[7] = ADDRESS_SIZE;
        Some(filler)
    }
}
