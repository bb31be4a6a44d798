//! Functions as the symbol tables of a binary name them.

use object::read::elf::{ElfFile, FileHeader, Sym as _};
use object::{
    Architecture, BinaryFormat, Object as _, ObjectSection as _, ObjectSymbol as _, ObjectSymbolTable as _,
    Section, SectionFlags, SectionIndex, SectionKind, SymbolIndex, SymbolKind, elf,
};

use crate::contents::Contents;
use crate::go_table::GoTable;
use crate::object_file::Object;
use crate::wanted_pages::WantedPages;

/// The functions in `.symtab` and `.dynsym` of a binary and its debug files.
///
/// Names are read when they are asked for: a large library has hundreds of thousands.
pub(crate) struct SymbolTable<'o, 'a> {
    objects: Vec<&'o Object<'a>>,
    /// Sorted by start.
    symbols: Vec<Symbol>,
    /// The function table of a stripped Go program.
    go: Option<GoTable<'a>>,
    /// Whether there are no others either.
    is_empty: bool,
}

#[derive(Clone, Copy)]
struct Symbol {
    start: u64,
    /// 0 for labels, which reach up to the next symbol of their section.
    size: u64,
    section: Option<SectionIndex>,
    /// How well known the name is: 0 global, 1 weak, 2 local, 3 of no type.
    obscurity: u8,
    object: u8,
    dynamic: bool,
    /// Whether it is the code that chooses the function when the program is loaded (`STT_GNU_IFUNC`), not the function.
    chooses: bool,
    index: SymbolIndex,
}

/// A function by its symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedSymbol {
    pub(crate) start: u64,
    pub(crate) name: String,
    /// Whether it says how long it is; a label does not.
    pub(crate) has_size: bool,
    /// All addresses from the one asked for up to here have the same answer.
    pub(crate) until: u64,
}

/// The ending of the name of code that chooses a function, which has the function's own name (`STT_GNU_IFUNC`).
pub(crate) const RESOLVER: &str = "@ifunc";

/// How many symbols before an address are looked at for one that holds it. Only functions within
/// functions, as assembly makes them, need more than one.
const NESTING: usize = 64;

impl<'o, 'a> SymbolTable<'o, 'a> {
    /// Reads the tables of the binary and of its debug files.
    pub(crate) fn new(objects: Vec<&'o Object<'a>>) -> Self {
        Self::read(objects, None)
    }

    /// The same for certain addresses only: symbols that make no difference to them are left out.
    pub(crate) fn around(objects: Vec<&'o Object<'a>>, addresses: impl Iterator<Item = u64> + Clone) -> Self {
        Self::read(objects, WantedPages::new(addresses))
    }

    fn read(objects: Vec<&'o Object<'a>>, wanted: Option<WantedPages>) -> Self {
        let mut found = Found::new(wanted);
        for (at, object) in objects.iter().enumerate().take(usize::from(u8::MAX)) {
            let sections = code_sections(object);
            match object {
                object::File::Elf32(file) => found.add(file, &sections, at as u8),
                object::File::Elf64(file) => found.add(file, &sections, at as u8),
                object::File::Pe32(_) | object::File::Pe64(_) => found.add_coff(object, &sections, at as u8),
                _ => {}
            }
        }
        let Found { mut symbols, before, count, .. } = found;
        symbols.extend(before.into_iter().flatten());
        // Of those that begin at the same place the order stays.
        let mut order: Vec<_> = symbols.iter().map(|symbol| symbol.start).zip(0_u32..).collect();
        order.sort_unstable();
        let symbols = order.into_iter().map(|(_, at)| symbols[at as usize]).collect();
        let go = objects.first().filter(|_| count == 0).and_then(|object| GoTable::of(object));
        let is_empty = count == 0 && go.is_none();
        Self { objects, symbols, go, is_empty }
    }

    /// Whether there are no functions at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// The function that holds an address: the nearest before it whose size reaches it, else the
    /// nearest label if nothing that has a size lies between.
    pub(crate) fn lookup(&self, address: u64) -> Option<NamedSymbol> {
        self.by_symbol(address).or_else(|| self.go.as_ref()?.lookup(address))
    }

