//! The functions of a Go program, as its own runtime knows them: `.gopclntab` is there in stripped programs too.
//!
//! Its layout is that of the package `debug/gosym`; those of Go 1.16 and from Go 1.18 on are read.

use std::borrow::Cow;

use object::{Object as _, ObjectSection as _};

use crate::object_file::Object;
use crate::symbol_table::NamedSymbol;

/// The functions of a Go program in the order of their addresses.
pub(crate) struct GoTable<'a> {
    bytes: Cow<'a, [u8]>,
    /// Where each begins, and where its name is.
    functions: Vec<(u64, usize)>,
    /// Where the last one ends.
    end: u64,
}

/// How long a name may be.
const LONGEST: usize = 1 << 16;

/// The names of the section, in programs that are loaded at a place of their own and in others.
const SECTIONS: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];

impl<'a> GoTable<'a> {
    /// Reads the table of a program that has no table of symbols; nothing where there is none, or none that is
    /// understood.
    pub(crate) fn of(object: &Object<'a>) -> Option<Self> {
        if object.symbols().next().is_some() {
            return None;
        }
        let section = SECTIONS.iter().find_map(|name| object.section_by_name(name))?;
        Self::read(section.uncompressed_data().ok()?)
    }

    fn read(bytes: Cow<'a, [u8]>) -> Option<Self> {
        let (functions, end) = Layout::of(&bytes)?.functions()?;
        Some(Self { bytes, functions, end })
    }

    /// The function that holds an address.
    pub(crate) fn lookup(&self, address: u64) -> Option<NamedSymbol> {
        let behind = self.functions.partition_point(|(start, _)| *start <= address);
        let &(start, name) = self.functions.get(behind.checked_sub(1)?)?;
        let until = self.functions.get(behind).map_or(self.end, |(next, _)| *next);
        let name = self.name(name)?;
        (address < until).then_some(NamedSymbol { start, name, has_size: true, until })
    }

    /// Where the first function behind an address begins.
    pub(crate) fn next_start(&self, address: u64) -> u64 {
        let next = self.functions.partition_point(|(start, _)| *start <= address);
        self.functions.get(next).map_or(u64::MAX, |(start, _)| *start)
    }

    /// Where functions begin whose names are wanted.
    pub(crate) fn starts(&self, wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = u64> {
        let named = move |&&(_, name): &&(u64, usize)| self.name(name).is_some_and(|name| wanted(&name));
        self.functions.iter().filter(named).map(|(start, _)| *start)
    }

    fn name(&self, at: usize) -> Option<String> {
        let rest = self.bytes.get(at..)?;
        let name = &rest[..rest.iter().take(LONGEST).position(|&byte| byte == 0)?];
        (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
    }
}

/// Where the parts of a table are.
struct Layout<'b> {
    bytes: &'b [u8],
    /// The bytes of a pointer.
    pointer: usize,
    count: usize,
    /// The base of addresses; nothing where they are stated whole, as up to Go 1.17.
    text: Option<u64>,
    names: usize,
    functions: usize,
}

impl<'b> Layout<'b> {
    fn of(bytes: &'b [u8]) -> Option<Self> {
        let magic = number(bytes, 0, 4)?;
        let pointer = usize::from(*bytes.get(7)?);
        if !(pointer == 4 || pointer == 8) {
            return None;
        }
        let word = |at: usize| number(bytes, 8 + at * pointer, pointer);
        let place = |at: usize| usize::try_from(word(at)?).ok();
        let count = place(0)?;
        match magic {
            0xffff_fffa => {
                Some(Self { bytes, pointer, count, text: None, names: place(2)?, functions: place(6)? })
            }
            // Where the loader writes the address it is not in the file.
            0xffff_fff0 | 0xffff_fff1 => {
                let text = word(2).filter(|&text| text > 0)?;
                Some(Self { bytes, pointer, count, text: Some(text), names: place(3)?, functions: place(7)? })
            }
            _ => None,
        }
    }

    /// Where each function begins and where its name is; where the last one ends.
    fn functions(&self) -> Option<(Vec<(u64, usize)>, u64)> {
        let width = if self.text.is_some() { 4 } else { self.pointer };
        let table = self.bytes.get(self.functions..)?;
        // Each takes two numbers of the table, which ends with an address.
        if self.count > table.len() / (2 * width) {
            return None;
        }
        let address = |at| self.text.unwrap_or(0).checked_add(number(table, at, width)?);
        let function = |at: usize| {
            let entry = usize::try_from(number(table, (2 * at + 1) * width, width)?).ok()?;
            let name = usize::try_from(number(table, entry.checked_add(width)?, 4)?).ok()?;
            Some((address(2 * at * width)?, self.names.checked_add(name)?))
        };
        let functions = (0..self.count).map(function).collect::<Option<Vec<_>>>()?;
        let sorted = functions.is_sorted_by_key(|(start, _)| *start);
        sorted.then_some((functions, address(2 * self.count * width)?))
    }
}

/// A number of so many bytes, the lowest first.
fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(width)?)?;
    Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two functions, as Go 1.18 and later state them.
    fn table() -> Vec<u8> {
        let words = [2_u64, 0, 0x401000, 72, 0, 0, 0, 90];
        let mut bytes = vec![0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8];
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend(b"\0main.main\0main.f\0");
        // Starts and records; the end; the two records, each a start and a name.
        let table = [0_u32, 20, 0x40, 28, 0x60, 0, 1, 0x40, 11];
        bytes.extend(table.iter().flat_map(|number| number.to_le_bytes()));
        bytes
    }

    #[test]
    fn functions_reach_up_to_the_next() {
        let table = GoTable::read(table().into()).expect("it is a table");
        let found = |address| table.lookup(address).map(|found| (found.start, found.name, found.until));
        assert_eq!(found(0x400fff), None);
        assert_eq!(found(0x40103f), Some((0x401000, "main.main".to_owned(), 0x401040)));
        assert_eq!(found(0x401040), Some((0x401040, "main.f".to_owned(), 0x401060)));
        assert_eq!(found(0x401060), None);
        assert_eq!(table.starts(|name| name == "main.f").collect::<Vec<_>>(), [0x401040]);
        assert_eq!((table.next_start(0), table.next_start(0x401040)), (0x401000, u64::MAX));
    }

    #[test]
    fn prefixes_and_changed_bytes_are_read_or_refused() {
        let whole = table();
        for length in 0..whole.len() {
            let _ = GoTable::read(whole[..length].into());
            for byte in [0, 1, 0x7f, 0xff] {
                let mut changed = whole.clone();
                changed[length] = byte;
                let table = GoTable::read(changed.into());
                let _ = table.map(|table| table.starts(|_| true).filter_map(|at| table.lookup(at)).count());
            }
        }
    }
}
