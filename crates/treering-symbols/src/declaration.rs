//! A function in the debug information of a unit: its names and where it is declared.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;

use gimli::{AttributeValue, DebugInfoOffset, Dwarf, Unit, UnitOffset, UnitRef};

use crate::object_file::Slice;
use crate::scope::Scopes;
use crate::source_path::{join, normalise};

/// A function as its entries declare it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Declaration {
    /// The mangled name, or nothing in languages that have none.
    pub(crate) linkage_name: Option<String>,
    /// The name, with the names of the namespaces, types and functions around it.
    pub(crate) name: Option<String>,
    /// The file it is defined in, or the empty string.
    pub(crate) file: String,
    /// The line of its definition, or 0.
    pub(crate) line: u32,
    /// Where its code starts; nothing for an inlined function.
    pub(crate) start: Option<u64>,
}

/// The units of one file, found by position and parsed when needed.
pub(crate) struct Units<'a> {
    dwarf: &'a Dwarf<Slice<'a>>,
    /// Sorted by position.
    units: OnceCell<Vec<LazyUnit<'a>>>,
    /// Whether an entry was looked for in a unit that is not there.
    lacks_some: Cell<bool>,
}

/// The position of a unit, and the unit once it was asked for.
type LazyUnit<'a> = (usize, OnceCell<Option<Unit<Slice<'a>>>>);

impl<'a> Units<'a> {
    pub(crate) fn new(dwarf: &'a Dwarf<Slice<'a>>) -> Self {
        Self { dwarf, units: OnceCell::new(), lacks_some: Cell::new(false) }
    }

    fn all(&self) -> &[LazyUnit<'a>] {
        self.units.get_or_init(|| {
            let mut headers = self.dwarf.units();
            let next = || headers.next().ok().flatten();
            let starts = std::iter::from_fn(next).filter_map(|header| header.debug_info_offset());
            starts.map(|start| (start.0, OnceCell::new())).collect()
        })
    }

    fn unit(&self, at: usize) -> Option<&Unit<Slice<'a>>> {
        let (start, unit) = self.all().get(at)?;
        let parse = || {
            let header = self.dwarf.unit_header(DebugInfoOffset(*start)).ok()?;
            self.dwarf.unit(header).ok()
        };
        unit.get_or_init(parse).as_ref()
    }

    /// The unit that holds the entry at a position, and its place in the unit.
    fn holding(&self, entry: DebugInfoOffset) -> Option<(UnitRef<'_, Slice<'a>>, UnitOffset)> {
        let after = self.all().partition_point(|(start, _)| *start <= entry.0);
        let unit = after.checked_sub(1).and_then(|at| self.unit(at));
        self.lacks_some.set(self.lacks_some.get() || unit.is_none());
        let unit = unit?;
        Some((UnitRef::new(self.dwarf, unit), entry.to_unit_offset(&unit.header)?))
    }

    /// The unit that stands in the binary for a split unit.
    fn skeleton(&self, id: gimli::DwoId) -> Option<UnitRef<'_, Slice<'a>>> {
        let mut units = (0..self.all().len()).filter_map(|at| self.unit(at));
        units.find(|unit| unit.dwo_id == Some(id)).map(|unit| UnitRef::new(self.dwarf, unit))
    }
}

/// Reads declarations, each once.
pub(crate) struct Declarations<'a> {
    main: Units<'a>,
    supplementary: Option<Units<'a>>,
    /// The names around the functions of a unit, by the unit's address in memory, where asked for.
    scopes: RefCell<HashMap<usize, Scopes>>,
}

/// How many entries to follow from a function's code to its name. Compilers need three.
const LONGEST_CHAIN: usize = 16;

/// An entry, and whether its file is the supplementary one.
#[derive(Clone, Copy)]
struct Entry<'u, 'a> {
    unit: UnitRef<'u, Slice<'a>>,
    offset: UnitOffset,
    supplementary: bool,
}

impl<'a> Declarations<'a> {
    pub(crate) fn new(dwarf: &'a Dwarf<Slice<'a>>) -> Self {
        let supplementary = dwarf.sup().map(Units::new);
        Self { main: Units::new(dwarf), supplementary, scopes: RefCell::default() }
    }

    /// Whether a declaration refers to a unit that is not there.
    pub(crate) fn lack_units(&self) -> bool {
        self.main.lacks_some.get()
    }

    /// The origin of an inlined call or a function's code: the entry that the names are
    /// in, as a key to tell functions apart. Nothing if the entry stands for itself.
    pub(crate) fn origin(
        &self,
        unit: UnitRef<'_, Slice<'a>>,
        offset: UnitOffset,
    ) -> Option<(usize, UnitOffset)> {
        let entry = Entry { unit, offset, supplementary: false };
        let die = unit.entry(offset).ok()?;
        let origin = self.follow(entry, die.attr_value(gimli::DW_AT_abstract_origin)?)?;
        Some((address_of(origin.unit), origin.offset))
    }