    fn by_symbol(&self, address: u64) -> Option<NamedSymbol> {
        let (before, behind) =
            self.symbols.split_at(self.symbols.partition_point(|symbol| symbol.start <= address));
        let near = || before.iter().rev().take(NESTING);
        let holds = |symbol: &&Symbol| address - symbol.start < symbol.size;
        let chosen = near().find(holds).or_else(|| before.last().filter(|symbol| symbol.size == 0))?;
        let sized = chosen.size > 0;
        let same = near().skip_while(|symbol| symbol.start != chosen.start);
        let same = same.take_while(|symbol| symbol.start == chosen.start);
        let same = same.filter(|symbol| (symbol.size > 0) == sized && symbol.section == chosen.section);
        let named = same.filter_map(|symbol| Some((symbol, self.name(symbol)?)));
        let rank = |symbol: &Symbol, name: &str| (symbol.chooses, preference(symbol.obscurity, name));
        let (symbol, mut name) = named.min_by_key(|(symbol, name)| rank(symbol, name))?;
        if symbol.chooses {
            name += RESOLVER;
        }
        let next = behind.first().map_or(u64::MAX, |symbol| symbol.start);
        let end = if sized { chosen.start.saturating_add(chosen.size) } else { u64::MAX };
        Some(NamedSymbol { start: chosen.start, name, has_size: sized, until: next.min(end) })
    }

    /// Where the first function behind an address begins.
    pub(crate) fn next_start(&self, address: u64) -> u64 {
        let next = self.symbols.partition_point(|symbol| symbol.start <= address);
        let next = self.symbols.get(next).map_or(u64::MAX, |symbol| symbol.start);
        self.go.as_ref().map_or(next, |go| go.next_start(address).min(next))
    }

    /// Where functions begin whose names are wanted.
    pub(crate) fn starts(&self, wanted: impl Fn(&str) -> bool) -> Vec<u64> {
        let starts = self.named(&wanted).map(|symbol| symbol.start);
        starts.chain(self.go.iter().flat_map(|go| go.starts(&wanted))).collect()
    }

    /// The same without code that chooses a function when the program is loaded, and whether a wanted name stands for such.
    pub(crate) fn starts_but_choosing(&self, wanted: impl Fn(&str) -> bool) -> (Vec<u64>, bool) {
        let (choosing, functions): (Vec<&Symbol>, Vec<&Symbol>) =
            self.named(&wanted).partition(|symbol| symbol.chooses);
        let starts = functions.iter().map(|symbol| symbol.start);
        let starts = starts.chain(self.go.iter().flat_map(|go| go.starts(&wanted))).collect();
        (starts, !choosing.is_empty())
    }

    fn named(&self, wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = &Symbol> {
        self.symbols.iter().filter(move |symbol| self.name(symbol).is_some_and(|name| wanted(&name)))
    }

    fn name(&self, symbol: &Symbol) -> Option<String> {
        let object = self.objects[usize::from(symbol.object)];
        let table = if symbol.dynamic { object.dynamic_symbol_table() } else { object.symbol_table() };
        let symbol = table?.symbol_by_index(symbol.index).ok()?;
        let name = String::from_utf8_lossy(symbol.name_bytes().ok()?).into_owned();
        // Compilers for 32-bit Windows put an underscore before the names of C.
        let decorated = object.format() == BinaryFormat::Pe && object.architecture() == Architecture::I386;
        let name = if decorated { name.strip_prefix('_').unwrap_or(&name).to_owned() } else { name };
        (!name.is_empty()).then_some(name)
    }
}

/// Of several names of one function, the one that users write comes first: `write` before
/// `__write` before `__GI___libc_write`.
fn preference(obscurity: u8, name: &str) -> (u8, usize, usize, String) {
    let underscores = name.len() - name.trim_start_matches('_').len();
    (obscurity, underscores, name.len(), name.to_owned())
}

/// Functions as they are read.
struct Found {
    symbols: Vec<Symbol>,
    count: usize,
    wanted: Option<WantedPages>,
    /// For each page that is asked for, the last symbol with a size before it that reaches none: labels before that
    /// do not reach the page either.
    before: Vec<Option<Symbol>>,
}

impl Found {
    fn new(wanted: Option<WantedPages>) -> Self {
        let pages = wanted.as_ref().map_or(0, WantedPages::count);
        Self { symbols: Vec::new(), count: 0, wanted, before: vec![None; pages] }
    }

