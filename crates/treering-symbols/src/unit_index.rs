//! The units of `.debug_info`, and which code each describes.
//!
//! The table `.debug_aranges` (DWARF 5, section 6.1.2) tells that at once, but Clang and Go write none, and it need not
//! mention all units. Of the others, the first entry is read, which states the code of its unit (section 3.1.1).

use std::collections::HashSet;

use gimli::{AttributeValue, DebugInfo, Dwarf, RangeListsOffset, RunTimeEndian, UnitHeader, UnitType};
use serde::{Deserialize, Serialize};

use crate::object_file::Slice;
use crate::section::Section;

/// Where each unit lies in `.debug_info`, and where its code lies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnitIndex {
    /// One behind the other, from the beginning of the section.
    units: Vec<Entry>,
    /// How many units had to be asked for their code, as the table does not mention them.
    asked: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    length: u32,
    code: Code,
}

/// Where the code of a unit is: beginnings and lengths of ranges, or nothing if that is not stated.
type Code = Option<Vec<(u64, u64)>>;

/// If there are more ranges, those of a unit that are less far apart than [`NEAR`] become one, so that the index stays
/// small.
const MOST_RANGES: usize = 1 << 17;
const NEAR: u64 = 64;

impl UnitIndex {
    /// Reads the headers of all units, and the first entries of those that `dwarf.debug_aranges` leaves out.
    /// `dwarf` needs not have other sections than those that state ranges.
    ///
    /// Nothing if the units do not fill the section.
    pub(crate) fn read(info: &Section<'_>, dwarf: &Dwarf<Slice<'_>>) -> Option<Self> {
        let mut table = ranges_by_table(dwarf)?.into_iter().peekable();
        let mut read = Self { units: Vec::new(), asked: 0 };
        let mut window = Window { info, start: 0, bytes: Vec::new() };
        let mut at = 0;
        while at < info.len() {
            let length = window.unit_length(at)?;
            while table.next_if(|(unit, _)| *unit < at).is_some() {}
            let code = match table.next_if(|(unit, _)| *unit == at) {
                Some((_, code)) => code,
                None => {
                    read.asked += 1;
                    window.stated_code(at, length, dwarf)
                }
            };
            read.units.push(Entry { length: u32::try_from(length).ok()?, code });
            at = at.checked_add(length).filter(|end| *end <= info.len())?;
        }
        let ranges: usize = read.units.iter().flat_map(|unit| &unit.code).map(Vec::len).sum();
        if ranges > MOST_RANGES {
            read.units.iter_mut().flat_map(|unit| &mut unit.code).for_each(join);
        }
        Some(read)
    }

    /// How many units had to be asked for their code.
    pub(crate) fn asked(&self) -> usize {
        self.asked
    }

    /// How long the section is whose units these are.
    pub(crate) fn section_length(&self) -> u64 {
        self.units.iter().map(|unit| u64::from(unit.length)).sum()
    }

    /// The units in their order.
    pub(crate) fn units(&self) -> impl Iterator<Item = IndexedUnit<'_>> {
        self.units.iter().scan(0, |next, unit| {
            let (start, length) = (*next, u64::from(unit.length));
            *next += length;
            Some(IndexedUnit { start, length, code: unit.code.as_deref() })
        })
    }
}

/// A unit, where it begins in its section, and its code as in [`Entry`].
pub(crate) struct IndexedUnit<'i> {
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) code: Option<&'i [(u64, u64)]>,
}

impl IndexedUnit<'_> {
    pub(crate) fn end(&self) -> u64 {
        self.start + self.length
    }
}

/// For each unit whether it is needed to describe the code at some addresses, which are sorted.
///
/// Several units may describe one range: a function that is compiled into each of them, of which the linker keeps one.
/// The first of them is as good as all.
pub(crate) fn needed(units: &[IndexedUnit<'_>], addresses: &[u64]) -> Vec<bool> {
    let holds = |&(begin, length): &(u64, u64)| {
        let first = addresses.partition_point(|&address| address < begin);
        addresses.get(first).is_some_and(|&address| address - begin < length)
    };
    let mut described = HashSet::new();
    let is_needed = |unit: &IndexedUnit<'_>| {
        unit.code.is_none_or(|code| {
            let new = code.iter().filter(|range| holds(range) && described.insert(**range));
            new.count() > 0
        })
    };
    units.iter().map(is_needed).collect()
}