    /// Reads the declaration of the function whose code or inlined call an entry describes.
    pub(crate) fn read(&self, unit: UnitRef<'_, Slice<'a>>, offset: UnitOffset) -> Declaration {
        let mut declaration = Declaration::default();
        let mut entry = Some(Entry { unit, offset, supplementary: false });
        for step in 0..LONGEST_CHAIN {
            let Some(at) = entry else { break };
            entry = self.read_entry(at, &mut declaration, step == 0);
        }
        declaration
    }

    /// Adds what one entry says, and returns the entry that says more.
    fn read_entry<'u>(
        &'u self,
        entry: Entry<'u, 'a>,
        declaration: &mut Declaration,
        is_code: bool,
    ) -> Option<Entry<'u, 'a>> {
        let unit = entry.unit;
        let die = unit.entry(entry.offset).ok()?;
        let text = |name| Some(unit.attr_string(die.attr_value(name)?).ok()?.to_string_lossy().into_owned());
        let declared = &mut *declaration;
        let linkage_name =
            || text(gimli::DW_AT_linkage_name).or_else(|| text(gimli::DW_AT_MIPS_linkage_name));
        declared.linkage_name = declared.linkage_name.take().or_else(linkage_name);
        if declared.name.is_none()
            && let Some(name) = text(gimli::DW_AT_name)
        {
            let qualified = declared.linkage_name.is_none().then(|| self.qualify(unit, entry.offset, &name));
            declared.name = Some(qualified.unwrap_or(name));
        }
        if declared.line == 0
            && let Some(AttributeValue::Udata(line)) = udata(&die, gimli::DW_AT_decl_line)
        {
            declared.line = u32::try_from(line).unwrap_or(0);
        }
        if declared.file.is_empty()
            && let Some(AttributeValue::FileIndex(index)) = die.attr_value(gimli::DW_AT_decl_file)
        {
            declared.file = self.file(unit, index).unwrap_or_default();
        }
        if is_code && die.tag() == gimli::DW_TAG_subprogram {
            declared.start =
                unit.die_ranges(&die).ok().and_then(|mut ranges| Some(ranges.next().ok()??.begin));
        }
        let next = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification];
        self.follow(entry, next.into_iter().find_map(|name| die.attr_value(name))?)
    }

    fn follow<'u>(&'u self, from: Entry<'u, 'a>, to: AttributeValue<Slice<'a>>) -> Option<Entry<'u, 'a>> {
        let (units, position, supplementary) = match to {
            AttributeValue::UnitRef(offset) => return Some(Entry { offset, ..from }),
            AttributeValue::DebugInfoRef(at) if from.supplementary => {
                (self.supplementary.as_ref()?, at, true)
            }
            AttributeValue::DebugInfoRef(at) => (&self.main, at, false),
            AttributeValue::DebugInfoRefSup(at) => (self.supplementary.as_ref()?, at, true),
            _ => return None,
        };
        let (unit, offset) = units.holding(position)?;
        Some(Entry { unit, offset, supplementary })
    }

    /// A name with the names around it in languages that have them.
    fn qualify(&self, unit: UnitRef<'_, Slice<'a>>, offset: UnitOffset, name: &str) -> String {
        let mut scopes = self.scopes.borrow_mut();
        scopes.entry(address_of(unit)).or_insert_with(|| Scopes::read(unit)).qualify(unit, offset, name)
    }

    /// The path of a file in a unit's line table. Split units leave theirs in the binary.
    fn file(&self, unit: UnitRef<'_, Slice<'a>>, index: u64) -> Option<String> {
        match (&unit.line_program, unit.dwo_id) {
            (None, Some(id)) => file_path(self.main.skeleton(id)?, index),
            _ => file_path(unit, index),
        }
    }
}

fn udata(
    die: &gimli::DebuggingInformationEntry<Slice<'_>>,
    name: gimli::DwAt,
) -> Option<AttributeValue<Slice<'static>>> {
    die.attr(name)?.udata_value().map(AttributeValue::Udata)
}

/// Tells units apart; they stay where they are while their file is read.
pub(crate) fn address_of(unit: UnitRef<'_, Slice<'_>>) -> usize {
    std::ptr::from_ref(unit.unit).addr()
}

/// The path of a file in a unit's line table, from the directory of compilation if relative.
/// Index 0 is no file before version 5 of DWARF (section 6.2.4).
pub(crate) fn file_path(unit: UnitRef<'_, Slice<'_>>, index: u64) -> Option<String> {
    let header = unit.line_program.as_ref()?.header();
    if index == 0 && header.version() < 5 {
        return None;
    }
    let file = header.file(index)?;
    let text = |value| unit.attr_string(value).ok().map(|text| text.to_string_lossy().into_owned());
    let mut path =
        unit.comp_dir.map(|directory| directory.to_string_lossy().into_owned()).unwrap_or_default();
    if file.directory_index() != 0
        && let Some(directory) = file.directory(header)
    {
        path = join(&path, &text(directory)?);
    }
    Some(normalise(&join(&path, &text(file.path_name())?)))
}
