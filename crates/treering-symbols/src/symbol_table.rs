//! Functions as the symbol tables of a binary name them.

use object::{
    Object as _, ObjectSection as _, ObjectSymbol as _, ObjectSymbolTable as _, SectionFlags, SectionIndex,
    SymbolFlags, SymbolIndex, elf,
};

use crate::object_file::Object;

/// The functions in `.symtab` and `.dynsym` of a binary and its debug files.
///
/// Names are read when they are asked for: a large library has hundreds of thousands.
pub(crate) struct SymbolTable<'o, 'a> {
    objects: Vec<&'o Object<'a>>,
    /// Sorted by start.
    symbols: Vec<Symbol>,
}

#[derive(Clone, Copy)]
struct Symbol {
    start: u64,
    /// 0 for labels, which reach up to the next symbol of their section.
    size: u64,
    section: Option<SectionIndex>,
    /// How well known the name is: 0 global, 1 weak, 2 local.
    obscurity: u8,
    object: u8,
    dynamic: bool,
    index: SymbolIndex,
}

/// A function by its symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedSymbol {
    pub(crate) start: u64,
    pub(crate) name: String,
    /// All addresses from the one asked for up to here have the same answer.
    pub(crate) until: u64,
}

/// How many symbols before an address are looked at for one that holds it. Only functions within
/// functions, as assembly makes them, need more than one.
const NESTING: usize = 64;

impl<'o, 'a> SymbolTable<'o, 'a> {
    /// Reads the tables of the binary and of its debug files.
    pub(crate) fn new(objects: Vec<&'o Object<'a>>) -> Self {
        let mut symbols: Vec<Symbol> = Vec::new();
        for (at, object) in objects.iter().enumerate().take(usize::from(u8::MAX)) {
            let sections = code_sections(object);
            let code =
                |section: Option<SectionIndex>| section.is_some_and(|at| sections.get(at.0) == Some(&true));
            let tables = [(false, object.symbol_table()), (true, object.dynamic_symbol_table())];
            for (dynamic, table) in tables {
                let found = table.iter().flat_map(|table| table.symbols());
                let found =
                    found.filter(|symbol| is_function(symbol.flags()) && code(symbol.section_index()));
                symbols.extend(found.map(|symbol| Symbol {
                    start: symbol.address(),
                    size: symbol.size(),
                    section: symbol.section_index(),
                    obscurity: if symbol.is_weak() { 1 } else { u8::from(symbol.is_local()) * 2 },
                    object: at as u8,
                    dynamic,
                    index: symbol.index(),
                }));
            }
        }
        // Of those that begin at the same place the order stays.
        let mut order: Vec<_> = symbols.iter().map(|symbol| symbol.start).zip(0_u32..).collect();
        order.sort_unstable();
        let symbols = order.into_iter().map(|(_, at)| symbols[at as usize]).collect();
        Self { objects, symbols }
    }

    /// Whether there are no functions at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// The function that holds an address: the nearest before it whose size reaches it, else the
    /// nearest label if nothing that has a size lies between.
    pub(crate) fn lookup(&self, address: u64) -> Option<NamedSymbol> {
        let (before, behind) =
            self.symbols.split_at(self.symbols.partition_point(|symbol| symbol.start <= address));
        let near = || before.iter().rev().take(NESTING);
        let holds = |symbol: &&Symbol| address - symbol.start < symbol.size;
        let chosen = near().find(holds).or_else(|| before.last().filter(|symbol| symbol.size == 0))?;
        let sized = chosen.size > 0;
        let same = near().skip_while(|symbol| symbol.start != chosen.start);
        let same = same.take_while(|symbol| symbol.start == chosen.start);
        let same = same.filter(|symbol| (symbol.size > 0) == sized && symbol.section == chosen.section);
        let named = same.filter_map(|symbol| Some((symbol.obscurity, self.name(symbol)?)));
        let (_, name) = named.min_by_key(|(obscurity, name)| preference(*obscurity, name))?;
        let next = behind.first().map_or(u64::MAX, |symbol| symbol.start);
        let end = if sized { chosen.start.saturating_add(chosen.size) } else { u64::MAX };
        Some(NamedSymbol { start: chosen.start, name, until: next.min(end) })
    }

    /// Where the first function behind an address begins.
    pub(crate) fn next_start(&self, address: u64) -> u64 {
        let next = self.symbols.partition_point(|symbol| symbol.start <= address);
        self.symbols.get(next).map_or(u64::MAX, |symbol| symbol.start)
    }

    /// Where functions begin whose names are wanted.
    pub(crate) fn starts(&self, wanted: impl Fn(&str) -> bool) -> Vec<u64> {
        let named = |symbol: &&Symbol| self.name(symbol).is_some_and(|name| wanted(&name));
        self.symbols.iter().filter(named).map(|symbol| symbol.start).collect()
    }

    fn name(&self, symbol: &Symbol) -> Option<String> {
        let object = self.objects[usize::from(symbol.object)];
        let table = if symbol.dynamic { object.dynamic_symbol_table() } else { object.symbol_table() };
        let symbol = table?.symbol_by_index(symbol.index).ok()?;
        let name = String::from_utf8_lossy(symbol.name_bytes().ok()?).into_owned();
        (!name.is_empty()).then_some(name)
    }
}

/// Of several names of one function, the one that users write comes first: `write` before
/// `__write` before `__GI___libc_write`.
fn preference(obscurity: u8, name: &str) -> (u8, usize, usize, String) {
    let underscores = name.len() - name.trim_start_matches('_').len();
    (obscurity, underscores, name.len(), name.to_owned())
}

fn is_function(flags: SymbolFlags<SectionIndex, SymbolIndex>) -> bool {
    let SymbolFlags::Elf { st_info, .. } = flags else { return false };
    matches!(st_info.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC | elf::STT_NOTYPE)
}

/// Which sections are code, by their flags: in a file of debug information only, code has no contents and
/// thus another type.
fn code_sections(object: &Object<'_>) -> Vec<bool> {
    let mut code = Vec::new();
    for section in object.sections() {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        let at = section.index().0;
        code.resize(code.len().max(at + 1), false);
        code[at] = sh_flags.contains(elf::SHF_EXECINSTR);
    }
    code
}