/// The ranges of units by the table, sorted by position; nothing if the table cannot be read. Units whose set in it is
/// empty are left out.
fn ranges_by_table(dwarf: &Dwarf<Slice<'_>>) -> Option<Vec<(u64, Code)>> {
    let mut units: Vec<(u64, Code)> = Vec::new();
    let mut headers = dwarf.debug_aranges.headers();
    while let Some(header) = headers.next().ok()? {
        let mut entries = header.entries();
        let mut code = Some(Vec::new());
        loop {
            match entries.next() {
                Ok(Some(entry)) => {
                    code.iter_mut().for_each(|code| code.push((entry.address(), entry.length())))
                }
                Ok(None) => break,
                // A unit that cannot be read may be anywhere.
                Err(_) => {
                    code = None;
                    break;
                }
            }
        }
        code.iter_mut().for_each(|code| code.retain(|(_, length)| *length > 0));
        if code.as_ref().is_none_or(|code| !code.is_empty()) {
            units.push((header.debug_info_offset().0 as u64, code));
        }
    }
    units.sort_by_key(|(unit, _)| *unit);
    units.dedup_by(|next, unit| {
        let same = next.0 == unit.0;
        if same {
            unit.1 = unit.1.take().zip(next.1.take()).map(|(code, more)| [code, more].concat());
        }
        same
    });
    Some(units)
}

/// Sorts ranges, and makes those that touch or nearly touch one.
fn join(code: &mut Vec<(u64, u64)>) {
    code.sort_unstable();
    code.dedup_by(|next, range| {
        let end = range.0.saturating_add(range.1);
        let near = next.0 <= end.saturating_add(NEAR);
        if near {
            range.1 = end.max(next.0.saturating_add(next.1)) - range.0;
        }
        near
    });
}

/// Bytes of `.debug_info`, so that headers which lie close together are read at once.
struct Window<'s> {
    info: &'s Section<'s>,
    start: u64,
    bytes: Vec<u8>,
}

/// How many bytes are read at once. Most units are longer, and most first entries shorter.
const WINDOW: u64 = 2048;

impl Window<'_> {
    /// Bytes from a position on.
    fn bytes(&mut self, at: u64, count: u64) -> Option<&[u8]> {
        let is_here = at >= self.start && at + count <= self.start + self.bytes.len() as u64;
        if !is_here {
            let length = count.max(WINDOW).min(self.info.len().checked_sub(at)?);
            self.start = at;
            self.bytes.resize(usize::try_from(length).ok()?, 0);
            self.info.read(at, &mut self.bytes).ok()?;
        }
        self.bytes.get((at - self.start) as usize..)?.get(..count as usize)
    }

    /// The length that a header states, with that of the field itself (DWARF 5, section 7.4).
    fn unit_length(&mut self, at: u64) -> Option<u64> {
        let short = u32::from_le_bytes(self.bytes(at, 4)?.try_into().ok()?);
        match short {
            u32::MAX => u64::from_le_bytes(self.bytes(at, 12)?[4..].try_into().ok()?).checked_add(12),
            0xffff_fff0.. => None,
            short => Some(u64::from(short) + 4),
        }
    }

    /// The code that the first entry of a unit states; nothing if it states none.
    fn stated_code(&mut self, at: u64, length: u64, dwarf: &Dwarf<Slice<'_>>) -> Code {
        let length = length.min(self.info.len() - at);
        let short = length.min(WINDOW);
        match code_of(self.bytes(at, short)?, dwarf) {
            Err(gimli::Error::UnexpectedEof(_)) if short < length => {
                code_of(self.bytes(at, length)?, dwarf).ok()?
            }
            code => code.ok()?,
        }
    }
}

/// The code of a unit of which the first bytes are known. Units of types have none.
fn code_of(unit: &[u8], dwarf: &Dwarf<Slice<'_>>) -> gimli::Result<Code> {
    let mut bytes = unit.to_vec();
    // The reader wants as much as the header states.
    match bytes.get(..4) {
        Some([0xff, 0xff, 0xff, 0xff]) if bytes.len() > 12 => {
            let length = bytes.len() as u64 - 12;
            bytes[4..12].copy_from_slice(&length.to_le_bytes());
        }
        Some(_) => {
            let length = bytes.len() as u32 - 4;
            bytes[..4].copy_from_slice(&length.to_le_bytes());
        }
        None => return Ok(None),
    }
    let info = DebugInfo::new(&bytes, RunTimeEndian::Little);
    let Some(header) = info.units().next()? else { return Ok(None) };
    if let UnitType::Type { .. } | UnitType::SplitType { .. } = header.type_() {
        return Ok(Some(Vec::new()));
    }
    let abbreviations = header.abbreviations(&dwarf.debug_abbrev)?;
    let mut entries = header.entries_raw(&abbreviations, None)?;
    let mut stated = Stated::default();
    if let Some(first) = entries.read_abbreviation()? {
        for attribute in first.attributes() {
            let attribute = entries.read_attribute(*attribute)?;
            stated.take(attribute.name(), attribute.value());
        }
    }
    stated.code(&header, dwarf)
}