    /// Adds the functions of a file, by its number; `code`: which sections are code.
    fn add<'a, H: FileHeader>(&mut self, file: &ElfFile<'a, H, &'a Contents>, code: &[bool], object: u8) {
        let endian = file.endian();
        let is_code = |section: Option<SectionIndex>| section.is_some_and(|at| code.get(at.0) == Some(&true));
        for (dynamic, table) in [(false, file.elf_symbol_table()), (true, file.elf_dynamic_symbol_table())] {
            for (index, symbol) in table.enumerate() {
                if !matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC | elf::STT_NOTYPE) {
                    continue;
                }
                let section = table.symbol_section(endian, symbol, index).ok().flatten();
                if !is_code(section) {
                    continue;
                }
                self.place(Symbol {
                    start: symbol.st_value(endian).into(),
                    size: symbol.st_size(endian).into(),
                    section,
                    obscurity: match symbol.st_bind() {
                        elf::STB_WEAK => 1,
                        elf::STB_LOCAL => 2,
                        _ => 0,
                    },
                    object,
                    dynamic,
                    chooses: symbol.st_type() == elf::STT_GNU_IFUNC,
                    index,
                });
            }
        }
    }

    /// Adds the functions of a file of Windows, whose symbols have no sizes.
    fn add_coff(&mut self, file: &Object<'_>, code: &[bool], object: u8) {
        for symbol in file.symbols() {
            let section = symbol.section_index();
            // Symbols of the linker and of assembly have no type.
            let typed = symbol.kind() == SymbolKind::Text;
            let is_function = typed || symbol.kind() == SymbolKind::Data && symbol.is_global();
            if is_function && section.is_some_and(|at| code.get(at.0) == Some(&true)) {
                let (start, index) = (symbol.address(), symbol.index());
                let obscurity = match (typed, symbol.is_global()) {
                    (true, true) => 0,
                    (true, false) => 2,
                    (false, _) => 3,
                };
                self.place(Symbol {
                    start,
                    size: 0,
                    section,
                    obscurity,
                    object,
                    dynamic: false,
                    chooses: false,
                    index,
                });
            }
        }
    }

    fn place(&mut self, symbol: Symbol) {
        self.count += 1;
        let Some(wanted) = &self.wanted else { return self.symbols.push(symbol) };
        if symbol.size == 0 || wanted.touches(&(symbol.start..symbol.start.saturating_add(symbol.size))) {
            return self.symbols.push(symbol);
        }
        if let Some(last) = self.before.get_mut(wanted.page_from(symbol.start))
            && last.is_none_or(|last| last.start <= symbol.start)
        {
            *last = Some(symbol);
        }
    }
}

/// The sections that are code.
fn code_sections(object: &Object<'_>) -> Vec<bool> {
    let mut code = Vec::new();
    for section in object.sections() {
        let at = section.index().0;
        code.resize(code.len().max(at + 1), false);
        code[at] = is_code(&section);
    }
    code
}

/// Whether a section is code, by its flags: in a file of debug information only, code has no contents and thus another
/// type.
pub(crate) fn is_code<'a>(section: &Section<'a, '_, &'a Contents>) -> bool {
    match section.flags() {
        SectionFlags::Elf { sh_flags, .. } => sh_flags.contains(elf::SHF_EXECINSTR),
        _ => section.kind() == SectionKind::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use treering_proc::segments;

    use crate::object_file::Storage;

    #[test]
    fn symbols_that_are_left_out_make_no_difference() {
        let storage = Storage::default();
        let object = storage.open(&std::env::current_exe().unwrap()).unwrap();
        let whole = SymbolTable::new(vec![&object]);
        let segments = segments(&object);
        let code = segments.segments().iter().find(|segment| segment.executable).unwrap();
        let (first, last) = (code.stated_address.0, code.stated_address.0 + code.memory_size);
        for step in [51, 1_009, 9_973, 200_003] {
            let asked: Vec<u64> = (first..last).step_by(step).collect();
            let part = SymbolTable::around(vec![&object], asked.iter().copied());
            assert!(step < 9_000 || part.symbols.len() < whole.symbols.len());
            for (at, &address) in asked.iter().enumerate() {
                let [one, other] = [&whole, &part].map(|table| table.lookup(address));
                let named = |symbol: &Option<NamedSymbol>| symbol.clone().map(|one| (one.start, one.name));
                assert_eq!(named(&one), named(&other), "{address:#x}");
                // All addresses that are said to have the same answer have it.
                let Some(other) = other else { continue };
                for &same in asked[at..].iter().take_while(|same| **same < other.until) {
                    assert_eq!(
                        named(&whole.lookup(same)),
                        Some((other.start, other.name.clone())),
                        "{same:#x}"
                    );
                }
            }
        }
    }
}