/// The attributes of a unit's first entry that tell where its code is.
#[derive(Default)]
struct Stated<'i> {
    low: Option<AttributeValue<Slice<'i>>>,
    high: Option<AttributeValue<Slice<'i>>>,
    ranges: Option<AttributeValue<Slice<'i>>>,
    address_base: usize,
    ranges_base: usize,
}

impl<'i> Stated<'i> {
    fn take(&mut self, name: gimli::DwAt, value: AttributeValue<Slice<'i>>) {
        match (name, &value) {
            (gimli::DW_AT_low_pc, _) => self.low = Some(value),
            (gimli::DW_AT_high_pc, _) => self.high = Some(value),
            (gimli::DW_AT_ranges, _) => self.ranges = Some(value),
            (_, AttributeValue::DebugAddrBase(base)) => self.address_base = base.0,
            (_, AttributeValue::DebugRngListsBase(base)) => self.ranges_base = base.0,
            _ => {}
        }
    }

    /// The ranges (DWARF 5, section 2.17).
    fn code(self, header: &UnitHeader<Slice<'i>>, dwarf: &Dwarf<Slice<'_>>) -> gimli::Result<Code> {
        let encoding = header.encoding();
        let address_base = gimli::DebugAddrBase(self.address_base);
        let address = |value: &AttributeValue<Slice<'i>>| match *value {
            AttributeValue::Addr(address) => Ok(Some(address)),
            AttributeValue::DebugAddrIndex(index) => {
                dwarf.debug_addr.get_address(encoding.address_size, address_base, index).map(Some)
            }
            _ => Ok(None),
        };
        let low = self.low.as_ref().map_or(Ok(None), address)?;
        let list = match self.ranges {
            Some(AttributeValue::RangeListsRef(list)) => Some(RangeListsOffset(list.0)),
            Some(AttributeValue::DebugRngListsIndex(index)) => {
                let base = gimli::DebugRngListsBase(self.ranges_base);
                Some(dwarf.ranges.get_offset(encoding, base, index)?)
            }
            _ => None,
        };
        let mut code = Vec::new();
        if let Some(list) = list {
            let base = low.unwrap_or(0);
            let mut ranges = dwarf.ranges.ranges(list, encoding, base, &dwarf.debug_addr, address_base)?;
            while let Some(range) = ranges.next()? {
                code.push((range.begin, range.end.saturating_sub(range.begin)));
            }
        } else if let (Some(low), Some(high)) = (low, &self.high) {
            let length = match (high, address(high)?) {
                (_, Some(high)) => high.saturating_sub(low),
                (AttributeValue::Udata(length), _) => *length,
                _ => 0,
            };
            code.push((low, length));
        }
        code.retain(|(_, length)| *length > 0);
        Ok((!code.is_empty()).then_some(code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_units_that_describe_the_same_range_the_first_is_needed() {
        let shared = (0x1000, 0x100);
        let code =
            [vec![shared, (0x2000, 0x10)], vec![(0x3000, 0x10), shared], vec![(0x1000, 0x80)], Vec::new()];
        let unit = |code| IndexedUnit { start: 0, length: 10, code };
        let mut units: Vec<_> = code.iter().map(|code| unit(Some(&**code))).collect();
        units.push(unit(None));
        let needed = |addresses: &[u64]| needed(&units, addresses);
        assert_eq!(needed(&[0x1090]), [true, false, false, false, true]);
        // Another range with the same code may tell something else.
        assert_eq!(needed(&[0x1010]), [true, false, true, false, true]);
        assert_eq!(needed(&[0x100f, 0x300f]), [true, true, true, false, true]);
        assert_eq!(needed(&[0xfff, 0x1100, 0x3010]), [false, false, false, false, true]);
    }

    #[test]
    fn near_ranges_are_joined_in_any_order() {
        let mut code = vec![(0x1100, 0x10), (0x1000, 0x100), (0x2000, 8), (0x1150, 4), (u64::MAX, 5)];
        join(&mut code);
        assert_eq!(code, [(0x1000, 0x154), (0x2000, 8), (u64::MAX, 5)]);
    }
}
